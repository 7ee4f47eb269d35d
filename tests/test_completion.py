"""`assay completion`: what a shell offers after sourcing the script."""

import shutil
import subprocess

import pytest

from harness import cli
from harness.options import options

ASK = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()
_shtab_assay assay "${{COMP_WORDS[COMP_CWORD]}}"
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    "words, offered",
    [
        ("assay re", "report"),
        ("assay report --f", "--format"),
        ("assay report --format h", "html"),
        ("assay run mi", "mine.yaml"),
        ("assay check mi", "mine.yaml"),
    ],
)
def test_bash_offers_what_fits(words, offered, tmp_path):
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "script").write_text(options.completion("bash"))
    ask = ASK.format(script=tmp_path / "script", words=words)
    said = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert said.stdout.split() == [offered]
    assert not said.stderr


def test_zsh_gets_a_script_of_its_own(capsys):
    assert cli.main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef assay\n")
