"""Runs a fixed list of jobs on this machine."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.catalog.jobs import Job, sources
from harness.config import Config
from harness.environment import Device
from harness.execution.executor import ReportPhase
from harness.execution.pool import Pool
from harness.execution.schedule import Task
from harness.records import Record
from harness.supervise.supervisor import Supervisor


class LocalExecutor:
    """Carries out all jobs of a run by a Pool, which has what the parameters mean."""

    def __init__(
        self,
        devices: list[Device],
        config: Config,
        logs: Path,
        seed: int,
        device_fault: Callable[[Supervisor], str] = Supervisor.device_fault,
    ) -> None:
        self._devices = devices
        self._config = config
        self._logs = logs
        self._seed = seed
        self._device_fault = device_fault

    def run(self, jobs: list[Job], report_phase: ReportPhase) -> Iterator[Record]:
        if not jobs:
            return
        done: queue.Queue[Record | BaseException] = queue.Queue()

        def tell(task: Task, end: Record | BaseException) -> None:
            done.put(end)

        private = {source.parent for source in sources(jobs)}
        pool = Pool(
            self._devices, self._config, self._logs, self._seed, tell, report_phase, self._device_fault, private
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
