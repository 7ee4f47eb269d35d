"""Submissions that wait to be read, the most urgent first, and the threads that read them."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.evaluator.planning import Submission

# Shorter ones are read in a moment. Longer ones have a thread of their own, so that they hold up none of these.
SHORT_BYTES = 1 << 16
SHORT_THREADS, LONG_THREADS = 3, 1


class Lines:
    """Calls `read` with each submission, by threads: some for short texts, one for long ones."""

    def __init__(self, read: Callable[[Submission], None]) -> None:
        self._short = _Line(read, SHORT_THREADS)
        self._long = _Line(read, LONG_THREADS)

    def add(self, one: Submission) -> None:
        (self._long if _bytes(one) > SHORT_BYTES else self._short).add(one)

    def close(self, *, wait: bool) -> None:
        """Begin no more; with `wait` return when nothing is being read."""
        for line in (self._short, self._long):
            line.threads.shutdown(wait=wait, cancel_futures=True)


class _Line:
    def __init__(self, read: Callable[[Submission], None], threads: int) -> None:
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="plan")
        self._read = read
        self._unread: queue.PriorityQueue[tuple[int, int, Submission]] = queue.PriorityQueue()
        self._count = itertools.count()

    def add(self, one: Submission) -> None:
        self._unread.put((-one.priority, next(self._count), one))
        self.threads.submit(self._read_next)

    def _read_next(self) -> None:
        self._read(self._unread.get_nowait()[-1])


def _bytes(one: Submission) -> int:
    """About; of a file that is gone, nothing."""
    try:
        return sum(
            item.stat().st_size if isinstance(item, Path) else len(item) for item in (one.problem, one.candidate)
        )
    except OSError:
        return 0
