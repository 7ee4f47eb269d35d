"""What lies beside the records: candidates' sources, logs and profiles, as far as they can be read and as much as
fits."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness import wording
from harness.catalog import solutions, sources
from harness.errors import UsageError
from harness.instruments import insight
from harness.instruments.insight import Insight
from harness.places import real

LONGEST_LOG = 8000
LONGEST_INSIGHT, MOST_INSIGHTS = 1_000_000, 1000


@dataclass(frozen=True)
class Excerpt:
    """Lines of a source. `first` is the number of the first; `marked` are numbers of lines; `total` is how many the
    file has."""

    lines: list[str]
    first: int
    total: int
    marked: list[int]

    @property
    def whole(self) -> bool:
        return len(self.lines) == self.total

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def places(manifest: Mapping[str, Any]) -> dict[tuple[str, str], Path]:
    """The file of each candidate, by problem and name, among the solutions that the run's config names."""
    patterns = (manifest.get("config") or {}).get("solutions")
    found: dict[tuple[str, str], Path] = {}
    for pattern in patterns if isinstance(patterns, list) else []:
        try:
            here = solutions.discover([str(pattern)])
        except UsageError:
            # Another machine's, or moved since.
            continue
        found |= {(one.problem, one.name): one.path for one in here}
    return found


def source(path: Path, content: str) -> str:
    """The text of a candidate's file; empty where it cannot be read, or is not what was evaluated (by its digest)."""
    try:
        data, now = sources.digested(path)
    except sources.LoadFault:
        return ""
    return data.decode(errors="replace") if now == content else ""


def excerpt(text: str, marked: Iterable[int], most: int) -> Excerpt:
    """As many lines as `most` characters allow: around the first marked line if there is one, else from the start."""
    lines = wording.lines(text) or [""]
    marks = sorted({line for line in marked if 1 <= line <= len(lines)})
    first = last = marks[0] - 1 if marks else 0
    room = most - len(lines[first])
    # Grows by a line at a time, on both sides.
    while room > 0 and (first > 0 or last < len(lines) - 1):
        if first > 0 and (room := room - len(lines[first - 1]) - 1) >= 0:
            first -= 1
        if last < len(lines) - 1 and (room := room - len(lines[last + 1]) - 1) >= 0:
            last += 1
    kept = [line if len(line) <= most else f"{line[:most]}…" for line in lines[first : last + 1]]
    return Excerpt(kept, first + 1, len(lines), [line for line in marks if first < line <= last + 1])


def insights(run_dir: Path) -> dict[str, list[Insight]]:
    """What instruments told of candidates of this run, by their titles; files that are no such thing are left out."""
    found: dict[str, list[Insight]] = {}
    for path in sorted((run_dir / insight.FOLDER).glob("*.json"))[:MOST_INSIGHTS]:
        try:
            if real(path).is_relative_to(real(run_dir)):
                one = msgspec.json.decode(sources.regular(path, LONGEST_INSIGHT), type=Insight)
                found.setdefault(one.candidate, []).append(one)
        except (OSError, UsageError, sources.LoadFault, msgspec.DecodeError, RecursionError):
            continue
    return found


def log(run_dir: Path, name: str) -> str:
    """The end of a log of this run; empty where there is none, it is empty, or it is no file of the run's."""
    path = run_dir / name
    try:
        if not name or not real(path).is_relative_to(real(run_dir)):
            return ""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            file.seek(max(0, os.fstat(descriptor).st_size - LONGEST_LOG))
            return file.read(LONGEST_LOG).decode(errors="replace").strip()
    except (OSError, ValueError, UsageError):
        return ""


def fair_share(sizes: Iterable[int], most: int) -> int:
    """The largest number of characters that each text may keep so that together they have at most `most`."""
    left, ordered = most, sorted(sizes)
    for number, size in enumerate(ordered):
        share = left // (len(ordered) - number)
        if size > share:
            return share
        left -= size
    return most


def size(path: Path) -> int:
    """The size of a file in bytes; 0 where it cannot be read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
