"""NVIDIA's tools that look into one call of a candidate: where they are, and how they are started. No torch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.errors import UsageError

REPORT = "report.ncu-rep"
# Launches of one call that are looked at; each is run again for every few figures.
MOST_LAUNCHES = 50
# A sanitizer says the same of every thread that does the same.
MOST_SAID = 100

NSIGHT, SANITIZER = "ncu", "compute-sanitizer"
SANITIZERS = ("memcheck", "racecheck")
PLACES = {
    NSIGHT: ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda*/nsight-compute*/ncu"),
    SANITIZER: ("/usr/local/cuda*/compute-sanitizer/compute-sanitizer",),
}
INSTALL = {
    NSIGHT: "it is Nsight Compute, a part of the CUDA toolkit (in packages: cuda-nsight-compute)",
    SANITIZER: "it is a part of the CUDA toolkit (in packages: cuda-sanitizer)",
}


class Instrument(msgspec.Struct, frozen=True, kw_only=True):
    """How one call of a candidate is looked into: the command that the call's process follows, the one that then prints
    its report (empty for none), and what that process is told by its environment."""

    name: str
    command: list[str]
    show: list[str] = []
    environment: dict[str, str] = {}


def nsight() -> Instrument:
    """Nsight Compute: the kernels of one call, in `REPORT`. Raises UsageError where it is not installed."""
    tool = find(NSIGHT)
    command = [tool, "--target-processes", "all", "--profile-from-start", "off", "--set", "detailed"]
    # Its own way to steady the clocks changes them for everybody on the card.
    command += ["--clock-control", "none", "--launch-count", str(MOST_LAUNCHES), "--force-overwrite"]
    show = [tool, "--import", REPORT, "--csv", "--page", "raw", "--print-units", "base"]
    return Instrument(name=NSIGHT, command=[*command, "--export", REPORT], show=show)


def sanitizer(check: str) -> Instrument:
    """Compute Sanitizer's `memcheck` or `racecheck`. Raises UsageError where it is not installed."""
    command = [find(SANITIZER), "--tool", check, "--show-backtrace", "no", "--print-limit", str(MOST_SAID)]
    # Otherwise PyTorch hands out parts of larger blocks, and what is written behind a tensor is in the block still.
    return Instrument(name=check, command=command, environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})


def find(tool: str) -> str:
    """The path of a tool: from PATH, of the CUDA toolkit, or where its packages put it. Raises UsageError."""
    for place in _places(tool):
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    raise UsageError(f"{tool} is not installed: {INSTALL[tool]}; put it on PATH, or its toolkit into CUDA_HOME")


def _places(tool: str) -> Iterator[Path]:
    on_path = shutil.which(tool)
    if on_path:
        yield Path(on_path)
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name]) / "bin" / tool
    yield Path("/usr/local/cuda/bin") / tool
    for pattern in PLACES[tool]:
        # The newest first.
        yield from sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True)
