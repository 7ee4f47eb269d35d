"""Deep links: `#problem/<problem>/<variant>/<precision>` and `#candidate/<the same>/<candidate>`."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from harness.records import Record
from harness.reports.groups import Group


class Anchors:
    """The id of each group and each candidate of a report: unique, and the same in every report of these records."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._of: dict[int, str] = {}
        self._taken: set[str] = set()
        for group in groups:
            place = f"{group.problem}/{group.variant}/{group.precision}"
            self._add(group, f"problem/{place}")
            for entry in group.entries:
                self._add(entry.record, f"candidate/{place}/{entry.record.candidate}")

    def of(self, what: Group | Record) -> str:
        """Without the `#`."""
        return self._of[id(what)]

    def _add(self, what: Group | Record, words: str) -> None:
        # Percent signs are part of the id: a browser first looks for the fragment as it is written.
        base = quote(words, safe="/:~")
        number, name = 1, base
        while name in self._taken:
            # A second baseline, or another device.
            number += 1
            name = f"{base}~{number}"
        self._taken.add(name)
        self._of[id(what)] = name
