"""The audit process: one problem, its reference, and the oracle's controls. It runs no candidate."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

import msgspec
import torch

from harness.judge.reference import Reference
from harness.oracle import auditing
from harness.oracle.controls import Tried
from harness.oracle.expectation import InvalidReference
from harness.oracle.oracle import Oracle
from harness.records import Outcome, Status
from harness.wire import faults
from harness.wire.channel import Channel
from harness.wire.messages import Audit, Audited, ControlResult


def main(channel_fd: int) -> None:
    """Serve one Audit request and end."""
    channel = Channel.from_fd(channel_fd, Audit)
    request, _ = channel.receive(60.0)
    started = time.monotonic()
    try:
        answer = audit(request)
    except InvalidReference as error:
        answer = Audited(fault=Outcome(status=Status.INVALID_REFERENCE, reason=error.reason, message=str(error)))
    except Exception as error:
        traceback.print_exc()
        answer = Audited(fault=faults.of_problem(error, Path(request.problem.path), request.why_no_cuda))
    channel.send(msgspec.structs.replace(answer, wall_s=round(time.monotonic() - started, 3)))


def audit(request: Audit) -> Audited:
    """Every control on drawn and, where those do not settle it, stress inputs; raises what the problem's code does."""
    device = torch.device(request.device)
    reference = Reference(request.problem, request.precision, device, request.seed)
    reference.require_fresh_inputs()
    oracle = Oracle(reference.model, promises=reference.promises)
    draw, another = reference.draw(), reference.draw()
    expected = oracle.expect(list(draw.inputs), draw.seed)
    other = oracle.glance(list(another.inputs), another.seed).native

    def stress() -> auditing.Sets:
        return auditing.binding(oracle.stress(list(draw.inputs), draw.seed))

    tried = auditing.negative(oracle, other, auditing.drawn_first(expected, stress()))
    del other
    tried += auditing.positive(oracle, auditing.drawn_first(expected, stress()), request.compiled)
    results = [_result(one) for one in tried]
    promises = list(reference.promises.words)
    return Audited(results=results, promises=promises, float64=expected.where, exact_precision=expected.precision)


def _result(tried: Tried) -> ControlResult:
    finding = tried.finding
    return ControlResult(
        name=tried.control.name,
        refuse=tried.control.refuse,
        refused_on=tried.refused_on,
        reason=finding.reason if finding else "",
        message=finding.message[:300] if finding else "",
        error_ratio=finding.error_ratio if finding else None,
    )
