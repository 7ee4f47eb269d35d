"""The root of all exceptions that this package raises of its own, and the one for mistakes that a user can mend."""

import difflib
from collections.abc import Iterable


class AssayError(Exception):
    """Whatever else a class of ours is, too (ValueError, RuntimeError), it is this."""


class UsageError(AssayError):
    """A wrong argument, config, problem or path; `str()` is one sentence with the place and the mend.

    The command line prints it and exits with 2.
    """


class BadValue(AssayError, ValueError):
    """A number that a function of ours cannot take; the caller's mistake, not a user's."""


def nearest(wrong: str, valid: Iterable[str]) -> str:
    """A clause that names the closest valid word, or all of them where none is close."""
    words = sorted(valid)
    close = difflib.get_close_matches(wrong, words, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"valid: {', '.join(words)}" if words else "nothing is valid here"
