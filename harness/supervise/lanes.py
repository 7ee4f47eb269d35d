"""The lanes of one device: candidates under way at the same time, each with a judge of its own. No torch.

Bursts take turns (machine.card_turns). Here is what lanes have in common besides: the file of those turns, the memory,
and the way to have the device without the others.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from harness.config import Config
from harness.environment import Device
from harness.machine.turns import Turns


def how_many(config: Config, device: Device) -> int:
    """Lanes of each device. On the CPU one: whatever runs beside a measurement is felt in it."""
    return 1 if device.kind == "cpu" else config.lanes


class Lanes:
    """What the `count` lanes of a device share. Each says how to give up all that it holds on the device between two
    evaluations."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._turns = Turns()
        self._file = os.memfd_create("turns", os.MFD_CLOEXEC) if count > 1 else None
        self._members: list[Callable[[], None]] = []
        # Groups that have no room beside other lanes.
        self.crowded: set[tuple[str, ...]] = set()
        self.closed = False

    @property
    def memory_share(self) -> float:
        """Of the device's memory, what each lane may take."""
        return 1.0 / self.count

    def joined(self, give_up: Callable[[], None]) -> Callable[[], None]:
        """Join with what `give_up` gives up; the answer ends that."""
        self._members.append(give_up)
        return lambda: self._members.remove(give_up)

    def turns(self) -> int | None:
        """A file descriptor for one more judge, which is the caller's to close; None where there is one lane."""
        return None if self._file is None else os.open(f"/proc/self/fd/{self._file}", os.O_RDWR | os.O_CLOEXEC)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Evaluate beside the other lanes."""
        with self._turns.together():
            yield

    @property
    def others_wait(self) -> bool:
        """Whether any lane waits for the one that is alone."""
        return self._turns.others_wait

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Evaluate when the others are done with what they are at, and hold nothing on the device any more."""
        with self._turns.alone():
            for give_up in self._members:
                give_up()
            yield

    def close(self) -> None:
        self.closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None
