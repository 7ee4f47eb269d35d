"""Whether a device still works: it computes something trivial. No torch."""

from __future__ import annotations

from pathlib import Path

from harness.environment import Device
from harness.processes.nursery import NoProcess
from harness.processes.renewal import Starter
from harness.supervise import losses
from harness.supervise.dialogue import Dialogue
from harness.supervise.groups import Groups
from harness.supervise.losses import ProcessLost
from harness.wire.channel import DeadlineExceeded, PeerGone, ProtocolError
from harness.wire.messages import DeviceTested, FromJudge, TestDevice

# A fresh process with a context of its own on a busy card.
PROBE_S = 60.0


class DeviceCheck:
    """Looks at one device."""

    def __init__(self, nursery: Starter, device: Device, logs: Path, groups: Groups) -> None:
        self._nursery = nursery
        self._device = device
        self._logs = logs
        self._groups = groups

    def fault(self) -> str:
        """What is wrong with it; empty where it still computes, in the judge at hand or else in a fresh one."""
        if self._device.kind == "cpu":
            return ""
        if self._groups.current is not None and not self._seen_by(self._groups.current.judge):
            return ""
        self._groups.end()
        log = self._logs / f"{self._device.spec.replace(':', '')}.probe.txt"
        try:
            fresh = losses.started(self._nursery, "judge", FromJudge, log, self._device.environment)
        except (NoProcess, ProcessLost):
            # Nothing is known against it.
            return ""
        try:
            return self._seen_by(Dialogue(fresh))
        finally:
            fresh.kill()

    def _seen_by(self, judge: Dialogue) -> str:
        try:
            return judge.ask(TestDevice(device=self._device.alone), DeviceTested, PROBE_S).fault
        except (PeerGone, ProtocolError, DeadlineExceeded) as error:
            return f"no answer from {self._device.spec}: {error}"
