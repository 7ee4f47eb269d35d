"""Numbers and words of foreign JSON, whatever type they have."""

from __future__ import annotations

import math
import re

from harness.catalog.claims import CORRECT, INCORRECT, NOT_COMPILED

# No code, time or name at all, written by one language or another.
NOTHING = {"", "none", "null", "nan", "n/a"}
WHOLE = re.compile(r"(\d{1,6})(?:\.0{1,20})?", re.ASCII)
WORDS = {
    CORRECT: {"true", "correct", "right", "pass", "passed", "ok", "success", "yes", "1"},
    INCORRECT: {"false", "incorrect", "wrong", "fail", "failed", "mismatch", "no", "0"},
    NOT_COMPILED: {"not_compiled", "compile_error", "compilation_error", "compile_failed", "compilation_failed"},
}


def positive(value: object) -> float | None:
    """A finite number above zero, also as a text like `1.39` or `1.39x`; None for anything else."""
    if isinstance(value, str) and len(value) <= 50:
        value = _number(value.strip().removesuffix("x"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if 0 < number < math.inf else None


def ratio(above: float | None, below: float | None) -> float | None:
    """`above / below`, where both are known and the result is a number above zero."""
    return positive(above / below) if above and below else None


def whole(value: object) -> int | None:
    """A number of at most six digits, also as a text; None for anything else.

    Also 1.0: pandas makes floats of a column as soon as one of its values is missing.
    """
    if isinstance(value, str):
        found = WHOLE.fullmatch(value.strip())
        return int(found[1]) if found else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 10**6 and value == int(value) else None


def nothing(value: object) -> bool:
    """Whether a value is only a way to say that there is none."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return missing or (isinstance(value, str) and value.strip()[:20].lower() in NOTHING)


def status(value: object) -> str:
    """Which of the claims a word, a number or a truth value is; empty if none."""
    word = str(value)[:50].strip().lower().replace(" ", "_") if isinstance(value, str | bool) else ""
    word = str(whole(value)) if isinstance(value, int | float) and not isinstance(value, bool) else word
    return next((claim for claim, words in WORDS.items() if word in words), "")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
