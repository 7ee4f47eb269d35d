import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.bursts import BurstPlan, batching, plan, unreliable, unseen_gain

MIB = 1 << 20


def plan_of(single_us: float, *, call_bytes: int = MIB, max_calls: int = 32) -> BurstPlan:
    return plan(single_us, target_us=5000.0, call_bytes=call_bytes, memory_bytes=1024 * MIB, max_calls=max_calls)


@pytest.mark.parametrize(
    ("single_us", "calls"), [(2.0, 32), (500.0, 10), (1000.0, 5), (2600.0, 2), (5000.0, 1), (1e7, 1), (math.inf, 1)]
)
def test_length_fills_the_target(single_us: float, calls: int) -> None:
    assert plan_of(single_us).calls == calls


def test_memory_limits_the_length() -> None:
    assert plan_of(50.0, call_bytes=200 * MIB).calls == 5
    assert plan_of(50.0, call_bytes=4096 * MIB).calls == 1
    assert plan_of(50.0, call_bytes=0).calls == 32


def test_too_fast_to_read_is_as_long_as_allowed() -> None:
    assert plan_of(0.0).calls == plan_of(-3.0).calls == plan_of(math.nan).calls == 32


@given(st.floats(0.01, 1e7), st.integers(1, 64), st.integers(0, 1 << 34), st.integers())
def test_a_plan_keeps_its_bounds(single_us: float, max_calls: int, call_bytes: int, seed: int) -> None:
    bursts = plan_of(single_us, call_bytes=call_bytes, max_calls=max_calls)
    assert 1 <= bursts.shortest <= bursts.calls <= max_calls
    rng = random.Random(seed)
    assert all(bursts.shortest <= bursts.at(rng.random()) <= bursts.calls for _ in range(20))


def test_lengths_vary() -> None:
    assert [BurstPlan(32, 24).at(share) for share in (0.0, 0.1, 0.5, 1.0)] == [24, 25, 28, 32]


def test_a_burst_without_length_or_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="a burst needs"):
        plan(1.0, target_us=0.0, call_bytes=1, memory_bytes=1, max_calls=1)
    with pytest.raises(ValueError, match="a burst needs"):
        plan(1.0, target_us=1.0, call_bytes=1, memory_bytes=1, max_calls=0)


def around(rng: random.Random, true_us: float, count: int = 10, jitter_us: float = 1.0) -> list[float]:
    return [max(true_us + rng.gauss(0, jitter_us), 0.1) for _ in range(count)]


def suspicion(
    single_us: float,
    burst_us: float,
    *,
    baseline: tuple[float, float] = (110.0, 107.0),
    seed: int = 2,
) -> str:
    """The word for made-up singles and bursts around these times; `baseline` has its single and its burst time."""
    rng = random.Random(seed)
    found = batching(
        around(rng, single_us),
        around(rng, burst_us, 40, 0.2),
        baseline_single_us=around(rng, baseline[0]),
        baseline_burst_us=around(rng, baseline[1], 40, 0.2),
    )
    return found.word if found else ""


def test_n_calls_in_the_first_are_noticed() -> None:
    rng = random.Random(2)
    found = batching(
        around(rng, 500), around(rng, 20), baseline_single_us=around(rng, 700), baseline_burst_us=around(rng, 690)
    )
    assert found is not None
    assert found.word == "batched_calls"
    assert found.evidence["gain"] == pytest.approx(25, rel=0.05)
    assert "times less; for the baseline it is 1.0" in found.message


@pytest.mark.parametrize(("single_us", "burst_us"), [(500.0, 500.0), (6.0, 4.0), (53.0, 50.0), (1030.0, 1000.0)])
def test_what_an_honest_kernel_gains_in_company_is_not(single_us: float, burst_us: float) -> None:
    for seed in range(100):
        assert suspicion(single_us, burst_us, seed=seed) == ""


@pytest.mark.parametrize(("single_us", "burst_us"), [(10.0, 3.0), (17.0, 9.0), (125.0, 100.0), (560.0, 500.0)])
def test_a_small_gain_is_no_accusation_and_not_relied_on(single_us: float, burst_us: float) -> None:
    assert suspicion(single_us, burst_us) == "one_call_bursts"


def test_a_gain_that_the_baseline_shows_too_is_not() -> None:
    assert suspicion(400.0, 200.0) == "batched_calls"
    assert suspicion(400.0, 200.0, baseline=(900.0, 450.0)) == ""


def test_a_first_call_may_cost_what_the_baselines_does() -> None:
    assert suspicion(32.0, 20.0) == "one_call_bursts"
    assert suspicion(32.0, 20.0, baseline=(31.0, 18.5)) == ""


def test_what_a_slow_baselines_first_call_costs_excuses_no_quick_candidate() -> None:
    # Seen on an H200: one launch for the calls of a burst, 0.7 us each; a launch of its own takes 3.2.
    assert suspicion(5.6, 0.7, baseline=(21.6, 18.1)) == "one_call_bursts"
    # The honest one of that kind.
    rng = random.Random(7)
    honest = [5.4 + rng.gauss(0, 0.3) for _ in range(10)]
    known = {"baseline_single_us": [22.5] * 10, "baseline_burst_us": [18.1] * 20}
    assert batching(honest, [3.2] * 20, **known) is None


