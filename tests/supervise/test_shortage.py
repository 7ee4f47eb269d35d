"""A machine that runs out of memory for a while: nobody is blamed for it, and what comes later is evaluated."""

import msgspec
import pytest

from harness import environment, session
from harness.config import Limits
from harness.processes.nursery import Nursery
from harness.records import Status
from harness.rewards.rewards import reward
from harness.supervise import losses, second_chance
from harness.supervise.builds import BuildResult
from harness.supervise.supervisor import Supervisor
from harness.wire import causes, faults
from tests.conftest import corpus_config


class Short:
    """A nursery that ends the first so many runners whose log's name ends so, as for a `cause`."""

    def __init__(self, ending, times, cause):
        self._nursery = Nursery()
        self._ending = ending
        self._left = times
        self._cause = cause
        self.close = self._nursery.close

    def start(self, role, *arguments, **options):
        child = self._nursery.start(role, *arguments, **options)
        if self._left and str(child.log).endswith(self._ending):
            self._left -= 1
            child.stop()
            assert child.wait(10.0) is not None
            child.cause = self._cause
        return child


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    """The records of two honest candidates of a problem."""
    monkeypatch.setattr(second_chance, "SHORTAGE_S", 0.0)

    def run(ending, times, cause, limits=None):
        config = corpus_config("honest", "honest_after")
        config = msgspec.structs.replace(config, limits=limits or config.limits)
        nursery = Short(ending, times, cause)
        supervisor = Supervisor(nursery, environment.choose_devices("cpu")[0], config, tmp_path, 0, lambda *_: None)
        try:
            return [supervisor.evaluate(job, BuildResult()) for job in session.plan(config).jobs]
        finally:
            supervisor.close()
            nursery.close()

    return run


@pytest.mark.parametrize("cause", [causes.SHORTAGE, causes.MOST_OF_IT, causes.GIVEN_BACK, causes.OVER_LIMIT])
def test_without_a_limit_of_the_user_s_no_problem_is_blamed_for_memory(evaluate, cause):
    first, second = evaluate(".baseline.txt", 2, cause)
    assert (first.status, first.reason, first.limit) == (Status.HARNESS_ERROR, "machine_memory", {})
    assert "free some" in first.message
    assert reward(first) is None
    # The shortage has passed.
    assert second.status is Status.PASSED


def test_a_limit_of_the_user_s_that_the_reference_exceeds_is_named(evaluate):
    first, second = evaluate(".baseline.txt", 2, causes.OVER_LIMIT, Limits(host_memory_gb=50.0))
    assert first.status is second.status is Status.INVALID_REFERENCE
    assert first.limit == {"limits.host_memory_gb": 50.0}


@pytest.mark.parametrize(("times", "status"), [(1, Status.PASSED), (2, Status.HARNESS_ERROR)])
def test_a_candidate_ended_for_what_others_took_is_tried_again(evaluate, times, status):
    first, second = evaluate(".log", times, causes.SHORTAGE)
    assert (first.status, second.status) == (status, Status.PASSED)


def test_a_candidate_that_took_most_of_the_memory_is_blamed(evaluate):
    first, second = evaluate(".log", 1, causes.MOST_OF_IT)
    assert (first.status, first.reason) == (Status.OUT_OF_MEMORY, "host_memory")
    assert second.status is Status.PASSED


@pytest.mark.parametrize(("times", "status"), [(1, Status.PASSED), (2, Status.OUT_OF_MEMORY)])
def test_whose_end_gave_the_memory_back_twice_is_blamed(evaluate, times, status):
    """Once it may have been another's, which ended at the same time."""
    first, second = evaluate(".log", times, causes.GIVEN_BACK)
    assert (first.status, second.status) == (status, Status.PASSED)
    assert reward(first) is not None


def test_what_may_have_passed_is_found_out_again_after_a_while(monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(losses.time, "monotonic", lambda: now_s[0])
    kept, outcome = losses.Unopened(), faults.short_of_memory("a test")
    passing, certain = ("a", "", "", ""), ("b", "", "", "")
    kept.keep(passing, outcome, spent_s=2.0)
    kept.keep(certain, outcome)
    now_s[0] = 17.0
    assert [kept.told(group) for group in (passing, certain)] == [outcome, outcome]
    now_s[0] = 19.0
    assert [kept.told(group) for group in (passing, certain)] == [None, outcome]
