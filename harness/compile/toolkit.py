"""A CUDA toolkit to compile with, also where this torch is a CPU build and looks for none. No torch.

`lay_out` makes a folder that `torch.utils.cpp_extension` takes for CUDA_HOME: the toolkit's own headers and libraries,
a ptxas that also reports what each kernel uses, and stand-ins, searched last, for what a CPU build of torch lacks.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

INSTALL = "pip install -e '.[nvcc]' installs one"
STAND_INS = Path(__file__).parent / "stand_in_headers"

# Linked by torch or by candidates, and not there on a machine without a card: nothing is called while checking.
LIBRARIES = (
    *("c10_cuda", "torch_cuda", "cuda", "nvidia-ml", "nvrtc"),
    *("cublas", "cublasLt", "cusparse", "cusolver", "curand", "cufft", "cudnn"),
)

# Library -> a header of its own, and the package that has it.
HEADERS = {
    "cublas": ("cublas_v2.h", "nvidia-cublas"),
    "cusparse": ("cusparse.h", "nvidia-cusparse"),
    "cusolver": ("cusolverDn.h", "nvidia-cusolver"),
    "curand": ("curand.h", "nvidia-curand"),
    "cufft": ("cufft.h", "nvidia-cufft"),
    "cudnn": ("cudnn.h", "nvidia-cudnn-cu13"),
}
ASKED = re.compile(
    rf'(?:identifier "|^)(?P<library>{"|".join(HEADERS)})\w*(?:" is undefined|\S*: No such file)', re.IGNORECASE
)

# What nvcc looks for beside itself.
TOOLS = ("nvcc", "nvcc.profile", "cudafe++", "fatbinary", "nvlink", "bin2c", "crt", "__nvcc_device_query")
# Registers and spills are in ptxas's words only, which reach nobody where the build goes well.
PTXAS = """\
#!/bin/sh
{ptxas} -v "$@" > {logs}/$$.txt 2>&1
code=$?
cat {logs}/$$.txt >&2
exit $code
"""


class Toolkit(msgspec.Struct, frozen=True, kw_only=True):
    """Where nvcc, the CUDA headers (first the toolkit's own, then other packages') and libcudart lie."""

    nvcc: str
    include: list[str]
    library: str
    version: str


@cache
def find() -> Toolkit | None:
    """The first there is: of CUDA_HOME or CUDA_PATH, of the nvcc on PATH, in /usr/local/cuda, or from PyPI."""
    for home in _homes():
        nvcc = home / "bin" / "nvcc"
        if not nvcc.is_file() or not (home / "include" / "cuda_runtime.h").is_file():
            continue
        version = re.search(r"release ([\d.]+)", _said(nvcc, "--version")[0])
        headers = [folder / "include" for folder in (home, *_packages())]
        runtime = next((path for name in ("lib64", "lib") for path in (home / name).glob("libcudart.so*")), None)
        if version:
            return Toolkit(
                nvcc=str(nvcc),
                include=list(dict.fromkeys(str(folder) for folder in headers)),
                library=str(runtime.parent) if runtime else "",
                version=version.group(1),
            )
    return None


def home_of_torch() -> Path:
    """The folder that a torch built for CUDA takes for the toolkit's, whether or not one is there."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    on_path = shutil.which("nvcc")
    return Path(home or (Path(on_path).parents[1] if on_path else "/usr/local/cuda"))


def lay_out(toolkit: Toolkit, folder: Path) -> dict[str, str]:
    """Make `folder` the CUDA_HOME described above, and return the environment that compilers need with it.

    What ptxas says goes to `folder`/logs. Real headers and libraries come before stand-ins wherever they exist.
    """
    tools, logs, libraries = folder / "bin", folder / "logs", folder / "libraries"
    for path in (tools, logs, libraries):
        path.mkdir(parents=True, exist_ok=True)
    real = Path(toolkit.nvcc).parent
    # nvcc takes the place that it is called by for its own, so links are enough to put a ptxas of ours before it.
    links = {tools / name: real / name for name in TOOLS}
    links |= {folder / name: real.parent / name for name in ("nvvm", "include", "lib64", "lib")}
    for link, target in links.items():
        if target.exists():
            link.symlink_to(target)
    ptxas = tools / "ptxas"
    ptxas.write_text(PTXAS.format(ptxas=shlex.quote(str(real / "ptxas")), logs=shlex.quote(str(logs))))
    ptxas.chmod(0o755)
    for name in LIBRARIES:
        # An empty linker script: whatever the candidate needs of it is left open until it is loaded.
        (libraries / f"lib{name}.so").write_text("/* not on this machine */\n")
    runtime = runtime_library(toolkit)
    if runtime:
        # Packages from PyPI have the library without the name that linkers look for.
        (libraries / "libcudart.so").write_text(f'INPUT("{runtime}")\n')
    return {
        "CUDA_HOME": str(folder),
        # Both are searched after every -isystem and -L.
        "CPLUS_INCLUDE_PATH": _appended("CPLUS_INCLUDE_PATH", *toolkit.include[1:], str(STAND_INS)),
        "LIBRARY_PATH": _appended("LIBRARY_PATH", str(libraries)),
    }


def runtime_library(toolkit: Toolkit) -> str:
    """The file of libcudart that a loader wants; empty where the toolkit has none."""
    found = sorted(Path(toolkit.library).glob("libcudart.so.*"), key=lambda path: len(path.name))
    return str(found[0]) if toolkit.library and found else ""


def missing_package(error: str, toolkit: Toolkit) -> str:
    """The package on PyPI whose headers a compiler error asks for and which are not installed; empty for other errors.

    Stand-ins declare only what most candidates need of a library.
    """
    asked = ASKED.search(error)
    if asked is None:
        return ""
    header, package = HEADERS[asked["library"]]
    installed = any((Path(folder) / header).is_file() for folder in toolkit.include)
    return "" if installed else package


def _homes() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    on_path = shutil.which("nvcc")
    if on_path:
        # It may be a script that calls the real one; that one names its own place.
        steps = _said(on_path, "--dryrun", "-c", "-x", "cu", os.devnull, "-o", os.devnull)[1]
        top = re.search(r"^#\$ TOP=(.+)$", steps, re.MULTILINE)
        yield (Path(top.group(1)) if top else Path(on_path).parents[1]).resolve()
    yield Path("/usr/local/cuda")
    yield from _packages()


def _packages() -> Iterator[Path]:
    """Where packages from PyPI (nvidia-cuda-nvcc, nvidia-cublas, ...) put theirs together: nvidia/cu13."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield from sorted(Path(place).glob("cu[0-9]*"), reverse=True)


def _said(*command: str | Path) -> tuple[str, str]:
    """What a tool writes to stdout and stderr; nothing where it does not run."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return "", ""
    return result.stdout, result.stderr


def _appended(name: str, *folders: str) -> str:
    return os.pathsep.join(part for part in (os.environ.get(name, ""), *folders) if part)
