"""Calls at their time, by one thread."""

import threading
import time

from harness.evaluator.deadlines import Deadlines


def test_calls_come_in_the_order_of_their_times_and_none_after_the_end():
    seen, last = [], threading.Event()
    deadlines = Deadlines()
    now = time.monotonic()
    deadlines.at(now + 0.10, lambda: (seen.append("second"), last.set()))
    deadlines.at(now + 0.05, lambda: seen.append("first"))
    deadlines.at(now + 60.0, lambda: seen.append("never"))
    assert last.wait(10.0)
    assert time.monotonic() >= now + 0.10
    deadlines.close()
    assert seen == ["first", "second"]
