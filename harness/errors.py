"""The root of all exceptions of this package, and the exception for errors that a user can fix."""

import difflib
from collections.abc import Callable, Iterable
from types import CodeType
from typing import TypeVar

# Functions of ours that call what a file under evaluation defines.
DOORS = set[CodeType]()
Function = TypeVar("Function", bound=Callable[..., object])


class AssayError(Exception):
    """The base of every exception class of this package; some are ValueError or RuntimeError, too."""


class UsageError(AssayError):
    """A wrong argument, config, problem or path; `str()` is one sentence that says where, and how to fix it.

    The command line prints it and exits with 2.
    """


class BadValue(AssayError, ValueError):
    """A number that a function of this package cannot accept; an error of the caller, not of the user."""


def door(function: Function) -> Function:
    """Marks a function that calls what a file under evaluation defines, with nothing of ours in between.

    An exception whose last function of ours is no door is our own mistake, not the file's. The mark costs no time.
    """
    DOORS.add(function.__code__)
    return function


# No word that has a meaning here is longer.
LONGEST_WORD = 100


def nearest(wrong: str, valid: Iterable[str]) -> str:
    """A clause that names the closest valid word, or all valid words if none is close."""
    words = sorted(valid)
    # It takes long to compare what is long, and whoever sends megabytes means none of these.
    close = difflib.get_close_matches(wrong[:LONGEST_WORD], words, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"valid: {', '.join(words)}" if words else "nothing is valid here"
