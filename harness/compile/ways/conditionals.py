"""Macros by which a source can tell smaller headers from torch's own, as `#if TORCH_VERSION_MAJOR < 2` does. No torch.

A source whose conditionals ask for one of them, or that defines what headers ask for, is built with the stock headers.
Which macros these are is found out once for a machine, from what the preprocessor defines at the end of each set of
headers (macro_survey.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from harness.compile.own_headers import INCLUDE

CONDITIONS = ("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef")
DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(\w+)(.*)$", re.MULTILINE)
DEFINED = re.compile(r"^#define (\w+)(.*)$", re.MULTILINE)
# They count lines of headers.
COUNTERS = re.compile(r"\b__(?:COUNTER|INCLUDE_LEVEL)__\b")
# What asks for no macro by its name.
OPERATORS = frozenset(("defined", "and", "or", "not", "true", "false", "__has_include", "__has_attribute"))


class Macros(msgspec.Struct, frozen=True, kw_only=True):
    """`cpp` and `cuda`: not the same in all sets of headers, for the C++ compiler and for nvcc.

    `asked`: what the headers' own conditionals depend on.
    """

    cpp: frozenset[str]
    cuda: frozenset[str]
    asked: frozenset[str]


def read(file: Path) -> Macros | None:
    """What the survey has found; None where there is no such file."""
    return msgspec.json.decode(file.read_bytes(), type=Macros) if file.is_file() else None


def definitions(dump: str) -> dict[str, str]:
    """The macros of `cpp -dM`, name -> parameters and body."""
    return dict(DEFINED.findall(dump))


def unlike(dumps: Iterable[Mapping[str, str]]) -> set[str]:
    """Names that are not defined the same way in all of them."""
    found = list(dumps)
    return {name for one in found for name, body in one.items() if any(other.get(name) != body for other in found)}


def asked(code: str) -> set[str]:
    """The names on which it depends what lines of `code` count; through its own macros, too. Comments are gone."""
    bodies: dict[str, set[str]] = {}
    waiting: set[str] = set()
    for word, rest in DIRECTIVE.findall(code):
        names = set(re.findall(r"[A-Za-z_]\w*", rest))
        if word in CONDITIONS:
            waiting |= names
        elif word == "define":
            own = re.match(r"\s*(\w+)", rest)
            if own:
                bodies[own[1]] = bodies.get(own[1], set()) | names
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting |= bodies.get(name, set())
    return found - OPERATORS


def obstacle(code: str, macros: Macros | None, *, cuda: bool) -> str:
    """Why a text has to be read with the stock headers; empty where it need not. Comments are gone.

    Without `macros`, any name that is not the compiler's own may differ.
    """
    if counter := COUNTERS.search(code):
        return f"counts with {counter[0]}"
    names = asked(code)
    if macros is None:
        telling = {name for name in names if not name.startswith("__")}
    else:
        telling = names & (macros.cuda if cuda else macros.cpp)
    if telling:
        return f"asks for {min(telling)}"
    changed = _changed_before_a_header(code)
    changed &= changed if macros is None else macros.asked
    return f"changes {min(changed)} before a header" if changed else ""


def defines(flags: Iterable[str], macros: Macros) -> bool:
    """Whether compiler flags change a macro that headers ask for."""
    names = {re.split(r"[=(]", flag[2:])[0].strip() for flag in flags if flag[:2] in ("-D", "-U")}
    return bool(names & macros.asked)


def _changed_before_a_header(code: str) -> set[str]:
    """What a text defines, or no longer defines, above an #include."""
    *_, last = (-1, *(match.start() for match in INCLUDE.finditer(code)))
    directives = (match for match in DIRECTIVE.finditer(code) if match.start() < last)
    names = (re.match(r"\s*(\w+)", match[2]) for match in directives if match[1] in ("define", "undef"))
    return {name[1] for name in names if name}
