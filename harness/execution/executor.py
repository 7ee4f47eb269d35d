"""Where jobs are carried out: the seam between a session and machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from harness.catalog.jobs import Job
from harness.records import Record

ReportPhase = Callable[[str, str, str], None]
"""Called with a slot's name, a job's title and what is being done to it; an empty phase: nothing any more."""


class Executor(Protocol):
    """Carries out jobs, in whatever order suits, and yields each record once it is there."""

    def run(self, jobs: list[Job], report_phase: ReportPhase) -> Iterator[Record]:
        """Every job gets exactly one record. Closing the iterator early ends everything that was started."""
