"""Patterns and folders in which links lead in circles."""

import glob
from pathlib import Path

import pytest

from harness.catalog import search, solutions
from harness.errors import UsageError


@pytest.fixture
def folder(tmp_path):
    own = tmp_path / "set/problem"
    own.mkdir(parents=True)
    for name in ("a", "b", ".hidden", "_private"):
        (own / f"{name}.py").touch()
        (own / name).mkdir()
        (own / name / "c1.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    "ending", ["**/*.py", "**", "*/*/[ab].py", "*/**/c?.py", "**/problem/**", "set/../set/*", "no/*"]
)
def test_patterns_match_as_glob_does(ending, folder):
    found = set(search.matches(folder / ending))
    whole = {Path(path) for path in glob.glob(str(folder / ending), recursive=True)}
    # Files below `**` at the end are found in its folders.
    assert found == ({path for path in whole if path.is_dir()} if ending.endswith("**") else whole)


def test_a_pattern_of_the_folder_one_is_in(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert search.matches(Path("**/a.py")) == [Path("set/problem/a.py")]
    assert search.matches(Path("*")) == [Path("set")]


@pytest.mark.parametrize("ending", ["", "**", "**/*.py", "**/**/**/*.py", "*/*/*.py", "**/*/**"])
def test_links_that_lead_in_circles_are_not_followed(ending, folder):
    for place in (folder, folder / "set", folder / "set/problem"):
        for name in ("l1", "l2", "l3"):
            (place / name).symlink_to(".")
    names = {place.name for place in solutions.discover([str(folder / ending)])}
    assert names >= {"a", "b"}


def test_more_folders_than_anybody_means_are_an_error(folder, monkeypatch):
    monkeypatch.setattr(search, "MOST_FOLDERS", 4)
    with pytest.raises(UsageError, match="more than 4 folders"):
        solutions.discover([str(folder)])
    with pytest.raises(UsageError, match="more than 4 folders"):
        solutions.discover([str(folder / "**/*.py")])


@pytest.mark.parametrize(
    "pattern", ["a" * 5000, "a" * 300 + ".py", "~/" + "a" * 5000, "problems/" + "a" * 5000 + "/*.py"]
)
def test_a_name_too_long_for_the_system_matches_nothing(pattern):
    with pytest.raises(UsageError, match=r"a' matches no Python file|a…' matches no Python file|py' matches no Python"):
        solutions.discover([pattern])
