"""Functions of CUDA libraries that a CPU build of torch lacks, stood in for, so that an extension can be loaded.

A library is loaded with every name resolved at once, as on a machine with a card, so that a name which the candidate
itself forgot to define still shows. Names of c10::cuda, at::cuda, cuBLAS and their like are defined beforehand: called,
they raise.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from torch.utils import cpp_extension

# Mangled or C name -> the library that a machine with a card has it in. CUDA's runtime (cudaMalloc) is really there.
OWNERS = (
    (re.compile(r"_Z(?:T[VTIS]|GV|Z)*N[KVR]*3c104cuda"), "libc10_cuda"),
    (re.compile(r"_Z(?:T[VTIS]|GV|Z)*N[KVR]*2at4cuda"), "libtorch_cuda"),
    (re.compile(r"cublasLt[A-Z]"), "libcublasLt"),
    (re.compile(r"cublas[A-Z]"), "libcublas"),
    (re.compile(r"cusparse[A-Z]"), "libcusparse"),
    (re.compile(r"cusolver[A-Z]"), "libcusolver"),
    (re.compile(r"cudnn[A-Z]"), "libcudnn"),
    (re.compile(r"curand[A-Z]"), "libcurand"),
    (re.compile(r"cufft[A-Z]"), "libcufft"),
    (re.compile(r"nvrtc[A-Z]"), "libnvrtc"),
    (re.compile(r"nvml[A-Z]"), "libnvidia-ml"),
    (re.compile(r"cu[A-Z]"), "libcuda"),
)
DATA = re.compile(r"_Z(?:T[VTIS]|GV)")

# By "no NVIDIA driver" wire/faults.py knows that a candidate needs a card (tests/test_check.py).
HEAD = """\
#include <stdexcept>
#include <string>
[[noreturn]] static void absent(const char* name) {
  throw std::runtime_error(std::string(name) + " was called, but this machine has no NVIDIA driver");
}
extern "C" {
"""


class StandIns:
    """Defines, before each extension is loaded, what it needs of libraries that are not here. `absent` counts them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._defined: set[str] = set()
        self.absent: dict[str, int] = {}

    def install(self, runtime: str) -> None:
        """From now on, in this process. `runtime` is the file of libcudart, loaded here as torch with CUDA would."""
        if runtime:
            ctypes.CDLL(runtime, ctypes.RTLD_GLOBAL)
        stock = cpp_extension._import_module_from_library

        def load(name: str, folder: str, is_python_module: bool) -> Any:
            self._define(Path(folder) / f"{name}.so")
            return stock(name, folder, is_python_module)

        cpp_extension._import_module_from_library = load

    def _define(self, library: Path) -> None:
        wanted = {name: owner for name in undefined(library) if name not in self._defined and (owner := owner_of(name))}
        if not wanted:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        source = self._folder / f"absent_{len(self._defined)}.cpp"
        lines = [
            f"char {name}[4096];" if DATA.match(name) else f'void {name}() {{ absent("{name}"); }}' for name in wanted
        ]
        source.write_text(HEAD + "\n".join(lines) + "\n}\n")
        command = [cpp_extension.get_cxx_compiler(), "-shared", "-fPIC", "-w", str(source), "-o"]
        subprocess.run([*command, str(source.with_suffix(".so"))], check=True, capture_output=True)
        ctypes.CDLL(str(source.with_suffix(".so")), ctypes.RTLD_GLOBAL)
        self._defined |= wanted.keys()
        self.absent = dict(Counter(self.absent) + Counter(wanted.values()))


def undefined(library: Path) -> list[str]:
    """Names that the shared object leaves for the loader to find."""
    result = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True)
    # "                 U name@VERSION"; weak ones (w, v) may stay undefined.
    rows = [line.split() for line in result.stdout.splitlines()]
    return [row[-1].partition("@")[0] for row in rows if row and row[0] == "U"]


def owner_of(name: str) -> str:
    """The library that a machine with a card has `name` in; empty for any other name."""
    return next((owner for pattern, owner in OWNERS if pattern.match(name)), "")
