"""The site builds without a warning: no link leads nowhere, and no page is left out of the contents."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "-c", "docs"]
    command += ["-d", str(folder / "doctrees"), ".", str(folder / "html")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


@pytest.mark.slow
def test_every_page_of_the_docs_is_built(site):
    pages = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_the_first_page_leads_to_the_index(site):
    assert "url=docs/index.html" in (site / "index.html").read_text()


def test_the_reference_comes_from_the_docstrings(site):
    page = (site / "docs/reference.html").read_text()
    assert all(f'id="harness.{name}"' in page for name in ("records.Record", "config.Config", "errors.UsageError"))
