"""Runners of one device: started, each with a folder of its own, and ended with all that they leave. No torch."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from pathlib import Path

from harness.catalog import sources
from harness.environment import Device
from harness.processes import folders
from harness.processes.nursery import Child
from harness.processes.renewal import Starter
from harness.supervise import losses
from harness.supervise.builds import BuildResult
from harness.wire.channel import PeerGone
from harness.wire.messages import ComeUp, FromRunner


class Runners:
    """Starts runners below a folder that goes with `close`."""

    def __init__(self, nursery: Starter, device: Device) -> None:
        self._nursery = nursery
        self._device = device
        self.scratch = folders.temporary("run")

    def start(
        self, log: Path, source: Path, build: BuildResult, *, spared: bool = False
    ) -> tuple[Child, socket.socket]:
        """A fresh runner for one source and its libraries, and the end of its channel that the judge is to have.
        `spared` as Spawn has it."""
        folder = Path(tempfile.mkdtemp(prefix="runner-", dir=self.scratch))
        environment = dict.fromkeys(("HOME", "TMPDIR", "TRITON_HOME"), str(folder))
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        environment |= self._device.environment
        readable = [*sources.own_files(source.resolve()), *build.libraries.values()]
        card = self._device if self._device.kind == "cuda" else None
        child = losses.started(
            self._nursery, "runner", FromRunner, log, environment, folder, readable=readable, card=card, spared=spared
        )
        # One that has died is missed by the judge.
        with contextlib.suppress(PeerGone):
            child.channel.send(ComeUp(device=self._device.alone))
        return child, child.take_channel()

    def close(self) -> None:
        folders.remove_at_end(self.scratch)


def end(runner: Child) -> None:
    """End it and all that it started, and remove its folder, which may be large: the rest of it goes at the end."""
    runner.kill()
    if runner.folder is not None:
        folders.remove(runner.folder)
