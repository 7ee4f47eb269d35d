import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.claims import unaccounted

# The judge's time a call and the runner's claim: the widest gaps of passed records in results/*-h200, by size of the
# kernel, and some that are wider yet.
HONEST = [(5.4, 5.08), (7.7, 7.2), (19.97, 19.5), (135.9, 133.0), (1605.0, 1555.0)]


def spread(rng: random.Random, true_us: float, count: int = 20) -> list[float]:
    return [true_us * math.exp(rng.gauss(0, 0.01)) for _ in range(count)]


@pytest.mark.parametrize(("judge_us", "claimed_us"), HONEST)
def test_honest_claims_pass_with_room_to_spare(judge_us: float, claimed_us: float) -> None:
    rng = random.Random(1)
    assert unaccounted(spread(rng, judge_us), spread(rng, claimed_us)) is None
    twice_the_gap = judge_us - 2 * (judge_us - claimed_us)
    assert unaccounted(spread(rng, judge_us), spread(rng, twice_the_gap)) is None


@pytest.mark.parametrize("judge_us", [5.0, 50.0, 500.0, 5000.0])
def test_a_runner_that_claims_half_is_noticed(judge_us: float) -> None:
    rng = random.Random(2)
    found = unaccounted(spread(rng, judge_us), spread(rng, judge_us / 2))
    assert found is not None
    assert found.word == "unaccounted_time"
    assert found.evidence["share"] == pytest.approx(0.5, abs=0.02)
    assert found.evidence["allowed_us"] < found.evidence["gap_us"]


def test_sleep_outside_the_events_is_noticed() -> None:
    rng = random.Random(3)
    found = unaccounted(spread(rng, 1200.0), spread(rng, 200.0))
    assert found is not None
    assert "more than the runner claims" in found.message


def test_a_claim_above_what_the_judge_saw_has_its_own_word() -> None:
    rng = random.Random(4)
    found = unaccounted(spread(rng, 100.0), spread(rng, 200.0))
    assert found is not None
    assert found.word == "overclaimed_time"
    assert found.evidence["gap_us"] < 0


def test_who_else_was_on_the_device_explains_nothing_that_a_quiet_burst_shows() -> None:
    """The baseline's claims miss most of three bursts of four, and so do an honest candidate's."""
    others = {"baseline_judge_us": [17.3, 185.0, 352.8, 167.0], "baseline_claimed_us": [17.2, 17.2, 17.2, 17.3]}
    found = unaccounted([70.6, 70.6, 154.3, 145.5], [0.1] * 4, **others)
    assert found is not None
    assert found.word == "unaccounted_time"
    assert unaccounted([70.6, 154.3, 145.5, 180.0], [70.1, 70.6, 70.3, 70.2], **others) is None


def test_what_the_baseline_shows_on_the_same_protocol_is_explained() -> None:
    rng = random.Random(5)
    judge, claimed = spread(rng, 1000.0), spread(rng, 750.0)
    assert unaccounted(judge, claimed) is not None
    assert (
        unaccounted(judge, claimed, baseline_judge_us=spread(rng, 4000.0), baseline_claimed_us=spread(rng, 3400.0))
        is None
    )


def test_the_error_of_the_fixed_cost_is_explained() -> None:
    rng = random.Random(6)
    judge, claimed = spread(rng, 10.0), spread(rng, 5.0)
    assert unaccounted(judge, claimed) is not None
    assert unaccounted(judge, claimed, fixed_error_us=3.0) is None


def test_a_few_late_bursts_prove_nothing() -> None:
    rng = random.Random(7)
    judge, claimed = spread(rng, 100.0), spread(rng, 98.0)
    judge[3] = judge[11] = 5000.0
    assert unaccounted(judge, claimed) is None


def test_no_claims_are_no_evidence_and_nonsense_is() -> None:
    judge = [100.0] * 10
    assert unaccounted(judge, [math.nan] * 10) is None
    assert unaccounted([], []) is None
    assert unaccounted(judge, [99.0] * 8 + [math.inf, -5.0]) is None
    found = unaccounted(judge, [99.0] * 3 + [math.inf] * 4 + [-5.0] * 3)
    assert found is not None
    assert found.word == "nonsense_claims"
    assert found.evidence == {"nonsense_share": pytest.approx(0.7)}


@given(st.lists(st.floats(0.5, 1e6), min_size=1, max_size=30), st.floats(0, 0.09))
def test_no_honest_share_is_ever_suspect(judge_us: list[float], missing: float) -> None:
    assert unaccounted(judge_us, [time * (1 - missing) for time in judge_us]) is None


def test_lists_must_match() -> None:
    with pytest.raises(ValueError, match="shorter"):
        unaccounted([1.0, 2.0], [1.0])
