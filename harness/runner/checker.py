"""The process of a check: a build process that has a CUDA toolkit also where torch would look for none.

Untrusted, like every build process: it executes the candidate, and whatever it says is a claim.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import torch
from torch.utils import cpp_extension

from harness.compile import hints, resources, toolkit
from harness.compile.stand_ins import StandIns
from harness.records import Outcome, Status
from harness.runner import builder
from harness.wire import faults
from harness.wire.channel import Channel
from harness.wire.messages import MOST_KERNELS, BuildFailed, BuildTried, TryBuild


def main(channel_fd: int) -> None:
    """Serve one TryBuild request and end."""
    channel = Channel.from_fd(channel_fd, TryBuild)
    request, _ = channel.receive(60.0)
    channel.send(check(request))


def check(request: TryBuild) -> BuildTried:
    """Build with the toolkit laid out below the build's folder, and stand-ins for what a CPU build of torch lacks."""
    stand_ins = StandIns(Path(request.build.folder) / "stand_ins")
    logs: Path | None = None
    if request.toolkit is not None:
        home = Path(request.build.folder) / "toolkit"
        os.environ.update(toolkit.lay_out(request.toolkit, home))
        cpp_extension.CUDA_HOME = str(home)
        logs = home / "logs"
        if torch.version.cuda is None:
            stand_ins.install(toolkit.runtime_library(request.toolkit))
    built = builder.build(request.build)
    if isinstance(built, BuildFailed):
        built = _on_this_machine(built, request)
    kernels = [kernel for log in _logs(logs) for kernel in resources.parse(log.read_text(errors="replace"))]
    told = [
        msgspec.structs.replace(kernel, name=kernel.name[: resources.LONGEST_NAME])
        for kernel in resources.demangled(kernels[:MOST_KERNELS])
    ]
    hint = hints.hint(built.outcome.message[:2000]) if isinstance(built, BuildFailed) else ""
    return BuildTried(built=built, hint=hint, kernels=told, absent=stand_ins.absent)


def _logs(folder: Path | None) -> list[Path]:
    return sorted(folder.glob("*.txt"), key=os.path.getmtime) if folder else []


def _on_this_machine(failed: BuildFailed, request: TryBuild) -> BuildFailed:
    """Nothing is wrong with a candidate that needs headers which are not here, or that reaches for a card once it is
    compiled: the same failure, as `unsupported`."""
    evidence = failed.outcome.evidence
    for error in evidence.get("errors", []):
        package = toolkit.missing_package(error["text"], request.toolkit) if request.toolkit else ""
        if package:
            where = f"{Path(request.build.candidate).name}:{error['line']}"
            message = f"{where}: {error['text']}; this machine lacks its headers: pip install {package}"
            return BuildFailed(outcome=Outcome(status=Status.UNSUPPORTED, reason="missing_headers", message=message))
    if not request.why_no_device or failed.outcome.status is not Status.LOAD_ERROR or "exception" not in evidence:
        return failed
    path = Path(request.build.candidate)
    outcome = faults.classify(
        "load", evidence["exception"], evidence["text"], path.name, evidence["line"], request.why_no_device
    )
    return BuildFailed(outcome=outcome)
