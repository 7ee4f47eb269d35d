"""A forking parent that is replaced where it is lost, so that a run outlives it. No torch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from harness.processes.nursery import Child, ZygoteLost


class Starter(Protocol):
    """What can start children: a Nursery, or a RenewedNursery."""

    def start(self, *args: Any, **kwargs: Any) -> Child:
        """As Nursery.start."""


class Renewable(Starter, Protocol):
    """What a RenewedNursery makes anew."""

    def hide(self, private: Iterable[Path]) -> None:
        """As Nursery.hide."""

    def close(self) -> None:
        """Ends every child."""


class RenewedNursery:
    """A nursery that is made anew when its zygote has died. Usable from several threads.

    What the lost zygote had forked is gone: its children say so by `Child.orphaned`.
    """

    def __init__(self, make: Callable[[], Renewable]) -> None:
        self._make = make
        self._nursery = make()
        self._lock = threading.Lock()
        self._closed = False

    def start(self, *args: Any, **kwargs: Any) -> Child:
        """As Nursery.start. Raises ZygoteLost where a new zygote is lost, too, or after close."""
        nursery = self._nursery
        try:
            return nursery.start(*args, **kwargs)
        except ZygoteLost:
            with self._lock:
                if self._closed:
                    raise
                if self._nursery is nursery:
                    nursery.close()
                    try:
                        self._nursery = self._make()
                    except OSError as error:
                        raise ZygoteLost(f"the forking parent died, and no other starts: {error}") from error
            return self._nursery.start(*args, **kwargs)

    def hide(self, private: Iterable[Path]) -> None:
        """As Nursery.hide; a nursery that is made anew hides what `make` says."""
        with self._lock:
            self._nursery.hide(private)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._nursery.close()
