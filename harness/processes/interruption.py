"""What ends a command from outside: Ctrl-C, SIGTERM, and SIGHUP of a terminal that closes. Each ends it tidily.

The first raises KeyboardInterrupt, with its number, in the main thread; whoever sends more of them is not heard any
more, and so nothing that is being put away stays behind.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# As they are where nobody has chosen otherwise; nohup, for one, has SIGHUP ignored.
UNCHANGED = (signal.SIG_DFL, signal.default_int_handler)


class _State:
    """Of this process: how many clean-ups are under way, and the signal that came meanwhile."""

    held = 0
    waiting = 0


@contextmanager
def heard() -> Iterator[None]:
    """Have the signals raise KeyboardInterrupt here; where none did, they mean what they did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        if before[number] in UNCHANGED:
            signal.signal(number, _first)
    try:
        yield
    finally:
        # After one of them, all stay ignored until the process ends.
        for number in SIGNALS:
            if signal.getsignal(number) is _first:
                signal.signal(number, before[number])


@contextmanager
def held() -> Iterator[None]:
    """Have a signal wait until a clean-up is done."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
        if _State.waiting and not _State.held:
            number, _State.waiting = _State.waiting, 0
            raise KeyboardInterrupt(number)


@contextmanager
def kept() -> Iterator[None]:
    """Have the signals mean afterwards what they meant before, whatever a library makes of them meanwhile."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # Also where Python sees no change: a library in C may have made one.
                signal.signal(number, before[number])


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """As shells have it: 128 and the signal's number."""
    return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)


def _first(number: int, frame: FrameType | None) -> None:
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    if _State.held:
        _State.waiting = number
    else:
        raise KeyboardInterrupt(number)
