"""What a runner does to an evaluation, and what is said of the candidate for it."""

import pytest

from harness.judge.endings import Ended, Refused, ends_if_it_fails
from harness.links.link import RunnerFailed
from harness.records import Outcome, Status
from harness.wire.channel import DeadlineExceeded, PeerGone, ProtocolError
from harness.wire.messages import CandidateSource, Checks, Ending, Failed

RAISED = Failed(phase="call", exception="ValueError", text="too small", line=3)


@pytest.mark.parametrize(
    ("error", "status", "reason", "runner"),
    [
        (RunnerFailed(RAISED), Status.RUNTIME_ERROR, "exception:ValueError", "ok"),
        (PeerGone("closed"), Status.CRASHED, "gone", "gone"),
        (DeadlineExceeded("nothing"), Status.TIMEOUT, "first call", "hung"),
        (ProtocolError("no message"), Status.REJECTED, "protocol", "broke_protocol"),
    ],
)
def test_each_failure_of_a_runner_has_its_ending(error, status, reason, runner):
    with (
        pytest.raises(Ended) as raised,
        ends_if_it_fails(
            CandidateSource(path="/somewhere/mine.py", entries=()), "first call", "limits.first_call_s", ""
        ),
    ):
        raise error
    ending = raised.value.ending
    assert (ending.outcome.status, ending.outcome.reason, ending.runner) == (status, reason, runner)
    assert ending.outcome.limit == ("limits.first_call_s" if status is Status.TIMEOUT else "")
    assert ending.phase == ("first call" if runner == "gone" else "")
    assert ending.baseline_ok
    assert raised.value.checks == Checks()
    assert raised.value.__cause__ is error


def test_an_exception_of_the_candidate_s_is_told_with_its_file_and_line():
    with (
        pytest.raises(Ended) as raised,
        ends_if_it_fails(CandidateSource(path="/somewhere/mine.py", entries=()), "call", "", ""),
    ):
        raise RunnerFailed(RAISED)
    assert raised.value.ending.outcome.message == "mine.py:3: ValueError: too small"


@pytest.mark.parametrize(("status", "right"), [(Status.INCORRECT, True), (Status.INVALID_REFERENCE, False)])
def test_a_wrong_answer_passes_as_it_is_and_says_whose_it_was(status, right):
    outcome = Outcome(status=status, reason="mismatch")
    with (
        pytest.raises(Refused) as raised,
        ends_if_it_fails(CandidateSource(path="mine.py", entries=()), "call", "", ""),
    ):
        raise Refused(outcome, Checks(error_ratio=7.0))
    assert raised.value.ending == Ending(outcome=outcome, baseline_ok=right)
    assert raised.value.checks.error_ratio == 7.0


def test_what_is_no_runner_s_doing_passes():
    with (
        pytest.raises(ZeroDivisionError),
        ends_if_it_fails(CandidateSource(path="mine.py", entries=()), "call", "", ""),
    ):
        raise ZeroDivisionError
