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
from harness.supervise.lanes import Lanes
from harness.supervise.recording import Conclusion, log_name, record, without_result
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
        lanes: Lanes | None = None,
    ) -> None:
        """`lanes` are those of the device, of which this is one; by default the only one."""
        lanes = lanes or Lanes()
        self._device = device
        self._config = config
        self._report_phase = report_phase
        self.runners = Runners(nursery, device)
        self.groups = Groups(nursery, device, config, logs, seed, self.runners, lanes)
        self._leave = lanes.joined(self.groups.end)
        check = DeviceCheck(nursery, device, logs, self.groups)
        evaluator = Evaluator(self.groups, self.runners, config, logs)
        self._second_chance = SecondChance(evaluator, self.groups, device, config, check, self.runners.scratch, lanes)

    @property
    def later(self) -> frozenset[tuple[str, ...]]:
        """Groups that had better have their turn when no others are left: they have no room beside other lanes."""
        return self._second_chance.later

    def rest(self) -> None:
        """There is nothing to evaluate for now: other lanes of the device need not wait for this one."""
        self._second_chance.rest()

    def close(self) -> None:
        self.rest()
        self._leave()
        self.groups.end()
        self.runners.close()

    def evaluate(self, job: Job, build: BuildResult) -> Record | None:
        """Carry out one job; every failure becomes a record. None: its group is for `later`, and nothing was done."""
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
            concluded = self._second_chance.conclude(job, build, phases)
            if concluded is None:
                return None
            conclusion, log = concluded, log_name(job)
        wall_s = time.monotonic() - started
        try:
            return record(
                job, build, conclusion, self._device, self._config, phases_s=phases.spent_s, wall_s=wall_s, log=log
            )
        except Exception as error:
            # A mistake of ours, which costs this job its result, and not the run.
            return without_result(job, self._device, self._config, unrecorded(error), log)

    def unserved(self, job: Job, why: str) -> Record:
        """The record of a job that no device is left for; the next run tries again."""
        lost = Outcome(status=Status.HARNESS_ERROR, reason="device_lost", message=why)
        return without_result(job, self._device, self._config, lost)

    def device_fault(self) -> str:
        """What is wrong with the device; empty where it still computes."""
        return self._second_chance.device_fault()
