"""The one notion of what is code, comment or literal in C++ and CUDA; joined, the tokens of a text are that text.

Coarse: code comes in runs, with the words and numbers in it. Every pattern takes in what it has looked at, and the ends
of raw strings are found beforehand, so that the time is in proportion to the length, whatever a text is made of.
Standard library only: a script in the sandbox has no more.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """What a token is. HEADER: `#include` up to the end of the name; UNCLOSED: from a lone quote to the line's end."""

    CODE = auto()
    HEADER = auto()
    COMMENT = auto()
    STRING = auto()
    RAW_STRING = auto()
    CHARACTER = auto()
    UNCLOSED = auto()


class Token(NamedTuple):
    """A piece of a text, as it stands there."""

    kind: Kind
    text: str


# A line that goes on in the next; it may part any two characters, but means nothing in raw strings.
SPLICE = re.compile(r"\\\r?\n")
S = r"(?:\\\r?\n)*+"
RAW = rf'(?:u{S}8{S}|[uUL]{S})?+R{S}"[^()\\\s"]{{0,16}}+\('
HEADER = r"[ \t]*+(?:\#|%:)[ \t]*+include(?:_next)?+[ \t]*+(?:<[^>\n]*+>|\"[^\"\n]*+\")"
INSIDE = rf"(?:\\\r?\n|\\{S}[^\n]|[^QUOTE\\\n]++)*+"
TOKEN = re.compile(
    rf"""
    (?P<RAW_STRING>{RAW})
  | (?P<HEADER>^{HEADER})
  | (?P<CODE>
      (?: (?!{RAW})[^\W\d](?:{S}\w++)*+     # A word, which is not the prefix of a raw string.
        | \d(?:{S}'?{S}[\w.]++)*+           # A number; quotes part digits.
        | [^\w\\"'/\n]++
        | \\(?:\r?\n)?+
        | /(?!{S}[/*])
        | \n(?!{HEADER})
      )++ \n?+
    | \n)
  | (?P<COMMENT>/{S}/(?:\\\r?\n|[^\n])*+|/{S}\*.*?(?:\*{S}/|\Z))
  | (?P<STRING>"{INSIDE.replace("QUOTE", '"')}")
  | (?P<CHARACTER>'{INSIDE.replace("QUOTE", "'")}')
  | (?P<UNCLOSED>["'](?:\\\r?\n|[^\n])*+)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
RAW_END = re.compile(r'\)([^()\\\s"]{0,16})"')


def tokens(text: str) -> Iterator[Token]:
    """The text's tokens in their order."""
    ends: dict[str, list[int]] | None = None
    position = 0
    while match := TOKEN.match(text, position):
        kind, end = Kind[match.lastgroup or ""], match.end()
        if kind is Kind.RAW_STRING:
            ends = _raw_ends(text) if ends is None else ends
            quote = text.index('"', position)
            later = ends.get(text[quote + 1 : end - 1], [])
            place = bisect.bisect_left(later, end + end - quote)
            if place < len(later):
                end = later[place]
            else:
                # No raw string, then: a word and a quote.
                kind, end = Kind.CODE, quote
        yield Token(kind, text[position:end])
        position = end


def without_comments(text: str) -> str:
    """The text with continued lines joined, and a blank for each comment."""
    return "".join(
        " " if kind is Kind.COMMENT else piece if kind is Kind.RAW_STRING else SPLICE.sub("", piece)
        for kind, piece in tokens(text)
    )


def _raw_ends(text: str) -> dict[str, list[int]]:
    """Where each `)mark"` ends, by its mark, in order."""
    ends: dict[str, list[int]] = {}
    for found in RAW_END.finditer(text):
        ends.setdefault(found[1], []).append(found.end())
    return ends
