"""Every way an evaluation ends but with times, and the one place that makes an outcome of an exception."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from harness.errors import AssayError
from harness.links.link import RunnerFailed
from harness.records import Outcome, Status
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import CandidateSource, Checks, Ending

# What a runner may make a Link raise.
FAILURES = (RunnerFailed, PeerGone, DeadlineExceeded, NotSendable, ProtocolError)


class Ended(AssayError):
    """An evaluation is over; the ending says why, `checks` what is known of the candidate beside that."""

    def __init__(self, ending: Ending, checks: Checks | None = None) -> None:
        super().__init__(ending.outcome.message)
        self.ending = ending
        self.checks = checks or Checks()


class Refused(Ended):
    """A runner's answers or starts are refused: the candidate's, or the baseline's where that spoils the reference."""

    def __init__(self, outcome: Outcome, checks: Checks | None = None) -> None:
        right = outcome.status is not Status.INVALID_REFERENCE
        super().__init__(Ending(outcome=outcome, baseline_ok=right), checks)


@contextlib.contextmanager
def ends_if_it_fails(source: CandidateSource, phase: str, limit: str, why_no_cuda: str) -> Iterator[None]:
    """Raises Ended where a runner of `source` fails, dies, hangs or talks nonsense meanwhile.

    `limit` is the config's key of the deadline that holds in this phase, `why_no_cuda` says why there is no card.
    """
    try:
        yield
    except FAILURES as error:
        raise Ended(_ending(error, source, phase, limit, why_no_cuda)) from error


def _ending(error: BaseException, source: CandidateSource, phase: str, limit: str, why_no_cuda: str) -> Ending:
    match error:
        case RunnerFailed(failure=failed, unasked=unasked):
            outcome = faults.classify(
                failed.phase,
                failed.exception,
                failed.text,
                Path(source.path).name,
                failed.line,
                why_no_cuda,
                failed.outside,
                # The problem's own code, by a name that only the supervisor gives.
                trusted=bool(source.baseline),
            )
            return Ending(outcome=outcome, raised_on=list(unasked))
        case PeerGone():
            outcome = Outcome(status=Status.CRASHED, reason="gone", message=f"the process went away in {phase}")
            return Ending(outcome=outcome, runner="gone", phase=phase)
        case DeadlineExceeded():
            message = f"no answer in time in {phase}"
            return Ending(
                outcome=Outcome(status=Status.TIMEOUT, reason=phase, message=message, limit=limit), runner="hung"
            )
        case NotSendable():
            return Ending(outcome=faults.unsendable(error))
        case _:
            message = f"the process broke the protocol in {phase}: {error}"
            outcome = Outcome(status=Status.REJECTED, reason="protocol", message=message)
            return Ending(outcome=outcome, runner="broke_protocol")
