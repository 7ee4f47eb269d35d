"""The command `doctor`: what this machine can do, what is missing, and how to fix it. Imports no torch."""

from __future__ import annotations

import dataclasses
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from harness import environment
from harness.compile import toolkit, tools
from harness.errors import UsageError
from harness.processes import memory_watch
from harness.sandbox import probe
from harness.sandbox.enforcement import LAYERS

OLDEST_PYTHON = (3, 11)
DRIVER = "driver and torch"
SANDBOX = "sandbox: what a candidate's processes are held to"
LEAST_MEMORY_GB, LEAST_DISK_GB, LEAST_CORES = 4.0, 5.0, 2


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """One line: what was examined, whether it is ok, what was found, and how to fix it if it is not.

    `vital`: the harness cannot run without it. `heading` is that of the part of the table that it is in, `lack` what is
    said where it is not ok.
    """

    name: str
    ok: bool
    found: str
    mend: str = ""
    vital: bool = False
    heading: str = ""
    lack: str = "missing"


def examine() -> list[Diagnosis]:
    """Examine everything; takes about a second."""
    return [
        _python(),
        _torch(),
        *gpu(),
        _nvcc(),
        _compiler(),
        _ninja(),
        _cores(),
        _memory(),
        _disk(),
        *_sandbox(),
    ]


def conclusion(found: Iterable[Diagnosis]) -> str:
    """What can be evaluated on this machine, in one sentence."""
    missing = {one.name: one for one in found if not one.ok}
    if vital := [one.name for one in missing.values() if one.vital]:
        return f"Nothing can be evaluated here; missing: {', '.join(vital)}."
    if for_cpp := missing.keys() & {"C++ compiler", "ninja"}:
        return f"Only candidates that compile nothing can be evaluated here; missing: {', '.join(sorted(for_cpp))}."
    if "GPU" in missing:
        need = "a GPU, and nvcc to be compiled" if "nvcc" in missing else "a GPU (`check` compiles them without one)"
        return f"C++ candidates can be evaluated here; CUDA candidates need {need}."
    if for_cuda := missing.keys() & {DRIVER, "nvcc"}:
        return f"C++ candidates can be evaluated here, CUDA candidates cannot; missing: {', '.join(sorted(for_cuda))}."
    return "C++ and CUDA candidates can be evaluated here."


def _python() -> Diagnosis:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    ok = sys.version_info >= OLDEST_PYTHON
    return Diagnosis("Python", ok, platform.python_version(), f"install Python {oldest} or newer", vital=True)


def _torch() -> Diagnosis:
    try:
        build = environment.torch_build()
    except UsageError as error:
        return Diagnosis("torch", False, str(error).partition(";")[0], environment.INSTALL_TORCH, vital=True)
    return Diagnosis(
        "torch", True, f"{build.version}, {f'for CUDA {build.cuda}' if build.cuda else 'for the CPU only'}"
    )


def _torch_cuda() -> str:
    """The CUDA version that the installed torch was built for; empty if there is none."""
    try:
        return environment.torch_build().cuda
    except UsageError:
        return ""


def gpu() -> list[Diagnosis]:
    """The GPU, and whether its driver and torch fit; one line where a driver, or a way to ask it, is missing."""
    devices, driver, why = environment.gpus()
    if devices:
        names = [f"{device.spec} {device.name}, {device.memory_bytes / 1e9:.0f} GB" for device in devices]
        return [Diagnosis("GPU", True, "; ".join(names)), _fit(driver)]
    if importlib.util.find_spec("pynvml") is None:
        return [Diagnosis("GPU", False, why, "pip install nvidia-ml-py")]
    mend = "give this machine a GPU that nvidia-smi lists" if driver else "install its driver, if this machine has one"
    return [Diagnosis("GPU", False, why, mend)]


