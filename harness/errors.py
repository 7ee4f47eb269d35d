"""The one exception for mistakes a user can mend; the command line prints it as a sentence and exits with 2."""

import difflib
from collections.abc import Iterable


class UsageError(Exception):
    """A wrong argument, config, problem or path; `str()` is one sentence with the place and the mend."""


def nearest(wrong: str, valid: Iterable[str]) -> str:
    """A clause that names the closest valid word, or all of them where none is close."""
    words = sorted(valid)
    close = difflib.get_close_matches(wrong, words, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"valid: {', '.join(words)}" if words else "nothing is valid here"
