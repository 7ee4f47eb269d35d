"""What each kernel uses, in the words of `ptxas -v`: registers, shared memory, stack, spills. No torch."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Annotated

import msgspec

ENTRY = re.compile(r"^ptxas info\s*: Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'$")
PROPERTIES = re.compile(r"^ptxas info\s*: Function properties for (?P<name>\S+)$")
FRAME = re.compile(
    r"^\s+(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads$"
)
USED = re.compile(r"^ptxas info\s*: Used (?P<registers>\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
# Of a name that templates made; and of what a kernel may use, which an untrusted process tells.
LONGEST_NAME = 1000
Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel for one architecture. Memory in bytes; shared memory is the static part only, the launch may add to
    it; registers, stack and spills are of each thread, those of functions it calls and does not inline left out."""

    name: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    architecture: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    registers: Amount = 0
    shared_bytes: Amount = 0
    stack_bytes: Amount = 0
    spill_store_bytes: Amount = 0
    spill_load_bytes: Amount = 0

    @property
    def spills(self) -> bool:
        return bool(self.spill_store_bytes or self.spill_load_bytes)


def parse(output: str) -> list[Kernel]:
    """The kernels that `output` speaks of, in its order, with mangled names; other lines are passed over."""
    kernels: list[Kernel] = []
    described = ""
    for line in output.splitlines():
        if entry := ENTRY.match(line):
            kernels.append(Kernel(name=entry["name"], architecture=entry["arch"]))
        elif properties := PROPERTIES.match(line):
            described = properties["name"]
        elif not kernels:
            continue
        elif (frame := FRAME.match(line)) and described == kernels[-1].name:
            kernels[-1] = msgspec.structs.replace(
                kernels[-1],
                stack_bytes=int(frame["stack"]),
                spill_store_bytes=int(frame["stores"]),
                spill_load_bytes=int(frame["loads"]),
            )
        elif used := USED.match(line):
            shared = SHARED.search(line)
            kernels[-1] = msgspec.structs.replace(
                kernels[-1], registers=int(used["registers"]), shared_bytes=int(shared[1]) if shared else 0
            )
    return kernels


def demangled(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels with names as their source has them, where c++filt is there to say so."""
    tool = shutil.which("c++filt")
    if not kernels or tool is None:
        return kernels
    names = "\n".join(kernel.name for kernel in kernels)
    result = subprocess.run([tool], input=names, capture_output=True, text=True, timeout=20, check=False)
    lines = result.stdout.splitlines()
    if result.returncode or len(lines) != len(kernels):
        return kernels
    return [msgspec.structs.replace(kernel, name=name) for kernel, name in zip(kernels, lines, strict=True)]
