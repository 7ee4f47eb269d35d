"""The session's side of an audit: one process a problem, a deadline, a log. No torch."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.catalog.problems import Problem
from harness.environment import Device, why_no_cuda
from harness.processes.nursery import NotStarted, Nursery
from harness.records import Outcome, Status
from harness.supervise import losses
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import Audit, Audited, CandidateSource


def audit(
    problem: Problem,
    overrides: dict[str, object],
    precision: str,
    device: Device,
    nursery: Nursery,
    *,
    seed: int,
    compiled: bool,
    timeout_s: float,
) -> Audited:
    """Audit one problem at one variant and precision; every failure is an `Audited` with its fault."""
    if problem.fault:
        return Audited(fault=Outcome(status=Status.INVALID_REFERENCE, reason="contract", message=problem.fault))
    with tempfile.TemporaryDirectory(prefix="assay-audit-") as folder:
        environment = {"TORCHINDUCTOR_CACHE_DIR": folder, "TMPDIR": folder} | device.environment
        try:
            child = nursery.start("auditor", Audited, Path(folder) / "log", environment)
        except NotStarted as error:
            return Audited(fault=losses.not_started(error))
        try:
            request = Audit(
                problem=CandidateSource(path=str(problem.path.resolve()), entries=("Model",), overrides=overrides),
                precision=precision,
                device=device.alone,
                seed=seed,
                compiled=compiled,
                why_no_cuda=why_no_cuda() if device.kind == "cpu" else "",
            )
            child.channel.send(request)
            answer: Audited = child.channel.message(timeout_s)
            return answer
        except DeadlineExceeded:
            message = f"the audit took longer than {timeout_s:g} s"
            return Audited(fault=Outcome(status=Status.TIMEOUT, reason="audit", message=message))
        except NotSendable as error:
            return Audited(fault=faults.unsendable(error, Status.INVALID_REFERENCE))
        except ProtocolError as error:
            return Audited(fault=Outcome(status=Status.HARNESS_ERROR, reason="protocol", message=str(error)))
        except PeerGone:
            return Audited(fault=faults.death(child.wait(2.0), "its audit"))
        finally:
            child.kill()
