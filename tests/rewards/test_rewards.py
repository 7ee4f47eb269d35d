"""Rewards: pure, ordered, and never a zero for what is not the candidate's doing."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import BadValue, UsageError
from harness.records import NOT_ITS_DOING, Provenance, Record, Status
from harness.rewards.rewards import SCHEMES, reward

QUICK = settings(deadline=None)

KNOWN = {"key": "k", "problem": "toy/scale", "variant": "default", "precision": "float32", "candidate": "one"}
KNOWN |= {"device": "made up", "baseline": "eager"}
ITS_DOING = [status for status in Status if status not in (*NOT_ITS_DOING, Status.PASSED)]

schemes = st.sampled_from(sorted(SCHEMES))
speedups = st.floats(1e-3, 1e3)


def passed(speedup: float, lo: float | None = None, share: float | None = None) -> Record:
    return Record(
        status=Status.PASSED,
        speedup=speedup,
        speedup_lo=speedup if lo is None else lo,
        speedup_hi=speedup,
        candidate_ms=1.0,
        baseline_ms=speedup,
        provenance=None if share is None else Provenance(own_share=share, device_us=1.0),
        **KNOWN,
    )


def failed(status: Status, reason: str = "x", **more: object) -> Record:
    return Record(status=status, reason=reason, **KNOWN, **more)


failures = st.builds(
    failed,
    st.sampled_from(ITS_DOING),
    evidence=st.dictionaries(st.just("share_wrong"), st.floats(0, 1) | st.sampled_from([None, "half"])),
    phases_s=st.dictionaries(st.sampled_from(["load", "first call", "open: judge"]), st.floats(0, 9)),
)


@QUICK
@given(schemes, failures, speedups, st.booleans())
def test_a_failure_earns_no_more_than_a_right_answer(scheme, failure, speedup, own_kernels):
    least = reward(passed(speedup), scheme)
    got = reward(failure, scheme, own_kernels=own_kernels)
    assert least is not None
    assert got is not None
    assert 0 <= got <= least
    assert math.isfinite(least)


@QUICK
@given(schemes, speedups, speedups)
def test_the_faster_earns_no_less(scheme, one, other):
    slow, fast = sorted((one, other))
    assert reward(passed(slow), scheme) <= reward(passed(fast), scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "record",
    [
        failed(Status.HARNESS_ERROR, "judge_lost"),
        failed(Status.HARNESS_ERROR, "deadline"),
        failed(Status.INVALID_REFERENCE, "random"),
        failed(Status.UNSUPPORTED, "needs_cuda"),
        failed(Status.UNSUPPORTED, "needs_memory"),
        failed(Status.UNSUPPORTED, "no_profile"),
    ],
    ids=lambda record: record.reason,
)
def test_what_is_not_the_candidate_s_doing_earns_nothing_that_could_be_learnt(scheme, record):
    assert reward(record, scheme) is None


@pytest.mark.parametrize("reason", ["missing_module:triton", "missing_headers", "not_implemented"])
def test_what_it_asks_for_is_its_own_doing(reason):
    assert reward(failed(Status.UNSUPPORTED, reason)) == 0.0


@pytest.mark.parametrize("reason", ["needs_cuda", "needs_memory", "no_profile", "needs_memory: really"])
@pytest.mark.parametrize("status", [Status.LOAD_ERROR, Status.COMPILE_ERROR, Status.RUNTIME_ERROR])
def test_a_reason_that_a_candidate_may_have_raised_excuses_nobody(status, reason):
    assert reward(failed(status, reason)) == 0.0


@QUICK
@given(schemes, speedups, st.floats(0, 1))
def test_the_own_share_is_a_factor(scheme, speedup, share):
    whole = reward(passed(speedup), scheme)
    assert reward(passed(speedup, share=share), scheme, own_kernels=True) == pytest.approx(whole * share)
    assert reward(passed(speedup), scheme, own_kernels=True) is None


STAGES = {
    "not compiled": (failed(Status.COMPILE_ERROR), 0.0),
    "compiled": (failed(Status.LOAD_ERROR, phases_s={"load": 1.0}), 0.1),
    "an empty file": (failed(Status.LOAD_ERROR, "missing_entry", phases_s={"load": 1.0}), 0.0),
    "too slow as a whole": (failed(Status.TIMEOUT, "total"), 0.1),
    "not compiled, and lies": (failed(Status.COMPILE_ERROR, "total"), 0.0),
    "loaded": (failed(Status.RUNTIME_ERROR, phases_s={"load": 1.0, "first call": 1.0}), 0.2),
    "all wrong": (failed(Status.INCORRECT, evidence={"share_wrong": 1.0}), 0.2),
    "half right": (failed(Status.INCORRECT, evidence={"share_wrong": 0.5}), 0.35),
    "a lie": (failed(Status.INCORRECT, evidence={"share_wrong": -7.0}), 0.2),
    "cheated": (failed(Status.REJECTED, phases_s={"load": 1.0, "first call": 1.0}), 0.0),
    "right": (passed(3.0, lo=0.9), 0.6),
    "faster": (passed(1.1, lo=1.01), 1.0),
}


@pytest.mark.parametrize("stage", STAGES)
def test_stages(stage):
    record, earned = STAGES[stage]
    assert reward(record, "stages") == pytest.approx(earned)


def test_the_others_by_example():
    two = passed(2.0, lo=1.5)
    assert {scheme: reward(two, scheme) for scheme in SCHEMES} == {
        "speedup": 2.0,
        "sure_speedup": 1.5,
        "log_speedup": pytest.approx(math.log2(3)),
        "fast_p": 1.0,
        "stages": 1.0,
    }
    assert reward(two, "fast_p", p=2.0) == 0.0
    assert reward(msgspec.structs.replace(two, speedup=1.9, speedup_hi=2.0), "fast_p", p=1.5) == 1.0


def test_wrong_words_are_told():
    with pytest.raises(UsageError, match="did you mean 'log_speedup'"):
        reward(passed(1.0), "log_speed")
    for p in (-1.0, math.nan):
        with pytest.raises(BadValue):
            reward(passed(1.0), "fast_p", p=p)
