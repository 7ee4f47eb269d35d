"""Names of files and folders made from names of others: they cannot leave a folder, hide in it or be a pattern."""

from __future__ import annotations

import hashlib
import re

LONGEST = 80
STRANGE = re.compile(r"[^A-Za-z0-9_-]+")


def safe(raw: str, longest: int = LONGEST) -> str:
    """A name of at most `longest` letters, digits, `_` and `-` that does not begin with either sign.

    Any other name is repaired and gets a digest of itself, so that no two become the same.
    """
    kept = STRANGE.sub("_", raw[: 4 * LONGEST]).lstrip("_-")[:longest]
    if kept == raw and kept:
        return raw
    digest = hashlib.sha256(raw.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{kept[: longest - 9] or 'x'}-{digest}"


def of_sample(name: str, number: int) -> str:
    """`sample_3`, or `model_a-sample_3`: whatever the name is, reports can tell the number (records.SAMPLE)."""
    tail = f"sample_{number}"
    return f"{safe(name, LONGEST - len(tail) - 1)}-{tail}" if name else tail


class Names:
    """Gives each file of a folder a name that no other has, on file systems without upper case, too."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def free(self, folder: str, name: str) -> str:
        """`name`, or `name_2`, `name_3`, ... if that is taken."""
        first, tried = f"{folder}/{name}".casefold(), name
        while f"{folder}/{tried}".casefold() in self._taken:
            self._taken[first] += 1
            tried = f"{name}_{self._taken[first]}"
        self._taken[f"{folder}/{tried}".casefold()] = 1
        return tried
