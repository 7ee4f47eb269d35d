"""Every way an evaluation ends but with times, the one place that makes an outcome of an exception, and hints."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from harness.errors import AssayError
from harness.links.link import RunnerFailed
from harness.records import Outcome, Status
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import CandidateSource, Checks, Ending

# What a runner may make a Link raise.
FAILURES = (RunnerFailed, PeerGone, DeadlineExceeded, NotSendable, ProtocolError)
# What weights may have to do with a wrong answer.
DRAWN_WEIGHTS = (
    "parameters that begin as ones or zeros, as copies of others, or as nothing that was drawn (identities, orthogonal "
    "matrices, tables, numbers in order) have other values by now: what is computed of them in __init__, or relies on "
    "that, is wrong: compute it in forward, or at the first call"
)
TABLES = (
    "the reference's buffers {names} have no counterpart of the same name and shape in it: of a table that it computes "
    "by itself each rounding counts, even if the reference's is coarser; register buffers of these names, and it is "
    "given the reference's"
)


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


def with_tables(outcome: Outcome, names: Collection[str]) -> Outcome:
    """A wrong answer with the reference's tables that the candidate has not: its own may be other ones, or better."""
    return _and(outcome, TABLES.format(names=_some(sorted(names)))) if names else outcome


def with_unmatched(outcome: Outcome, names: list[str]) -> Outcome:
    """A wrong answer with the candidate's parameters that are not the reference's: the usual reason is another name."""
    if not names:
        return outcome
    return _and(
        outcome,
        f"{len(names)} of its parameters and buffers have no counterpart of the same name and shape "
        f"in the reference, and kept their own values: {_some(names)}",
    )


def _some(names: list[str]) -> str:
    return ", ".join(name[:60] for name in names[:4]) + (", ..." if len(names) > 4 else "")


def _and(outcome: Outcome, hint: str) -> Outcome:
    return msgspec.structs.replace(outcome, message=f"{outcome.message}; {hint}")
