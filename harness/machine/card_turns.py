"""Judges of one card take turns: a burst is alone on it, whatever else they do on it is not beside a burst. No torch.

A judge has a share of the card while it works there, and gives it up for as long as it waits. A lock of the kernel's on
an open file (fcntl(2), "Open file description locks") ends with the process that has it, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator

# Of the file, the byte that those share who wait to be alone, and the one for the card itself. Who wants a share comes
# after all who wait at the first one: once the others' work has come to an end, every burst that is ready has its turn.
WANTED, CARD = 0, 1
_SHARED, _ALONE, _FREE = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
# A wait that is longer is told.
TELL_S = 0.2
# How often who waits looks, before and after that.
LOOK_S, LATE_LOOK_S = 1e-4, 2e-3


def _nothing() -> None:
    pass


def _untold(waiting: bool) -> None:
    pass


class CardTurns:
    """One judge's turns on its card. `fd` is an open file that no other judge's is a copy of; without one, this judge
    has the card for itself, and nothing here does anything.

    `settle` is called before a share is given up: it waits until what was begun on the card is done. `tell` is called
    with True when a wait gets long, and with False at its end. `waited_s` are the seconds spent waiting.
    """

    def __init__(
        self,
        fd: int | None = None,
        settle: Callable[[], None] = _nothing,
        tell: Callable[[bool], None] = _untold,
    ) -> None:
        self.waited_s = 0.0
        self._fd = fd
        self._settle = settle
        self._tell = tell
        self._held = _FREE
        self._stop, self._go_on = _nothing, _nothing

    @property
    def by_itself(self) -> bool:
        """Whether no other judge can be on the card."""
        return self._fd is None

    def clock(self) -> float:
        """Seconds that pass only while this judge has a turn."""
        return time.monotonic() - self.waited_s

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Work on the card beside others' work, but for bursts."""
        self._take(_SHARED)
        try:
            yield
        finally:
            self._give_up()

    @contextlib.contextmanager
    def alone(self, before_waiting: Callable[[], None] = _nothing, *, settled: bool = False) -> Iterator[None]:
        """Have the card, within `shared`, and nobody else anything on it; `before_waiting` is called if that takes
        waiting. `settled`: what was begun is done, or cannot go on before. Within itself it changes nothing."""
        held = self._held
        if held == _ALONE or self._fd is None:
            yield
            return
        self._give_up(settled=settled)
        self._take(_ALONE, before_waiting)
        try:
            yield
        finally:
            self._give_up()
            self._take(held)

    @contextlib.contextmanager
    def away(self, before_waiting: Callable[[], None] = _nothing) -> Iterator[None]:
        """Wait for something else, within `shared`, without a share of the card; `before_waiting` is called if getting
        that back takes waiting, too."""
        held = self._held
        if held == _SHARED:
            self._give_up()
        try:
            yield
        finally:
            if held == _SHARED:
                self._take(_SHARED, before_waiting)

    def pause(self) -> None:
        """Between two pieces of work within `shared`: let those have their turn who wait to be alone."""
        if self._fd is not None and self._held == _SHARED and self._is_taken(WANTED):
            self._stop()
            self._give_up()
            self._take(_SHARED)
            self._go_on()

    @contextlib.contextmanager
    def beside(self, stop: Callable[[], None], go_on: Callable[[], None]) -> Iterator[None]:
        """Within this somebody else works on the card for this judge, and is stopped for each pause."""
        before = self._stop, self._go_on
        self._stop, self._go_on = stop, go_on
        try:
            yield
        finally:
            self._stop, self._go_on = before

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _take(self, kind: int, before_waiting: Callable[[], None] = _nothing) -> None:
        if self._fd is not None and kind != _FREE:
            if kind == _ALONE:
                self._lock(WANTED, _SHARED)
            try:
                if not self._has_taken(kind):
                    before_waiting()
                    self._wait(kind)
            finally:
                if kind == _ALONE:
                    self._lock(WANTED, _FREE)
        self._held = kind

    def _has_taken(self, kind: int) -> bool:
        return (kind == _ALONE or not self._is_taken(WANTED)) and self._lock(CARD, kind)

    def _wait(self, kind: int) -> None:
        begun, told = time.monotonic(), False
        while not self._has_taken(kind):
            if not told and time.monotonic() - begun > TELL_S:
                told = True
                self._tell(True)
            time.sleep(LATE_LOOK_S if told else LOOK_S)
        self.waited_s += time.monotonic() - begun
        if told:
            self._tell(False)

    def _give_up(self, *, settled: bool = False) -> None:
        if self._fd is not None and self._held != _FREE:
            if not settled:
                self._settle()
            self._lock(CARD, _FREE)
        self._held = _FREE

    def _lock(self, byte: int, kind: int) -> bool:
        """Whether the byte is locked now."""
        assert self._fd is not None
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _request(byte, kind))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _is_taken(self, byte: int) -> bool:
        """Whether another judge has the byte."""
        assert self._fd is not None
        found = fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, _request(byte, _ALONE))
        return bool(struct.unpack("hhqqi4x", found)[0] != _FREE)


def _request(byte: int, kind: int) -> bytes:
    """A `struct flock` for one byte from the file's beginning."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, byte, 1, 0)