def test_weights_that_stay_in_a_cache_excuse_nobody_beyond_what_the_baseline_gains_by_them() -> None:
    assert suspicion(22.0, 8.0) == "batched_calls"
    assert suspicion(22.0, 8.0, baseline=(64.0, 22.0)) == ""


def test_what_short_calls_may_gain_together_is_bounded_and_of_long_ones_next_to_nothing() -> None:
    baseline = {"baseline_single_us": [4.99] * 10, "baseline_burst_us": [3.57] * 40}
    # Seen on an H100: two launches for three calls, as quick alone as their honest twin.
    assert batching([5.12] * 10, [2.55] * 40, **baseline) is None
    assert unseen_gain([5.12] * 10, [2.55] * 40, **baseline) > 1.4
    # Who gains by company what the baseline gains, or less, has nothing to hide.
    assert unseen_gain([4.99] * 10, [3.57] * 40, **baseline) == 1.0
    assert unseen_gain([3.0] * 10, [3.0] * 40, **baseline) == 1.0
    long = {"baseline_single_us": [1010.0] * 10, "baseline_burst_us": [1000.0] * 40}
    assert 1.0 < unseen_gain([515.0] * 10, [500.0] * 40, **long) < 1.02


def test_a_handful_of_outliers_or_too_few_singles_prove_nothing() -> None:
    rng = random.Random(4)
    baseline = {"baseline_single_us": around(rng, 100), "baseline_burst_us": around(rng, 100)}
    single = [*around(rng, 100, 7), 900.0, 950.0, 1000.0]
    assert batching(single, around(rng, 100), **baseline) is None
    assert batching([900.0] * 9, around(rng, 100), **baseline) is None
    assert batching([900.0] * 10, [100.0], **baseline) is None


def test_singles_that_scatter_over_the_limit_prove_nothing() -> None:
    rng = random.Random(5)
    baseline = {"baseline_single_us": around(rng, 100), "baseline_burst_us": around(rng, 100)}
    scattered = [rng.choice((80.0, 300.0)) for _ in range(9)] + [300.0]
    assert batching([300.0] * 10, [100.0] * 20, **baseline) is not None
    assert batching(scattered, [100.0] * 20, **baseline) is None


def test_scatter_does_not_excuse_calls_that_are_slow_alone() -> None:
    # Read on an H200 whose host was busy: no single call came near what the burst claims.
    found = batching(
        [11.744, 35.872, 24.288, 15.488, 10.144, 11.2, 9.792, 10.656, 9.632, 10.88],
        [3.7637, 3.0107, 3.8331, 3.8225],
        baseline_single_us=[30.688, 21.088, 20.768, 38.784, 30.304, 19.712, 21.152, 42.272, 20.224, 19.36],
        baseline_burst_us=[17.8194, 17.7173, 18.2487, 20.384],
    )
    assert found is not None


@given(st.lists(st.floats(0, 500), min_size=10, max_size=40), st.integers())
def test_a_candidate_that_dawdles_alone_is_no_less_suspect(waits_us: list[float], seed: int) -> None:
    rng = random.Random(seed)
    baseline = {"baseline_single_us": around(rng, 110), "baseline_burst_us": around(rng, 107)}
    assert batching([500.0 + wait_us for wait_us in waits_us], [20.0] * 20, **baseline) is not None


@pytest.mark.parametrize(
    ("single_us", "burst_us", "relied_on"),
    [(300.0, 65.0, False), (1250.0, 1000.0, True), (1300.0, 1000.0, False), (8.0, 2.0, True)],
)
def test_company_is_relied_on_where_the_baseline_gains_little_by_it(
    single_us: float, burst_us: float, relied_on: bool
) -> None:
    rng = random.Random(6)
    found = unreliable(around(rng, single_us, 9, 0.1), around(rng, burst_us, 9, 0.1))
    assert (found is None) is relied_on


def test_without_bursts_of_several_none_is_unreliable() -> None:
    assert unreliable([300.0] * 9, []) is None


def test_what_wakes_a_slow_baseline_excuses_no_quick_candidate_beyond_a_bound() -> None:
    # On the CPU: 250 us to wake. A candidate whose call takes 200 us alone, and in company 100, may have batched.
    alone, together = [200.0] * 10, [100.0] * 20
    baseline = {"baseline_single_us": [500.0] * 10, "baseline_burst_us": [250.0] * 20}
    assert batching(alone, together, **baseline) is None
    found = batching(alone, together, **baseline, at_most=1.25)
    assert found is not None
    assert found.word == "one_call_bursts"
    assert batching([126.0] * 10, together, **baseline, at_most=1.25) is None


def told_without_the_gate(burst_us: float, *, scatters: bool) -> float:
    """Of 400 comparisons whose single calls take the way of the messages, how many raise a suspicion."""
    rng = random.Random(0)
    found = []
    for _ in range(400):
        single, usual_single = (around(rng, 2800.0, 40, 350.0) for _ in range(2))
        burst, usual_burst = around(rng, burst_us, 20, 30.0), around(rng, 1650.0, 20, 30.0)
        found.append(
            batching(single, burst, baseline_single_us=usual_single, baseline_burst_us=usual_burst, scatters=scatters)
            is not None
        )
    return sum(found) / len(found)


def test_the_scatter_of_the_messages_way_raises_no_suspicion() -> None:
    assert told_without_the_gate(1650.0, scatters=False) > 0.05
    assert told_without_the_gate(1650.0, scatters=True) < 0.01
    assert told_without_the_gate(1300.0, scatters=True) > 0.9
