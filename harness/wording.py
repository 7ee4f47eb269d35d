"""Makes text from outside safe to keep and to show: bounded, valid Unicode, no control or hidden characters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# In bytes, so that file names can be made of several names.
LONGEST_NAME = 120
# Names for PyTorch's own baselines only, and the suffix that `name` itself appends.
RESERVED = re.compile(r"baseline:|.*~[0-9a-f]{20}\Z", re.DOTALL)


def plain(text: str, longest: int, kept: str = "\n\t") -> str:
    """At most `longest` printable characters of `text`, and those in `kept`.

    Control characters, changes of writing direction, characters without width and halves of surrogate pairs are
    replaced.
    """
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(letter if letter.isprintable() or letter in kept else REPLACEMENT for letter in cut)


def name(raw: str, longest: int = LONGEST_NAME) -> str:
    """The name of a file or folder in records, logs and reports: its own name, if that is safe everywhere.

    Any other name is repaired and gets a digest of itself, so that no two become the same.
    """
    if raw.isprintable() and len(raw.encode()) <= longest and not RESERVED.match(raw):
        return raw
    digest = hashlib.sha256(raw.encode(errors="surrogatepass")).hexdigest()[:20]
    mended = plain(raw, longest, kept="").replace(":", "_").encode()[: longest - 21]
    return f"{mended.decode(errors='ignore')}~{digest}"


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with each text in it changed, also in lists and in values of mappings."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: each_text(item, change) for key, item in value.items()}
    return value
