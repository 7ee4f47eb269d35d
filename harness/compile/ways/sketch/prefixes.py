"""What the host compiler reads in the sketch's place: the lean headers as cudafe++ writes them, precompiled.

With the handles of CUDA's libraries for files that name these, and with pybind11 and the macros that its block goes
through for files that write their own PYBIND11_MODULE.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.compile.ways import operators
from harness.compile.ways.nvcc_steps import PassFailed, Steps
from harness.compile.ways.sketch import module_block

if TYPE_CHECKING:
    from harness.catalog.facts import HeadersWanted
    from harness.compile.precompiled import Precompiled

# With the handles, or not, and with pybind11, or not.
PREFIXES = {
    (False, False): "prefix.hpp",
    (True, False): "context.hpp",
    (False, True): "module.hpp",
    (True, True): "context_module.hpp",
}
END_OF_HEADERS = re.compile(r"^extern int assay_end_of_headers;.*$", re.MULTILINE)
START_OF_HEADERS = re.compile(r'^# \d+ "[^"]*cuda_runtime\.h".*$', re.MULTILINE)


def wanted_by(wanted: HeadersWanted) -> list[tuple[bool, bool]]:
    """The kinds that a candidate may need, whose file may hold several extensions."""
    return sorted(itertools.product({False, wanted.context}, {False, wanted.module})) if wanted.cuda else []


def prepare(kind: tuple[bool, bool], level: str, binding: str, headers: Precompiled) -> None:
    """One kind for one optimisation level. `binding` is the header whose macros are torch's. Raises RuntimeError."""
    name = PREFIXES[kind]
    if headers.has(name, level):
        return
    context, module = kind
    asked = [operators.CUDA_CONTEXT] * context + [operators.BINDS_IN_CUDA] * module
    with tempfile.TemporaryDirectory(dir=headers.folder) as scratch:
        arguments = [
            *(f"-D{macro}" for macro in asked),
            *headers.nvcc_flags([operators.LEAN]),
            *([level] if level else []),
        ]
        arguments += ["-c", str(operators.LEAN / "assay/prefix.cu"), "-o", f"{scratch}/prefix.o"]
        steps = Steps(headers.tools.nvcc, arguments, Path(scratch) / "steps")
        with headers.missing(headers.folder / name) as missing:
            if missing:
                for command in steps.passes[:2]:
                    steps.run(command)
                (output,) = Path(scratch).glob("steps/*.cudafe1.cpp")
                text = output.read_text()
                begin, end = headers_of(text)
                macros = module_block.definitions(_macros_behind(binding, headers)) if module else ""
                headers.keep(headers.folder / name, f"{text[begin:end]}\n{macros}".encode())
        words = ["c++-header" if word == "c++" else word for word in steps.host_words() if word != "-c"]
        headers.compile(name, level, [*words, str(headers.folder / name)])


def headers_of(text: str) -> tuple[int, int]:
    """Where the headers' part of cudafe++'s output begins and ends."""
    begin, ends = START_OF_HEADERS.search(text), list(END_OF_HEADERS.finditer(text))
    if begin is None or len(ends) != 1:
        raise PassFailed("no end of headers in cudafe++'s output")
    return begin.start(), ends[0].end()


def _macros_behind(header: str, headers: Precompiled) -> str:
    """Every macro that there is at the end of a header of the folder, as the compiler prints them."""
    command = [*headers.cxx([operators.LEAN]), "-x", "c++", "-dM", "-E", str(headers.folder / header)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PassFailed(done.stderr[-2000:])
    return done.stdout
