"""Calls at their time, by one thread."""

import gc
import threading
import time
import weakref

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


class Text:
    def __call__(self):
        raise AssertionError("was forgotten")


def test_what_is_forgotten_is_not_called_and_holds_nothing():
    deadlines, seen = Deadlines(), threading.Event()
    texts = [Text() for _ in range(1000)]
    held = [weakref.ref(text) for text in texts]
    numbers = [deadlines.at(time.monotonic() + 0.2, text) for text in texts]
    deadlines.at(time.monotonic() + 0.4, seen.set)
    for number in numbers:
        deadlines.forget(number)
    del texts
    gc.collect()
    assert not any(one() for one in held)
    assert len(deadlines._moments) < 100
    assert seen.wait(10.0)
    deadlines.close()