def _fit(driver: str) -> Diagnosis:
    newest, built_for = environment.driver_cuda(), _torch_cuda()
    if not built_for:
        mend = "install a torch built for CUDA: https://pytorch.org/get-started"
        return Diagnosis(DRIVER, False, f"driver {driver}; torch is built without CUDA", mend)
    ok = _major(newest) >= _major(built_for)
    mend = f"install a driver for CUDA {_major(built_for)}, or a torch built for CUDA {_major(newest)} or older"
    return Diagnosis(DRIVER, ok, f"driver {driver} runs CUDA {newest}, torch is built for {built_for}", mend)


def _nvcc() -> Diagnosis:
    """The nvcc that `check` compiles with; a torch built for CUDA looks for its own in fewer places."""
    built_for, found = _torch_cuda(), toolkit.find()
    wanted = f"CUDA toolkit {_major(built_for)}" if built_for else "CUDA toolkit"
    install = f"install the {wanted} and put nvcc on PATH or its folder into CUDA_HOME"
    if found is None:
        package = "" if built_for else f"; {toolkit.INSTALL}, too"
        return Diagnosis("nvcc", False, "not found", f"{install}{package}. Without it CUDA candidates do not compile")
    version, place = found.version, Path(found.nvcc).parents[1]
    if built_for and not (toolkit.home_of_torch() / "bin/nvcc").is_file():
        where = f"{version} in {place}; `check` uses it, but torch does not find it"
        return Diagnosis(
            "nvcc", False, where, f"set CUDA_HOME to a toolkit, or {install}; otherwise CUDA candidates of a run fail"
        )
    ok = not built_for or _major(version) == _major(built_for)
    return Diagnosis("nvcc", ok, version if ok else f"{version}, but torch is built for CUDA {built_for}", install)


def _compiler() -> Diagnosis:
    name = tools.compiler()
    version = _version(name, "--version", r"^(.*)$")
    return Diagnosis(
        "C++ compiler", bool(version), version or f"{name} not found", "install g++; without it no candidate compiles"
    )


# What follows a version is not its own: 1.13.2.git.kitware.
NUMBERS = r"^(\d+(?:\.\d+)*)"


def _ninja() -> Diagnosis:
    version = _version("ninja", "--version", NUMBERS) or _version(
        str(Path(sys.prefix) / "bin/ninja"), "--version", NUMBERS
    )
    return Diagnosis("ninja", bool(version), version or "not found", "pip install ninja; load_inline builds with it")


def _cores() -> Diagnosis:
    count = environment.cores()
    mend = f"use {LEAST_CORES} cores or more: on one core, judge and candidate disturb each other's times"
    return Diagnosis("cores", count >= LEAST_CORES, environment.cpu_name(), mend)


def _memory() -> Diagnosis:
    total, available = (nbytes / 1e9 for nbytes in memory_watch.memory())
    mend = f"free {LEAST_MEMORY_GB:g} GB; judge and runners each hold torch, the inputs and the weights"
    return Diagnosis("memory", available >= LEAST_MEMORY_GB, f"{available:.0f} of {total:.0f} GB free", mend)


def _disk() -> Diagnosis:
    free = shutil.disk_usage(tempfile.gettempdir()).free / 1e9
    mend = f"free {LEAST_DISK_GB:g} GB, or set TMPDIR to a folder with more space; builds use it"
    return Diagnosis("temporary folder", free >= LEAST_DISK_GB, f"{free:.0f} GB free in {tempfile.gettempdir()}", mend)


def _sandbox() -> list[Diagnosis]:
    try:
        found = probe.chosen("auto", gpu=bool(environment.gpus()[0]))
    except UsageError as error:
        return [Diagnosis("layers", False, str(error), "see what it says", heading=SANDBOX)]
    return [
        Diagnosis(layer, layer in found.layers, found.missing.get(layer, about), probe.MENDS[layer], heading=SANDBOX)
        for layer, about in LAYERS.items()
    ]


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _version(command: str, option: str, pattern: str) -> str:
    """The version that a tool reports; empty if it is missing or does not work."""
    try:
        result = subprocess.run([command, option], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(pattern, result.stdout, re.MULTILINE)
    return found.group(1).strip() if found else ""
