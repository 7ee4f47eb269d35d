"""The session's side of a build: one untrusted process a candidate, a deadline, a folder of its own. No torch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.catalog.jobs import Job
from harness.environment import Device, why_no_cuda
from harness.records import Outcome, Status
from harness.worker import faults, folders, sandbox_view
from harness.worker.messages import (
    Build,
    BuildFailed,
    Built,
    DeadlineExceeded,
    FromBuilder,
    PeerGone,
    ProtocolError,
)
from harness.worker.processes import ZygoteLost
from harness.worker.renewal import Starter

# SIGKILL comes from outside: whoever is meant to be killed is killed again.
KILLED = "signal:SIGKILL"


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a candidate's extensions: shared objects by digest of the call, or the fault that ended it."""

    libraries: dict[str, str] = {}
    failures: dict[str, str] = {}
    fault: Outcome | None = None
    compile_s: float | None = None
    warnings: list[str] = []


def needs_build(job: Job) -> bool:
    """Whether the source can reach a compiler of ours at all; importing torch for nothing would cost seconds."""
    return b"cpp_extension" in job.candidate.source and not job.candidate.baseline


def build(job: Job, nursery: Starter, device: Device, folder: Path, log: Path, timeout_s: float) -> BuildResult:
    """Compile one candidate's extensions into `folder`, which is made new."""
    if not needs_build(job):
        return BuildResult()
    started = time.monotonic()
    folders.remove(folder)
    folder.mkdir(parents=True)
    environment = {"TORCH_EXTENSIONS_DIR": str(folder), "HOME": str(folder), "TMPDIR": str(folder)}
    if device.capability:
        # Hopper's own instructions (wgmma, setmaxnreg) exist only in the architecture-specific target.
        suffix = "a" if device.capability.startswith("9.") else ""
        environment["TORCH_CUDA_ARCH_LIST"] = device.capability + suffix
    # The problem, because a candidate that compiles in its constructor is given the problem's init arguments.
    readable = [
        *sandbox_view.own_files(job.candidate.path.resolve()),
        *sandbox_view.own_files(job.problem.path.resolve()),
    ]
    child = nursery.start("builder", FromBuilder, log, environment, folder, readable=readable)
    try:
        request = Build(
            candidate=str(job.candidate.path.resolve()),
            folder=str(folder),
            problem=str(job.problem.path.resolve()),
            overrides=job.overrides,
            why_no_cuda=why_no_cuda() if device.kind == "cpu" else "",
        )
        child.channel.send(request)
        answer, _ = child.channel.receive(timeout_s)
        result = _result(answer, folder)
    except DeadlineExceeded:
        message = f"compiling took longer than build.timeout_s = {timeout_s:g} s"
        result = BuildResult(fault=Outcome(status=Status.TIMEOUT, reason="compile", message=message))
    except ProtocolError as error:
        message = f"the build process broke the protocol: {error}"
        result = BuildResult(fault=Outcome(status=Status.REJECTED, reason="protocol", message=message))
    except PeerGone:
        exit_code = child.wait(2.0)
        if child.orphaned:
            raise ZygoteLost("the forking parent died during a build") from None
        died = faults.death(exit_code, "its build", child.cause)
        result = BuildResult(fault=msgspec.structs.replace(died, evidence={"log_tail": child.log_tail()}))
    finally:
        child.kill()
    return msgspec.structs.replace(result, compile_s=round(time.monotonic() - started, 3))


def built_again(attempt: Callable[[], BuildResult]) -> BuildResult:
    """`attempt()`, and once more where the build was killed from outside, or the forking parent was lost."""
    try:
        result = attempt()
        if result.fault is None or result.fault.reason != KILLED:
            return result
    except ZygoteLost:
        pass
    return attempt()


def _result(answer: Built | BuildFailed, folder: Path) -> BuildResult:
    if isinstance(answer, BuildFailed):
        return BuildResult(fault=answer.outcome)
    libraries = {}
    for digest, name in answer.libraries.items():
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            raise ProtocolError(f"a library outside the build folder: {name[:100]}")
        libraries[digest] = str(path)
    warnings = [
        f"build_failure: the candidate goes on without an extension that does not compile: {text[:200]}"
        for text in answer.failures.values()
    ]
    return BuildResult(libraries=libraries, failures=answer.failures, warnings=warnings)
