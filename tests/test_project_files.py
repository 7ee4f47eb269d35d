"""The files by which a project presents itself: one version everywhere, forms that the host reads, a short README."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from harness.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))


def test_the_citation_names_version_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (VERSION, project["license"])


def test_the_changelog_has_this_version_and_dates_for_each():
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0][0] == VERSION
    assert all(re.search(r"\d{4}-\d\d-\d\d", said) for _, said in versions)


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_what_the_host_asks_for(form):
    read = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= set(read)
    fields = [part for part in read["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in fields}) == len(fields)
    assert all(
        part["type"] in ("textarea", "input", "dropdown", "checkboxes") and part["attributes"]["label"]
        for part in fields
    )


def test_the_readme_stays_under_two_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def test_pictures_are_small():
    assert all(path.stat().st_size < 200_000 for path in (ROOT / "docs/images").iterdir())


def test_requirements_pin_what_the_extras_name():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = {line.partition("==")[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line}
    named = {re.split(r"[><=;]", wanted)[0] for extra in ("test", "docs") for wanted in extras[extra]}
    assert named <= pinned
