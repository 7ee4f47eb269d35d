"""Where a judge's work can be interrupted: between two pieces of it, for whoever waits to have the device alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _nothing() -> None:
    pass


_between: ContextVar[Callable[[], None]] = ContextVar("between", default=_nothing)


@contextmanager
def pausing(between: Callable[[], None]) -> Iterator[None]:
    """Within it `between` is called before each piece of work: a run of a reference, a slice of what is looked at, a
    parameter that is made or changed."""
    token = _between.set(between)
    try:
        yield
    finally:
        _between.reset(token)


def pause() -> None:
    """Between two pieces of work, of a millisecond or so: in so much time all other judges of a card stand still."""
    _between.get()()
