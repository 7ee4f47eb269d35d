"""How a service is started: with a token, and only where it can be."""

import os
from pathlib import Path

import pytest

from harness import cli
from harness.errors import UsageError
from harness.serve import command


def test_a_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("of sixteen letters or more\n")
    monkeypatch.setenv("ASSAY_TOKEN", "another of sixteen letters or more")
    assert command.token(tmp_path / "token") == "of sixteen letters or more"
    assert command.token(None) == "another of sixteen letters or more"
    (tmp_path / "token").write_text("short")
    monkeypatch.delenv("ASSAY_TOKEN")
    for place, why in ((tmp_path / "token", "no token of 16"), (None, "no token of 16"), (tmp_path, "cannot read")):
        with pytest.raises(UsageError, match=why):
            command.token(place)


@pytest.mark.parametrize("text", ["sixteen letters \u00e9 and more", "sixteen letters\nand more"])
def test_a_token_that_no_header_can_hold_is_refused(tmp_path, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(UsageError, match="cannot hold"):
        command.token(tmp_path / "token")


def test_a_token_file_that_has_no_end_or_nothing_yet_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("x" * 5000)
    for place, why in ((Path("/dev/zero"), "regular file"), (tmp_path / "pipe", "regular file"), (None, "4 KiB")):
        with pytest.raises(UsageError, match=why):
            command.token(place or tmp_path / "large")


@pytest.mark.parametrize(
    "words", [[], ["--queue", "0"], ["--deadline", "-1"], ["--host", "192.0.2.1"], ["--port", "99999"]]
)
def test_what_is_wrong_is_told_before_anything_is_started(words, monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("ASSAY_TOKEN", raising=False)
    assert cli.main(["serve", "configs/quickstart.yaml", "--dir", str(tmp_path / "x"), *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "x").exists()
