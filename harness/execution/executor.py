"""The interface between a session and the machines that carry out jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from harness.catalog.jobs import Job
from harness.records import Record

ReportPhase = Callable[[str, str, str], None]
"""Called with a slot's name, a job's title and its phase; an empty phase means that the slot is idle."""


class Executor(Protocol):
    """Carries out jobs in any order, and yields each record as soon as it exists."""

    def run(self, jobs: list[Job], report_phase: ReportPhase) -> Iterator[Record]:
        """Every job gets exactly one record. Closing the iterator early ends everything that was started."""
