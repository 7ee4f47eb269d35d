"""A folder that a candidate had to itself: what is taken out of it, and how it goes away, whatever is in it."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness.places import CHECKOUT
from harness.processes import folders


def test_deep_locked_and_linked_folders_go_and_what_links_point_to_stays(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("here")
    mode = outside.stat().st_mode
    folder = tmp_path / "folder"
    (folder / "locked").mkdir(parents=True)
    (folder / "locked/file").write_text("here")
    (folder / "locked").chmod(0)
    (folder / "link").symlink_to(outside)
    before = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    for _ in range(5000):
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(before)
    os.close(before)
    # However busy the machine is.
    assert folders.remove(folder, 60.0)
    assert not folder.exists()
    assert (outside / "file").read_text() == "here"
    assert outside.stat().st_mode == mode


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    folders.remove(tmp_path / "nothing")


def test_a_link_in_a_folder_s_place_goes_and_what_it_points_to_stays_as_it_is(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("here")
    (tmp_path / "outside/file").chmod(0o400)
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    folders.remove(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "outside/file").stat().st_mode & 0o777 == 0o400


@pytest.fixture
def large(tmp_path):
    """More files than go in a few milliseconds."""
    made = tmp_path / "large"
    made.mkdir()
    for number in range(20_000):
        (made / str(number)).touch()
    return made


def test_nobody_waits_longer_than_told_and_what_is_left_goes_all_the_same(large):
    (large / "0").unlink()
    (large / "0").mkdir(mode=0)
    begun = time.monotonic()
    assert not folders.remove(large, timeout_s=0.002)
    assert time.monotonic() - begun < 5.0
    assert folders.removing()
    while folders.removing():
        assert time.monotonic() - begun < 60.0
        time.sleep(0.02)
    assert not large.exists()


def test_a_removal_that_goes_on_ends_with_the_folder_above_it(large, monkeypatch, capsys):
    monkeypatch.setattr(folders, "END_S", 0.0)
    assert not folders.remove(large, timeout_s=0.0)
    folders.remove_at_end(large.parent)
    assert not folders.removing()
    assert "is left" in capsys.readouterr().err
    monkeypatch.undo()
    folders.remove_at_end(large.parent)
    assert not large.parent.exists()


def test_what_stays_at_the_end_is_named(large, monkeypatch, capsys):
    monkeypatch.setattr(folders, "END_S", 0.002)
    folders.remove_at_end(large)
    assert f"{large} is left: it could not be removed (in 0.002 s at the most)" in capsys.readouterr().err
    monkeypatch.undo()
    folders.remove_at_end(large)
    assert not large.exists()
    assert capsys.readouterr().err == ""


def test_without_room_for_a_process_a_folder_stays(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert not folders.remove(tmp_path)
    assert tmp_path.exists()


@pytest.fixture
def folder(tmp_path):
    """What a build could leave behind, beside a file that is none of its own."""
    (tmp_path / "secret").write_text("secret")
    made = tmp_path / "folder"
    (made / "0/lean").mkdir(parents=True)
    (made / "0/lean/tail.so").write_text("library")
    (made / "link.so").symlink_to(tmp_path / "secret")
    (made / "up").symlink_to(tmp_path)
    (made / "0/here").symlink_to(made / "0/lean")
    os.mkfifo(made / "pipe.so")
    return made


def test_a_result_is_copied_and_others_may_read_it(folder, tmp_path):
    assert folders.copy_out(folder, "0/lean/tail.so", tmp_path / "copy.so", 7) == 7
    assert (tmp_path / "copy.so").read_text() == "library"
    assert (tmp_path / "copy.so").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "name",
    [
        *("link.so", "up/secret", "0/here/tail.so", "../secret", "0/../../secret", "/etc/passwd", "//etc/passwd"),
        *("pipe.so", "0/lean", ".", "", "0/lean/tail.so/x", "none.so", "a\0b", "\ud800", "x" * 300),
    ],
)
def test_nothing_else_is_copied(folder, tmp_path, name):
    with pytest.raises((OSError, ValueError)):
        folders.copy_out(folder, name, tmp_path / "copy.so", 100)
    assert not (tmp_path / "copy.so").exists()


def test_a_file_that_is_too_large_is_not_copied(folder, tmp_path):
    with pytest.raises(OSError, match="larger than 6 bytes"):
        folders.copy_out(folder, "0/lean/tail.so", tmp_path / "copy.so", 6)
    assert not (tmp_path / "copy.so").exists()


MAKER = """
import sys
from harness.places import CHECKOUT
from harness.processes import folders
print(folders.temporary("test"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def maker(tmp_path, monkeypatch):
    """Another process that has made a temporary folder, and the folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(folders, "UNLOCKED_S", 0.0)
    command = [sys.executable, "-c", MAKER]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=CHECKOUT, env=environment) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_what_a_killed_process_left_is_removed_by_the_next_one(maker):
    process, folder = maker
    (folder / "file").write_text("here")
    process.kill()
    process.wait()
    own = folders.temporary("test")
    assert not folder.exists()
    folders.remove_at_end(own)
    assert not own.exists()


def test_what_belongs_to_a_process_that_is_alive_stays(maker):
    _, folder = maker
    folders.remove_at_end(folders.temporary("test"))
    assert folder.exists()


def test_nor_is_removed_what_has_just_been_made_or_is_no_folder_of_ours(maker, monkeypatch):
    process, folder = maker
    process.kill()
    process.wait()
    (folder.parent / "assay-test.link").symlink_to(folder)
    monkeypatch.setattr(folders, "UNLOCKED_S", 60.0)
    folders.remove_at_end(folders.temporary("test"))
    assert folder.exists()
    assert (folder.parent / "assay-test.link").is_symlink()


def test_the_umask_is_what_it_was_when_the_last_one_is_done_with_it():
    before = os.umask(0o077)
    try:
        first, second = folders.open_to_others(), folders.open_to_others()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert os.umask(0o022) == 0o022
        second.__exit__(None, None, None)
        assert os.umask(before) == 0o077
    finally:
        os.umask(before)


def test_a_folder_that_only_has_such_a_name_is_somebodys_own(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(folders.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(folders, "UNLOCKED_S", 0.0)
    mine = tmp_path / "assay-results.v2"
    mine.mkdir()
    (mine / "records.jsonl").write_text("precious")
    folders.remove_at_end(folders.temporary("test"))
    assert (mine / "records.jsonl").read_text() == "precious"
