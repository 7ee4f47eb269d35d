"""The process of an inspection: builds a candidate, and has one of NVIDIA's tools look into one call of it.

Untrusted, like every process that runs a candidate, and so is what it says: nothing of it is in a verdict. The call is
in a process of its own (`inspected`), which the tool starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from harness.compile import diagnostics
from harness.instruments import nsight, sanitizer
from harness.instruments.sanitizer import Finding, Place
from harness.instruments.tools import MOST_LAUNCHES, MOST_SAID, NSIGHT, REPORT
from harness.runner import builder
from harness.runner.inspected import FAULT, Task
from harness.wire.channel import Channel
from harness.wire.messages import LONGEST_SAID, Build, BuildFailed, CandidateSource, Inspect, Inspected

# Files that the build makes of the candidate's strings.
GENERATED = ("*.cu", "*.cpp", "*.cuh", "*.h")
SHOW_S = 120.0


def main(channel_fd: int) -> None:
    """Serve one Inspect request and end."""
    channel = Channel.from_fd(channel_fd, Inspect)
    request, _ = channel.receive(60.0)
    channel.send(inspect(request))


def inspect(request: Inspect) -> Inspected:
    """Build, call under the instrument, and take apart what it says."""
    built = builder.build(request.build)
    if isinstance(built, BuildFailed):
        return Inspected(built=built)
    folder = Path(request.build.folder)
    libraries = {key: str(folder / name) for key, name in built.libraries.items()}
    task = Task(
        source=CandidateSource(
            path=request.build.candidate,
            entries=("ModelNew", "Model"),
            overrides=request.build.overrides,
            libraries=libraries,
            failures=built.failures,
            unconstructed=built.unconstructed,
        ),
        problem=request.problem,
        precision=request.precision,
        device=request.device,
        profiled=request.instrument.name == NSIGHT,
    )
    place = folder / "task.json"
    place.write_bytes(msgspec.json.encode(task))
    call = [sys.executable, "-P", "-m", "harness.runner.inspected", str(place)]
    said = _said([*request.instrument.command, *call], request.instrument.environment, request.timeout_s)
    print(said, file=sys.stderr)
    fault = folder / FAULT
    failed = fault.read_text(errors="replace")[:LONGEST_SAID] if fault.is_file() else ""
    if task.profiled:
        report = (folder / REPORT).is_file()
        page = _said(request.instrument.show, {}, SHOW_S) if report else ""
        launches = nsight.parse(page)[:MOST_LAUNCHES]
        return Inspected(built=built, launches=launches, report=report, failed=failed, said=said[-LONGEST_SAID:])
    findings = [_traced(one, request.build) for one in sanitizer.parse(said)[:MOST_SAID]]
    return Inspected(built=built, findings=findings, failed=failed, said=said[-LONGEST_SAID:])


def _said(command: list[str], environment: dict[str, str], timeout_s: float) -> str:
    """What a command prints, its errors among it; as much as there is where the time is over."""
    # Figures are printed as the language has them. Packages are where this process has them, which need not be where a
    # fresh interpreter looks.
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path]))
    own = os.environ | {"LC_ALL": "C", "PYTHONPATH": paths} | environment
    try:
        result = subprocess.run(
            command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        return f"{(error.stdout or b'').decode(errors='replace')}\nended after {timeout_s:g} s"
    except OSError as error:
        return f"{command[0]} does not start: {error}"
    return result.stdout.decode(errors="replace")


def _traced(finding: Finding, build: Build) -> Finding:
    return msgspec.structs.replace(finding, places=[_own(place, build) for place in finding.places])


def _own(place: Place, build: Build) -> Place:
    """The place with the line of the candidate's file that it came from, if it came from there."""
    for pattern in GENERATED if place.file else ():
        for generated in sorted(Path(build.folder).rglob(pattern)):
            if generated.name != place.file:
                continue
            line, text = diagnostics.trace_back(generated, place.line, Path(build.candidate))
            if line:
                return msgspec.structs.replace(place, own_line=line, source_line=text[: sanitizer.LONGEST])
    return place
