"""Where things are looked for, kept, and not named."""

import subprocess
from pathlib import Path

import pytest

from harness import environment, places
from harness.config import load
from harness.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]


def test_what_is_not_in_the_current_folder_is_the_library_s(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert places.found("configs/quickstart.yaml") == ROOT / "configs/quickstart.yaml"
    assert places.found("solutions/attention/*/comp*.py") == ROOT / "solutions/attention/*/comp*.py"
    assert load(Path("configs/quickstart.yaml")).variants == ["small"]
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/quickstart.yaml").write_text("variants: [own]")
    assert load(Path("configs/quickstart.yaml")).variants == ["own"]


@pytest.mark.parametrize(
    "name", ["README.md", "harness/cli.py", "configs/none.yaml", "problems/none/*.py", "/configs", ""]
)
def test_nothing_else_is_looked_for_there(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert places.found(name) == Path(name)


@pytest.mark.parametrize(
    ("surroundings", "named", "folder"),
    [
        ({}, "", "/home/she/.cache/assay"),
        ({"XDG_CACHE_HOME": "/x"}, "", "/x/assay"),
        ({"XDG_CACHE_HOME": "relative"}, "", "/home/she/.cache/assay"),
        ({"XDG_CACHE_HOME": "/x", "ASSAY_CACHE": "/own"}, "", "/own"),
        ({"ASSAY_CACHE": "/own"}, "~/named", "/home/she/named"),
    ],
)
def test_one_rule_says_where_the_cache_is(surroundings, named, folder, monkeypatch):
    for name in ("XDG_CACHE_HOME", "ASSAY_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/she"} | surroundings).items():
        monkeypatch.setenv(name, value)
    assert places.cache(named) == Path(folder)


def test_who_has_no_home_is_told_to_name_a_cache(monkeypatch):
    for name in ("XDG_CACHE_HOME", "ASSAY_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(UsageError, match="ASSAY_CACHE"):
        places.cache()


@pytest.mark.parametrize(
    ("home", "text", "portable"),
    [
        ("/home/she", "in /home/she/kernels/a.py, /home/she: 2", "in ~/kernels/a.py, ~: 2"),
        ("/home/she", "/home/sheila/a.py, /srv/home/she/a.py", "/home/sheila/a.py, /srv/home/she/a.py"),
        ("/home/she", f"{ROOT}/problems/a.py", "problems/a.py"),
        ("/", "2 / 3 GB/s of /usr/lib", "2 / 3 GB/s of /usr/lib"),
        ("", "2 / 3 GB/s of /usr/lib", "2 / 3 GB/s of /usr/lib"),
        ("lib", "/usr/lib", "/usr/lib"),
    ],
)
def test_a_record_names_no_home(home, text, portable, monkeypatch):
    monkeypatch.setenv("HOME", home)
    assert places.portable(text) == portable


def git(folder, *words):
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_commit_is_named_where_the_package_s_own_checkout_is_one(tmp_path, monkeypatch):
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--allow-empty", "--quiet", "--message", "somebody's own")
    head = git(tmp_path, "rev-parse", "--short=12", "HEAD")
    monkeypatch.setattr(places, "CHECKOUT", tmp_path.resolve())
    assert environment.commit() == head
    (tmp_path / "vendored").mkdir()
    monkeypatch.setattr(places, "CHECKOUT", tmp_path.resolve() / "vendored")
    assert environment.commit() == ""
    # As in a hook of that repository.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert environment.commit() == ""
    monkeypatch.setattr(places, "CHECKOUT", None)
    assert environment.commit() == ""
