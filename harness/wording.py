"""Makes text from outside safe to keep and to show: bounded, valid Unicode, no control or hidden characters."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Unicode's default-ignorable letters, and two that are drawn blank.
UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# On one letter; no script needs more once composed.
MOST_MARKS = 2
# In bytes, so that file names can be made of several names.
LONGEST_NAME = 120
# Names for PyTorch's own baselines only, and the suffix that `name` itself appends.
RESERVED = re.compile(r"baseline:|.*~[0-9a-f]{20}\Z", re.DOTALL)


def a(noun: str) -> str:
    """With its article. Types are called `uint8` and `Unpickler`: of vowels, u counts as a consonant."""
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


# As JSON and YAML call what msgspec names by Python's and its own words.
TYPES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of keys",
    "null": "nothing",
}


def without_types(message: str) -> str:
    """A message of msgspec's in words for people who do not know its types."""
    said = re.sub("`([a-z]+)`", lambda found: TYPES.get(found[1], found[0]), message)
    return f"{said[:1].lower()}{said[1:]}"


def plain(text: str, longest: int, kept: str = "\n\t") -> str:
    """At most `longest` printable characters of `text`, and those in `kept`.

    Control characters, changes of writing direction, characters without width, halves of surrogate pairs and heaps of
    marks are replaced.
    """
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    if not cut.isprintable():
        cut = "".join(letter if letter.isprintable() or letter in kept else REPLACEMENT for letter in cut)
    return with_few_marks(cut)


def with_few_marks(text: str) -> str:
    """The text without marks beyond MOST_MARKS on one letter, which would be drawn over the lines around it."""
    if text.isascii():
        return text
    letters, marks = [], 0
    for letter in text:
        marks = marks + 1 if unicodedata.category(letter).startswith("M") else 0
        letters.append(letter if marks <= MOST_MARKS else REPLACEMENT)
    return "".join(letters)


def lines(text: str) -> list[str]:
    """The lines of a source as compilers and interpreters count them: to them, unlike to `str.splitlines`, a form feed
    ends no line, nor does a separator of Unicode."""
    found = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return found if found[-1] else found[:-1]


def is_unicode(text: str) -> bool:
    """Whether a text, as a path, has no bytes in it that are not valid UTF-8."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def name(raw: str, longest: int = LONGEST_NAME) -> str:
    """The name of a file or folder in records, logs and reports: its own name, if that is safe everywhere and no other
    looks like it.

    Any other name is repaired and gets a digest of itself, so that no two become the same, or look the same.
    """
    seen = raw.isprintable() and "/" not in raw and raw == _as_seen(raw)
    if seen and len(raw.encode()) <= longest and not RESERVED.match(raw):
        return raw
    return told_apart(re.sub("[:/]", "_", _as_seen(plain(raw, longest, kept=""))), raw, longest)


def told_apart(shown: str, raw: str, longest: int = LONGEST_NAME) -> str:
    """The name `shown`, cut where that must be, with a digest of `raw`; no file's own name is like that."""
    digest = hashlib.sha256(raw.encode(errors="surrogatepass")).hexdigest()[:20]
    return f"{shown.encode()[: longest - 21].decode(errors='ignore').rstrip()}~{digest}"


def _as_seen(raw: str) -> str:
    """The name as a reader tells it from others: composed, without blanks at its ends, two in a row, or what shows
    nothing."""
    words = " ".join(with_few_marks(unicodedata.normalize("NFKC", UNSEEN.sub(REPLACEMENT, raw))).split())
    # A mark would be drawn on what stands before the name.
    return f"{REPLACEMENT}{words}" if words and unicodedata.category(words[0]).startswith("M") else words


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with each text in it changed, also in lists and in values of mappings."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: each_text(item, change) for key, item in value.items()}
    return value
