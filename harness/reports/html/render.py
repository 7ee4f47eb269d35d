"""Turns templates into one page: everything inside, nothing from outside, and data that is never markup."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness import wording
from harness.reports import text

HERE = Path(__file__).parent / "templates"
# No text of a record is longer; a source has its own bound.
LONGEST = 1_000_000


def page(template: str, **values: Any) -> str:
    """The page that a template makes of these values."""
    style, script = _file("page.css"), _file("page.js")
    # The browser itself refuses whatever is not of this page: other scripts and styles, and every connection.
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return _ENVIRONMENT.get_template(template).render(
        style=Markup(style),
        script=Markup(script),
        policy=policy,
        text=text,
        **values,
    )


def _shown(value: Any) -> Any:
    """What a template prints: visible characters only, so that no text turns around, hides or imitates another."""
    if value is None:
        return ""
    # The engine's own escaping comes after this.
    return value if isinstance(value, Markup) else wording.plain(str(value), LONGEST)


def _file(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
