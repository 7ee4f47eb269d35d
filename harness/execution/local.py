"""Runs a fixed list of jobs: on this machine, or wherever a workplace has its slots."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.catalog.jobs import Job, sources
from harness.config import Config
from harness.environment import Device
from harness.execution.executor import ReportPhase
from harness.execution.pool import Pool
from harness.execution.tasks import Task
from harness.execution.workplace import Slots, Workplace
from harness.records import Record
from harness.supervise.supervisor import Supervisor


class LocalExecutor:
    """Carries out all jobs of a run by the slots of a workplace, or by a Pool, which has what the parameters mean."""

    def __init__(
        self,
        devices: list[Device],
        config: Config,
        logs: Path,
        seed: int | None,
        device_fault: Callable[[Supervisor], str] = Supervisor.device_fault,
        workplace: Workplace | None = None,
    ) -> None:
        self._devices = devices
        self._config = config
        self._logs = logs
        self._seed = seed
        self._device_fault = device_fault
        self._workplace = workplace

    def run(self, jobs: list[Job], report_phase: ReportPhase) -> Iterator[Record]:
        if not jobs:
            return
        done: queue.Queue[Record | BaseException] = queue.Queue()

        def tell(task: Task, end: Record | BaseException) -> None:
            done.put(end)

        private = {source.parent for source in sources(jobs)}
        what = (self._devices, self._config, self._logs, self._seed, tell, report_phase)
        pool: Slots = (
            self._workplace.slots(*what, private)
            if self._workplace
            else Pool(*what, device_fault=self._device_fault, private=private)
        )
        try:
            pool.submit(jobs)
            pool.no_more()
            for _ in jobs:
                item = done.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            pool.close()
