"""The site: the repository's Markdown pages as they lie, and API pages from docstrings. `make docs` builds it.

The source folder is the repository's root, so that a link works on the site as it does in the repository.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.version import VERSION  # noqa: E402 - the import needs the path above

project = "Assay"
author = "the Assay contributors"
copyright = "the Assay contributors; Apache-2.0"
version = release = VERSION

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinxcontrib.mermaid"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"),
    *("solutions/README.md", "results/README.md", "tests/corpus/README.md"),
]
# Nothing of these is a page; unlisted, each file below them would be looked at.
exclude_patterns = [
    ".*",
    "build",
    "harness",
    "benchmarks",
    "packs",
    "tests/[a-bd-z]*",
    "tests/c[a-np-z]*",
    "results/*/*",
]

myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]

autodoc_default_options = {"member-order": "bysource", "undoc-members": True, "exclude-members": "__new__, __init__"}
# What single backquotes are in docstrings.
default_role = "literal"
autodoc_class_signature = "separated"

html_theme = "furo"
html_title = f"Assay {VERSION}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
# The site's first page, at the address that a browser asks for.
html_additional_pages = {"index": "redirect.html"}


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", _contents)


def _contents(app, page, source):
    """Make the tables of the first page the contents of the site, each with the pages of its first column."""
    if page != root_doc:
        return
    for caption, table in re.findall(r"^\*\*(.+)\*\*\n\n((?:\|.*\n)+)", source[0], re.MULTILINE):
        cells = "\n".join(re.findall(r"^\| (.+?) \|", table, re.MULTILINE))
        pages = "\n".join(re.findall(r"\]\((\S+)\.md\)", cells))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"
