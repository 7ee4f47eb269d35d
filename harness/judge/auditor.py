"""The audit process: one problem, its reference, and the oracle's controls. It runs no candidate."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

import msgspec
import torch

from harness.judge import auditing
from harness.judge.reference import Reference
from harness.oracle.oracle import InvalidReference, Oracle
from harness.records import Outcome, Status
from harness.wire import faults
from harness.wire.channel import Channel
from harness.wire.messages import Audit, Audited


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
    oracle = Oracle(reference.model)
    draw, another = reference.draw(), reference.draw()
    expected = oracle.expect(list(draw.inputs), draw.seed)
    other = oracle.glance(list(another.inputs), another.seed).native

    def stress() -> auditing.Sets:
        return auditing.binding(oracle.stress(list(draw.inputs), draw.seed))

    results = auditing.negative(oracle, expected, other, stress())
    del other
    results += auditing.positive(oracle, expected, stress(), request.compiled)
    return Audited(results=results, float64=expected.where, exact_precision=expected.precision)
