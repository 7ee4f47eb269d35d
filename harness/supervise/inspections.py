"""The session's side of an inspection: one untrusted process, a deadline, a log, and the report it leaves. No torch."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness import places
from harness.catalog import sources
from harness.catalog.jobs import Job
from harness.compile import architectures
from harness.environment import Device, why_no_cuda
from harness.instruments.tools import REPORT, Instrument
from harness.processes import folders
from harness.processes.nursery import NotStarted, Nursery
from harness.records import Outcome, Status
from harness.supervise import losses
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import Build, BuildFailed, Inspect, Inspected

# nvcc keeps the lines for the tools; the code is the same.
LINES = "-lineinfo"
# Below the process's folder, where its Python looks for the harness.
PATH = "path"
LARGEST_REPORT_BYTES = 1 << 30
# For the build, and for taking apart what the instrument says.
BESIDE_S = 600.0


def inspect(
    job: Job,
    instrument: Instrument,
    nursery: Nursery,
    device: Device,
    *,
    log: Path,
    report: Path,
    timeout_s: float,
    scratch: Path,
) -> Inspected | Outcome:
    """Build a candidate and have `instrument` look into a call of it, within `timeout_s`; or why that came to nothing.

    What the instrument leaves is copied to `report`, a new file. The process has a folder of its own below `scratch`.
    """
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        request = _request(job, instrument, device, folder, timeout_s)
        answer = _ask(request, job, nursery, device, log, folder)
        if isinstance(answer, Inspected) and answer.report:
            folders.copy_out(folder, REPORT, report, LARGEST_REPORT_BYTES)
    except NotStarted as error:
        return losses.not_started(error)
    except NotSendable as error:
        return faults.unsendable(error)
    except (OSError, ValueError) as error:
        return Outcome(status=Status.HARNESS_ERROR, reason="no_report", message=f"the report cannot be kept: {error}")
    finally:
        folders.remove(folder)
    return answer.built.outcome if isinstance(answer, Inspected) and isinstance(answer.built, BuildFailed) else answer


def _request(job: Job, instrument: Instrument, device: Device, folder: Path, timeout_s: float) -> Inspect:
    problem = str(job.problem.path.resolve())
    build = Build(
        candidate=str(job.candidate.path.resolve()),
        folder=str(folder),
        problem=problem if job.candidate.facts.compiles_later else "",
        overrides=job.overrides,
        why_no_cuda=why_no_cuda() if device.kind == "cpu" else "",
        arch=architectures.of_card(device.capability),
    )
    return Inspect(
        build=build,
        instrument=instrument,
        problem=problem,
        precision=job.precision,
        device=device.alone,
        timeout_s=timeout_s,
    )


def _ask(request: Inspect, job: Job, nursery: Nursery, device: Device, log: Path, folder: Path) -> Inspected | Outcome:
    environment = dict.fromkeys(("TORCH_EXTENSIONS_DIR", "HOME", "TMPDIR", "TRITON_HOME"), str(folder))
    environment |= device.environment | {"NVCC_APPEND_FLAGS": LINES}
    if request.build.arch:
        environment["TORCH_CUDA_ARCH_LIST"] = request.build.arch
    own = [file for path in (job.candidate.path, job.problem.path) for file in sources.own_files(path.resolve())]
    own += [str(Path(request.instrument.command[0]).resolve().parent), str(places.PACKAGE)]
    # The call's process imports the harness anew, and its folder is closed: it holds what candidates must not read.
    environment["PYTHONPATH"] = str(folder / PATH)
    (folder / PATH).mkdir()
    (folder / PATH / places.PACKAGE.name).symlink_to(places.PACKAGE)
    card = device if device.kind == "cuda" else None
    child = nursery.start(
        "inspector", Inspected, log, environment, folder, readable=own, card=card, calls_in_child=True
    )
    try:
        child.channel.send(request)
        answer: Inspected = child.channel.message(request.timeout_s + BESIDE_S)
    except DeadlineExceeded:
        return Outcome(status=Status.TIMEOUT, reason="inspect", message="no answer in time")
    except ProtocolError as error:
        message = f"its process broke the protocol: {error}"
        return Outcome(status=Status.REJECTED, reason="protocol", message=message)
    except PeerGone:
        return faults.death(child.wait(2.0), "the inspection", child.cause)
    finally:
        ended = child.kill() is not None
    if not ended:
        message = "a process of the inspection could not be ended, and so nothing of it is used"
        return Outcome(status=Status.RESOURCE_LIMIT, reason="unkillable", message=message)
    return answer
