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
        self._calls: dict[int, Callable[[], None]] = {}
        # Also those of calls that were forgotten meanwhile.
        self._moments: list[tuple[float, int]] = []
        self._numbers = itertools.count()
        self._closed = False
        self._thread = threading.Thread(target=self._wait, name="deadlines", daemon=True)
        self._thread.start()

    def at(self, moment_s: float, call: Callable[[], None]) -> int:
        """Have `call` called at that moment; it must be quick, and raise nothing. Returns its number, for `forget`."""
        with self._changed:
            number = next(self._numbers)
            self._calls[number] = call
            heapq.heappush(self._moments, (moment_s, number))
            self._changed.notify()
            return number

    def forget(self, *numbers: int) -> None:
        """Never make these calls, and keep nothing that they hold."""
        with self._changed:
            for number in numbers:
                self._calls.pop(number, None)
            if len(self._moments) > 2 * len(self._calls) + 16:
                self._moments = [one for one in self._moments if one[1] in self._calls]
                heapq.heapify(self._moments)

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
                left_s = self._moments[0][0] - time.monotonic() if self._moments else None
                if left_s is None or left_s > 0:
                    self._changed.wait(left_s)
                    continue
                call = self._calls.pop(heapq.heappop(self._moments)[1], None)
            if call is not None:
                call()
                # Not until the next one is due.
                del call
