"""The turns of a card's judges: threads take the place of judges here, since locks of open files do not care."""

import os
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.machine.card_turns import CardTurns


@pytest.fixture
def judges():
    file = os.memfd_create("turns", os.MFD_CLOEXEC)
    made = []

    def judge(**options):
        made.append(CardTurns(os.open(f"/proc/self/fd/{file}", os.O_RDWR | os.O_CLOEXEC), **options))
        return made[-1]

    yield judge
    for one in made:
        one.close()
    os.close(file)


def began(act):
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_work_is_side_by_side_but_for_bursts(judges):
    one, other = judges(), judges()
    events = []

    def burst():
        with other.shared(), other.alone():
            events.append("burst")

    with one.shared():
        with other.shared():
            pass
        thread = began(burst)
        time.sleep(0.1)
        events.append("work")
    thread.join(5)
    assert events == ["work", "burst"]
    assert other.waited_s > 0.05


def test_a_pause_lets_a_burst_through(judges):
    one, other = judges(), judges()
    events, settled = [], []
    one._settle = lambda: settled.append(len(events))

    def burst():
        with other.shared(), other.alone():
            events.append("burst")

    with one.shared():
        one.pause()
        assert not settled, "nobody waits"
        thread = began(burst)
        while "burst" not in events:
            one.pause()
        events.append("work")
    thread.join(5)
    assert events == ["burst", "work"]
    assert settled[0] == 0, "its own work is done before another's burst begins"


def test_who_works_beside_a_judge_is_stopped_for_a_pause(judges):
    one, other = judges(), judges()
    events = []

    def burst():
        with other.shared(), other.alone():
            events.append("burst")

    with one.shared():
        with one.beside(lambda: events.append("stop"), lambda: events.append("go on")):
            one.pause()
            assert not events, "nobody waits"
            thread = began(burst)
            while "burst" not in events:
                one.pause()
        thread.join(5)
        thread = began(burst)
        while events.count("burst") < 2:
            one.pause()
    thread.join(5)
    assert events == ["stop", "burst", "go on", "burst"]


def test_who_waits_for_something_else_keeps_nobody_waiting(judges):
    one, other = judges(), judges()
    with one.shared(), one.away(), other.shared(), other.alone():
        assert other.waited_s == 0.0


def test_new_work_does_not_come_before_a_burst_that_waits(judges):
    first, burster, second = judges(), judges(), judges()
    events = []

    def burst():
        with burster.shared(), burster.alone():
            events.append("burst")

    def work():
        with second.shared():
            events.append("work")

    with first.shared():
        one = began(burst)
        time.sleep(0.1)
        other = began(work)
        time.sleep(0.1)
        assert events == []
    one.join(5)
    other.join(5)
    assert events == ["burst", "work"]


def test_all_bursts_that_are_ready_come_before_work_that_goes_on(judges):
    worker, first, second = judges(), judges(), judges()
    events = []

    def burst(judge):
        with judge.alone():
            time.sleep(0.01)
            events.append("burst")

    def work():
        while not worker._is_taken(0):
            time.sleep(1e-3)
        worker.pause()
        events.append("work")

    for _ in range(10):
        events.clear()
        with worker.shared(), first.shared(), second.shared():
            threads = [began(work), began(lambda: burst(first)), began(lambda: burst(second))]
            for thread in threads:
                thread.join(5)
        assert events == ["burst", "burst", "work"]


def test_a_long_wait_is_told_and_is_not_on_the_clock(judges):
    said = []
    one, other = judges(), judges(tell=said.append)
    before_waiting = []

    def burst():
        with other.shared(), other.alone(lambda: before_waiting.append(1)):
            pass

    with one.shared():
        begun, thread = other.clock(), began(burst)
        time.sleep(0.5)
    thread.join(5)
    assert said == [True, False]
    assert before_waiting == [1]
    assert other.clock() - begun < 0.2


def test_a_judge_that_ends_gives_its_turn_up(judges):
    one, other = judges(), judges()
    held = one.shared()
    held.__enter__()
    with one.alone():
        one.close()
        with other.shared(), other.alone():
            pass


def test_one_lane_waits_for_nobody():
    alone = CardTurns()
    with alone.shared(), alone.alone(), alone.away():
        alone.pause()
    assert alone.waited_s == 0.0


@given(st.lists(st.lists(st.sampled_from(["work", "burst", "pause", "away"]), max_size=12), min_size=2, max_size=4))
@settings(deadline=None, max_examples=30)
def test_nothing_is_ever_beside_a_burst(plans):
    file = os.memfd_create("turns", os.MFD_CLOEXEC)
    busy, seen, lock = {"work": 0, "burst": 0}, [], threading.Lock()

    def count(what, by):
        with lock:
            busy[what] += by
            seen.append(dict(busy))

    def judge(plan):
        turns = CardTurns(os.open(f"/proc/self/fd/{file}", os.O_RDWR | os.O_CLOEXEC))
        for step in plan:
            with turns.shared():
                if step == "burst":
                    with turns.alone():
                        count("burst", 1)
                        count("burst", -1)
                    continue
                if step == "pause":
                    turns.pause()
                if step == "away":
                    with turns.away():
                        time.sleep(1e-4)
                count("work", 1)
                count("work", -1)
        turns.close()

    threads = [began(lambda plan=plan: judge(plan)) for plan in plans]
    for thread in threads:
        thread.join(20)
    os.close(file)
    assert not any(thread.is_alive() for thread in threads)
    assert all(state["burst"] <= 1 and not (state["burst"] and state["work"]) for state in seen)


def test_who_is_away_is_stopped_while_the_card_is_anothers(judges):
    one, other = judges(), judges()
    away, stopped, has_it = threading.Event(), threading.Event(), threading.Event()

    def leave():
        with one.shared(), one.away(stopped.set):
            away.set()
            has_it.wait(5)

    thread = began(leave)
    away.wait(5)
    with other.shared(), other.alone():
        assert not stopped.is_set()
        has_it.set()
        assert stopped.wait(5)
    thread.join(5)
    assert not thread.is_alive()


def test_a_judge_that_fails_as_it_begins_to_wait_keeps_nobody_out(judges):
    one, other, third = judges(), judges(), judges()

    def gone():
        raise ProcessLookupError

    with other.shared():
        with one.shared(), pytest.raises(ProcessLookupError), one.alone(gone):
            pass
        thread = began(lambda: enter(third))
        thread.join(5)
        assert not thread.is_alive()


def enter(judge):
    with judge.shared():
        pass
