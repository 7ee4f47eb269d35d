"""What an import leaves, bounded: a small file can hold millions of rows that are none."""

from __future__ import annotations

from collections import Counter

from harness.catalog.claims import Left, Origin

MOST_LISTED, MOST_REASONS = 20_000, 1000


class Remainder:
    """The first things that were left, each with its place; of the others, how many there are by file and reason."""

    def __init__(self) -> None:
        self._listed: list[Left] = []
        self._more = Counter[tuple[str, str]]()

    def append(self, one: Left) -> None:
        if len(self._listed) < MOST_LISTED:
            self._listed.append(one)
            return
        kind = (one.origin.file, one.reason)
        known = kind in self._more or len(self._more) < MOST_REASONS
        self._more[kind if known else ("other files", "for other reasons")] += 1

    def all(self) -> list[Left]:
        """Each of the first, and one for each kind of the others, with their number."""
        return self._listed + [
            Left(origin=Origin(file=file, row=f"{count} more"), reason=reason)
            for (file, reason), count in self._more.items()
        ]
