"""How long bursts may be, and may take, by what a reference and its inputs take."""

import pytest
import torch

from harness.catalog.modules import LoadFault
from harness.config import TimingConfig
from harness.judge import planning
from harness.judge.planning import SHORTEST_S, SLOWEST, DoesNotFit, burst_s
from harness.judge.reference import Trial
from harness.links.link import SPREAD_BYTES, Draw
from harness.records import Status
from harness.roofline.work import Observer

TIMING = TimingConfig(budget_s=2.0, min_pairs=10, max_calls_per_burst=32)


class Made:
    """A reference that takes as long as it is told."""

    device = torch.device("cpu")

    def __init__(self, draw_s, call_s):
        self.draw_s, self.call_s = draw_s, call_s

    def state(self):
        return {}

    def try_out(self):
        x = torch.ones(4)
        with Observer([x]) as seen:
            output = x + 1
        draw = Draw(inputs=(x,), seed=0)
        return Trial(
            draw=draw, output=output, seconds=self.call_s, draw_s=self.draw_s, work=seen.estimate(output), late=""
        )


@pytest.mark.parametrize(("draw_s", "calls"), [(1e-5, 32), (0.01, 10), (0.09, 1), (1.0, 1)])
def test_a_burst_has_no_more_calls_than_inputs_are_made_for_in_time(draw_s, calls):
    assert planning.workload(Made(draw_s, 1e-6), TIMING, 600.0).most_calls == calls


@pytest.mark.parametrize(("draw_s", "call_s"), [(2.0, 1e-6), (1e-5, 2.0)])
def test_what_no_candidate_could_be_timed_on_within_the_limit_is_the_problem_s_fault(draw_s, call_s):
    with pytest.raises(LoadFault, match=r"get_inputs takes .* limits.total_s = 60 s") as caught:
        planning.workload(Made(draw_s, call_s), TIMING, 60.0)
    assert caught.value.reason == "too_slow"
    assert planning.workload(Made(draw_s, call_s), TIMING, 600.0).most_calls


# A deadline goes with the reference's own time, between a shortest one and the config's limit.


def test_short_work_has_the_shortest_deadline():
    assert burst_s(1e-5, 32, 120.0) == SHORTEST_S


def test_long_work_has_a_longer_one_up_to_the_limit():
    assert burst_s(0.05, 4, 120.0) == SLOWEST * 0.05 * 4
    assert burst_s(5.0, 1, 120.0) == 120.0


def test_the_limit_holds_where_it_is_below_the_shortest():
    assert burst_s(1e-5, 1, 2.0) == 2.0


# What does not fit is said by the harness, as its own need.


def test_room_for_two_runners_and_the_judge_is_required():
    nbytes = 10**9
    runners = 2 * (2 * nbytes + SPREAD_BYTES)
    left = planning.require_room(torch.device("cpu"), nbytes, nbytes, 0, limit_bytes=runners + 5 * nbytes)
    assert left == 5 * nbytes
    with pytest.raises(DoesNotFit, match=r"1 GB of inputs and 1 GB of outputs, which to judge takes about 9.13 GB, "):
        planning.require_room(torch.device("cpu"), nbytes, nbytes, 0, limit_bytes=runners + 5 * nbytes - 1)


def test_an_unlimited_plan_leaves_the_oracle_what_is_free():
    assert planning.workload(Made(1e-5, 1e-6), TIMING, 600.0).oracle_bytes is None
    limited = planning.workload(Made(1e-5, 1e-6), TIMING, 600.0, limit_bytes=1 << 28)
    assert limited.oracle_bytes == (1 << 28) - 2 * (32 + SPREAD_BYTES)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 6 GiB"), DoesNotFit("it takes 9 GB")]
)
def test_what_the_harness_cannot_hold_is_not_the_candidate_s_out_of_memory(error):
    outcome = planning.no_room_beside(error, before=14 << 30, now=30 << 30)
    assert (outcome.status, outcome.reason) == (Status.UNSUPPORTED, "needs_memory")
    assert str(error) in outcome.message


def test_who_takes_the_card_s_memory_from_the_judge_has_none_of_its_own_left():
    outcome = planning.no_room_beside(torch.OutOfMemoryError("CUDA out of memory"), before=2 << 30, now=70 << 30)
    assert (outcome.status, outcome.reason) == (Status.OUT_OF_MEMORY, "out_of_memory")
    assert "73.0 GB" in outcome.message
