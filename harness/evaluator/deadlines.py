"""Calls that are made when their time has come, by one thread for all of them."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable


class Deadlines:
    """Calls functions at moments of time.monotonic(), one after the other, until closed. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._closed = False
        self._thread = threading.Thread(target=self._wait, name="deadlines", daemon=True)
        self._thread.start()

    def at(self, moment_s: float, call: Callable[[], None]) -> None:
        """Have `call` called at that moment; it must be quick, and raise nothing."""
        with self._changed:
            heapq.heappush(self._waiting, (moment_s, next(self._numbers), call))
            self._changed.notify()

    def close(self) -> None:
        """Forget what is not due yet."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _wait(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                left_s = self._waiting[0][0] - time.monotonic() if self._waiting else None
                if left_s is None or left_s > 0:
                    self._changed.wait(left_s)
                    continue
                call = heapq.heappop(self._waiting)[2]
            call()
