"""The session's side of a check: one untrusted build process a candidate, a deadline, a log. No torch."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import msgspec

from harness.catalog import sources
from harness.catalog.problems import Problem
from harness.catalog.solutions import Candidate
from harness.compile.toolkit import INSTALL, Toolkit
from harness.environment import why_no_cuda
from harness.processes import folders
from harness.processes.nursery import Nursery
from harness.records import Outcome, Status
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import Build, BuildFailed, BuildTried, TryBuild

# Told to a candidate that asks for the GPU's name: `--arch` names none.
A_CARD = "NVIDIA GPU"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a candidate's build, and how long it took: its own answer, or the fault that it ended by."""

    answer: BuildTried | None
    fault: Outcome | None
    wall_s: float


def check(
    candidate: Candidate,
    problem: Problem | None,
    nursery: Nursery,
    *,
    toolkit: Toolkit | None,
    architecture: str,
    prepared: str,
    log: Path,
    timeout_s: float,
    scratch: Path,
) -> CheckResult:
    """Compile and load one candidate for `architecture` (9.0a); every failure is an answer with its outcome.

    `prepared` is a folder of precompiled headers, empty for none. The process has a folder of its own below `scratch`.
    """
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        answer, fault = _ask(candidate, problem, nursery, toolkit, architecture, prepared, log, timeout_s, folder)
    except NotSendable as error:
        answer, fault = None, faults.unsendable(error)
    finally:
        folders.remove(folder)
    return CheckResult(answer=answer, fault=fault, wall_s=round(time.monotonic() - started, 3))


def _ask(
    candidate: Candidate,
    problem: Problem | None,
    nursery: Nursery,
    toolkit: Toolkit | None,
    architecture: str,
    prepared: str,
    log: Path,
    timeout_s: float,
    folder: Path,
) -> tuple[BuildTried | None, Outcome | None]:
    environment = dict.fromkeys(("TORCH_EXTENSIONS_DIR", "HOME", "TMPDIR"), str(folder))
    environment["TORCH_CUDA_ARCH_LIST"] = architecture
    # The problem for its init arguments, where the candidate is constructed, too.
    of_use = problem and not problem.fault and candidate.facts.compiles_later
    init_of = [problem.path.resolve()] if problem and of_use else []
    readable = [file for path in (candidate.path.resolve(), *init_of) for file in sources.own_files(path)]
    readable += [prepared] if prepared else []
    child = nursery.start("checker", BuildTried, log, environment, folder, readable=readable)
    try:
        request = TryBuild(
            build=Build(
                candidate=str(candidate.path.resolve()),
                folder=str(folder),
                problem=str(*init_of),
                why_no_cuda="" if toolkit else f"no nvcc was found: {INSTALL}",
                headers="lean",
                prepared=prepared,
                arch=architecture,
                absent_card=A_CARD if toolkit else "",
            ),
            toolkit=toolkit,
            why_no_device=why_no_cuda(),
        )
        child.channel.send(request)
        answer: BuildTried = child.channel.message(timeout_s)
        failed = answer.built.outcome if isinstance(answer.built, BuildFailed) else None
        return answer, failed
    except DeadlineExceeded:
        message = f"compiling took longer than --timeout {timeout_s:g} s"
        return None, Outcome(status=Status.TIMEOUT, reason="compile", message=message)
    except ProtocolError as error:
        message = f"the build process broke the protocol: {error}"
        return None, Outcome(status=Status.REJECTED, reason="protocol", message=message)
    except PeerGone:
        return None, faults.death(child.wait(2.0), "its build", child.cause)
    finally:
        child.kill()
