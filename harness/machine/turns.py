"""Many at a time, or one alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Turns:
    """Lets threads work side by side, except beside one that asks to be alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._side_by_side = 0
        self._waiting = 0
        self._wanting = 0
        self._alone = False

    @property
    def others_wait(self) -> bool:
        """Whether anybody waits for the one who is alone."""
        return self._waiting > 0 or self._wanting > 1

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Wait until nobody is alone, or waits to be."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._wanting)
            self._waiting -= 1
            self._side_by_side += 1
        try:
            yield
        finally:
            with self._changed:
                self._side_by_side -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until all others are done, and keep those that come meanwhile waiting."""
        with self._changed:
            self._wanting += 1
            self._changed.wait_for(lambda: not self._side_by_side and not self._alone)
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._wanting -= 1
                self._alone = False
                self._changed.notify_all()
