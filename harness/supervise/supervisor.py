"""One device's supervisor: each job's way from its build to its record.

A judge is opened for its problem (`groups`), a runner of its own started beside it (`evaluation`); what was lost on the
way is replaced, and the evaluation repeated once (`second_chance`); what comes of it is written down (`recording`).
No torch here: this is the session's side of the boundary.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from harness.catalog.jobs import Job
from harness.config import Config
from harness.environment import Device
from harness.processes.renewal import Starter
from harness.records import Outcome, Record, Status, unrecorded
from harness.supervise.builds import BuildResult
from harness.supervise.device_check import DeviceCheck
from harness.supervise.dialogue import JobPhases
from harness.supervise.evaluation import Evaluator
from harness.supervise.groups import Groups
from harness.supervise.recording import Conclusion, log_name, record
from harness.supervise.runners import Runners
from harness.supervise.second_chance import SecondChance


class Supervisor:
    """Evaluates one job after the other on one device."""

    def __init__(
        self,
        nursery: Starter,
        device: Device,
        config: Config,
        logs: Path,
        seed: int | None,
        report_phase: Callable[[Job, str], None],
    ) -> None:
        self._device = device
        self._config = config
        self._report_phase = report_phase
        self.runners = Runners(nursery, device)
        self.groups = Groups(nursery, device, config, logs, seed, self.runners)
        self._device_check = DeviceCheck(nursery, device, logs, self.groups)
        evaluator = Evaluator(self.groups, self.runners, config, logs)
        self._second_chance = SecondChance(
            evaluator, self.groups, device, config, self._device_check, self.runners.scratch
        )

    def close(self) -> None:
        self.groups.end()
        self.runners.close()

    def evaluate(self, job: Job, build: BuildResult) -> Record:
        """Carry out one job; every failure becomes a record."""
        started = time.monotonic()
        phases = JobPhases(job, self._report_phase)
        log = ""
        if job.problem.fault:
            fault = Outcome(status=Status.INVALID_REFERENCE, reason="contract", message=job.problem.fault)
            conclusion = Conclusion(outcome=fault)
        elif build.fault is not None:
            conclusion = Conclusion(outcome=build.fault)
            log = build.log
        else:
            conclusion = self._second_chance.conclude(job, build, phases)
            log = log_name(job)
        wall_s = time.monotonic() - started
        try:
            return record(
                job, build, conclusion, self._device, self._config, phases_s=phases.spent_s, wall_s=wall_s, log=log
            )
        except Exception as error:
            # A mistake of ours, which costs this job its result, and not the run.
            return self._without_result(job, unrecorded(error), log)

    def unserved(self, job: Job, why: str) -> Record:
        """The record of a job that no device is left for; the next run tries again."""
        return self._without_result(job, Outcome(status=Status.HARNESS_ERROR, reason="device_lost", message=why))

    def _without_result(self, job: Job, why: Outcome, log: str = "") -> Record:
        conclusion = Conclusion(outcome=why)
        return record(job, BuildResult(), conclusion, self._device, self._config, phases_s={}, wall_s=0.0, log=log)

    def device_fault(self) -> str:
        """What is wrong with the device; empty where it still computes."""
        return self._device_check.fault()
