"""Where jobs are carried out: this machine, or several that are alike; what both offer to sessions and evaluators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from harness import environment
from harness.catalog.jobs import BUILDS, Job
from harness.compile import conditions
from harness.config import Config
from harness.environment import Device
from harness.execution.executor import ReportPhase
from harness.sandbox import probe
from harness.sandbox.probe import Found

# Loaded where something is carried out: that takes longer than all else that a run with nothing to do loads.
if TYPE_CHECKING:
    from harness.execution.pool import Tell
    from harness.execution.tasks import Task


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the machines before jobs are planned for them.

    `surroundings` are part of jobs' keys, `description` is what run.json keeps. `devices` are those of all
    machines; all else is the same on each of them, such as the layers of the sandbox, which are `known` of others.
    """

    devices: list[Device]
    surroundings: dict[str, str]
    description: dict[str, Any]
    sandbox_mode: str
    known: Found | None = None

    @property
    def sandbox(self) -> Found:
        """The layers in force. To find them out takes a process; who has nothing to evaluate need not ask.

        Raises UsageError where all are required and one is missing.
        """
        return self.known or probe.chosen(self.sandbox_mode, self.devices[0].kind == "cuda")


def site(config: Config, names: Sequence[str] = ()) -> Site:
    """This machine, with the devices of these names, or else of the config's. Raises UsageError."""
    devices = [device for name in names or [config.device] for device in environment.choose_devices(name)]
    return Site(
        devices=devices,
        surroundings=surroundings(devices, config),
        description=environment.describe(devices),
        sandbox_mode=config.sandbox,
    )


def surroundings(devices: list[Device], config: Config) -> dict[str, str]:
    """What a record's numbers depend on beside the files (catalog.jobs)."""
    return environment.surroundings(devices) | {BUILDS: conditions.find(devices[0], config.compile).digest}


class Slots(Protocol):
    """What carries out jobs as they come, until closed; as Pool, whose words these are."""

    @property
    def alive(self) -> bool:
        """Whether a device is left."""

    def submit(self, jobs: Iterable[Job], priority: int = 0) -> list[Task]:
        """Have jobs carried out; each ends with one call of `tell`."""

    def has_begun(self, task: Task) -> bool:
        """Whether a task is being built or evaluated, and does not wait for its turn."""

    def hurry(self, task: Task, priority: int) -> None:
        """Give a task that waits at least this priority."""

    def withdraw(self, task: Task) -> bool:
        """Take back a task; False if it is being evaluated, or has been."""

    def no_more(self) -> None:
        """Have slots end when they have done what there is."""

    def close(self) -> None:
        """End everything that was started."""


class Workplace(Protocol):
    """One machine, or several."""

    def site(self, config: Config, names: Sequence[str] = ()) -> Site:
        """What is known of it. Raises UsageError where it cannot evaluate by this config."""

    def slots(
        self,
        devices: list[Device],
        config: Config,
        logs: Path,
        seed: int | None,
        tell: Tell,
        report_phase: ReportPhase,
        private: Iterable[Path] = (),
    ) -> Slots:
        """Start what carries out jobs on the site's devices; the parameters are those of Pool."""


class ThisMachine:
    """The machine that the session runs on; no evaluation begins on a device that it does not admit."""

    site = staticmethod(site)

    def __init__(self, admits: Callable[[Device], bool] = lambda device: True) -> None:
        self._admits = admits

    def slots(
        self,
        devices: list[Device],
        config: Config,
        logs: Path,
        seed: int | None,
        tell: Tell,
        report_phase: ReportPhase,
        private: Iterable[Path] = (),
    ) -> Slots:
        """A Pool."""
        from harness.execution.pool import Pool

        return Pool(devices, config, logs, seed, tell, report_phase, private=private, admits=self._admits)
