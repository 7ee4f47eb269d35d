"""Precompiled headers, made once for a machine by the session's side; build processes only read them. No torch.

`binding.h` is what `main.cpp` of every extension begins with. `prefix.hpp` is what cudafe++ makes of the lean headers
of a kernel file: nvcc.py puts it where it had a sketch. `context.hpp` is the same for files that name handles of CUDA's
libraries, `module.hpp` for those that write their own PYBIND11_MODULE, whose macros it ends with. All are made for each
optimisation level asked for: GCC takes a precompiled header under the same one only, and reads the text otherwise, so
that nothing depends on them. `macros.json` says which macros tell our headers from torch's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from harness.catalog.facts import HeadersWanted
from harness.compile import lean, module_block, nvcc
from harness.compile.macro_survey import survey
from harness.compile.toolkit import STAND_INS, Toolkit
from harness.environment import torch_build

BINDING, MACROS = "binding.h", "macros.json"
CONTEXT_HEADER = b"ATen/cuda/CUDAContext.h"
KEEP_UNUSED_S = 30 * 24 * 3600
_ONE_AT_A_TIME = threading.Lock()
# What a file with CUDA in it is likely to hold; a wrong guess only costs time.
CUDA_WORDS = (b"cuda_sources", b".cu", b"__global__")
LEVELS = ("-O0", "-O1", "-O2", "-O3")
DEFINES = ("-DTORCH_API_INCLUDE_EXTENSION_H",)
COMMON_NVCC_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The compilers and headers that extensions are built with. `nvcc` and `cuda_include` are empty without CUDA.

    `std` is the language standard that torch's own builds use; `arch` as TORCH_CUDA_ARCH_LIST has it (`9.0a`).
    `stand_ins` are folders that a CPU build of torch needs to compile CUDA, searched last.
    """

    cxx: str
    nvcc: str
    torch_root: str
    cuda_include: str
    std: str
    arch: str
    versions: tuple[str, ...]
    stand_ins: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What precompiled headers and libraries depend on beside their sources, in 64 hex digits."""
        hasher = hashlib.sha256(msgspec.json.encode(self))
        hasher.update(_own_digest().encode())
        return hasher.hexdigest()


def find_tools(cuda: Toolkit | None, arch: str) -> Tools | None:
    """The tools, with nvcc out of `cuda`; None where torch or a C++ compiler is missing."""
    spec = importlib.util.find_spec("torch")
    cxx = os.environ.get("CXX", "c++")
    if spec is None or not spec.submodule_search_locations or shutil.which(cxx) is None:
        return None
    root = Path(spec.submodule_search_locations[0])
    standard = re.search(r"'-fPIC', '(-std=c\+\+\d+)'", (root / "utils/cpp_extension.py").read_text())
    versions = (
        (root / "version.py").read_text(),
        sysconfig.get_config_var("SOABI") or "",
        _said(cxx, "--version"),
        _said(cuda.nvcc, "--version") if cuda else "",
    )
    return Tools(
        cxx=cxx,
        nvcc=cuda.nvcc if cuda else "",
        torch_root=str(root),
        cuda_include=cuda.include[0] if cuda else "",
        std=standard.group(1) if standard else "-std=c++17",
        arch=arch,
        versions=versions,
        stand_ins=(*cuda.include[1:], str(STAND_INS)) if cuda and not torch_build().cuda else (),
    )


def levels_in(source: bytes, argument: str) -> list[str]:
    """Optimisation levels that a file may pass in `argument` (extra_cflags); a wrong guess only costs time."""
    levels = [level for level in LEVELS if level.encode() in source] if argument.encode() in source else []
    return levels or [""]


def wanted(source: bytes) -> HeadersWanted:
    """Which precompiled headers a candidate's file can use."""
    return HeadersWanted(
        cpp_levels=levels_in(source, "extra_cflags"),
        cuda_levels=levels_in(source, "extra_cuda_cflags"),
        cuda=any(word in source for word in CUDA_WORDS),
        context=CONTEXT_HEADER in source and lean.wants(lean.CUDA_CONTEXT, source.decode(errors="replace")),
        module=module_block.MACRO.encode() in source,
    )


def prepared(headers: HeadersWanted, root: Path, tools: Tools) -> Path:
    """A folder below `root` with all these precompiled headers.

    Raises RuntimeError or OSError where they cannot be made; the candidate builds without them, in longer.
    """
    # A file may hold several extensions.
    kinds = itertools.product({False, headers.context}, {False, headers.module})
    return Precompiled(root, tools).make(
        headers.cpp_levels,
        headers.cuda_levels if tools.nvcc and headers.cuda else [],
        [nvcc.PREFIXES[kind] for kind in sorted(kinds)],
    )


class Precompiled:
    """A folder of precompiled headers for one set of tools, below `root`; made on demand, by atomic renames."""

    def __init__(self, root: Path, tools: Tools) -> None:
        self.folder = root / tools.digest[:32]
        self._tools = tools

    def make(self, cpp_levels: Iterable[str], cuda_levels: Iterable[str], prefixes: Iterable[str]) -> Path:
        """The folder, with the headers there for these levels. Raises RuntimeError where a compiler refuses."""
        with _ONE_AT_A_TIME:
            return self._make(cpp_levels, cuda_levels, prefixes)

    def _make(self, cpp_levels: Iterable[str], cuda_levels: Iterable[str], prefixes: Iterable[str]) -> Path:
        popular = self.folder / "operators/assay/operators.h"
        if not popular.exists():
            popular.parent.mkdir(parents=True, exist_ok=True)
            self._keep(popular, lean.popular_header(Path(self._tools.torch_root)).encode())
            self._keep(self.folder / BINDING, b"#include <torch/extension.h>\n")
        if not (self.folder / MACROS).exists():
            self._macros()
        for level in cpp_levels:
            self._binding(level)
        for prefix, level in itertools.product(prefixes, cuda_levels):
            self._prefix(prefix, level)
        os.utime(self.folder)
        self._forget_old()
        return self.folder

    def _forget_old(self) -> None:
        """Headers of other tools go when nobody has used them for a month."""
        for folder in self.folder.parent.iterdir():
            if folder.is_dir() and time.time() - folder.stat().st_mtime > KEEP_UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)

    def _binding(self, level: str) -> None:
        target = self.folder / f"{BINDING}.gch" / (level or "none")
        if not target.exists():
            flags = [*DEFINES, *self._own(), *self._system(), "-fPIC", self._tools.std, *_words(level)]
            self._run([self._tools.cxx, "-x", "c++-header", str(self.folder / BINDING), *flags], target)

    def _prefix(self, prefix: str, level: str) -> None:
        target, text = self.folder / f"{prefix}.gch" / (level or "none"), self.folder / prefix
        if target.exists():
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            source = lean.LEAN / "assay/prefix.cu"
            asked = [f"-D{macro}" for macro in _asked(prefix)]
            arguments = [*asked, *self.nvcc_flags(), *_words(level), "-c", str(source), "-o", f"{scratch}/prefix.o"]
            steps = nvcc.Steps(self._tools.nvcc, arguments, Path(scratch) / "steps")
            try:
                if not text.exists():
                    for command in steps.passes[:2]:
                        steps.run(command)
                    (output,) = Path(scratch).glob("steps/*.cudafe1.cpp")
                    whole = output.read_text()
                    begin, end = nvcc.headers_of(whole)
                    macros = (
                        module_block.definitions(self._all_macros()) if lean.BINDS_IN_CUDA in _asked(prefix) else ""
                    )
                    self._keep(text, f"{whole[begin:end]}\n{macros}".encode())
            except nvcc.NotForSketch as error:
                raise RuntimeError(str(error)) from error
            words = nvcc.host_words(steps.passes[-1])
            words = ["c++-header" if word == "c++" else word for word in words if word != "-c"]
            self._run([*words, str(text)], target)

    def _all_macros(self) -> str:
        """Every macro behind torch/extension.h, as the compiler prints them."""
        flags = [*DEFINES, *self._own(), *self._system(), self._tools.std]
        command = [self._tools.cxx, "-x", "c++", "-dM", "-E", *flags, str(self.folder / BINDING)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout

    def _macros(self) -> None:
        cxx = [self._tools.cxx, *DEFINES, *self._system(), "-fPIC", self._tools.std]
        with_cuda = [self._tools.nvcc, *self.stock_nvcc_flags()] if self._tools.nvcc else []
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            try:
                found = survey(cxx, with_cuda, self._own(), [f"-I{lean.SKETCH}"], Path(scratch))
            except nvcc.NotForSketch as error:
                raise RuntimeError(str(error)) from error
        self._keep(self.folder / MACROS, msgspec.json.encode(found))

    def nvcc_flags(self) -> list[str]:
        """As torch's own builds have them, with our headers before torch's."""
        return [*self._own(), *self.stock_nvcc_flags()]

    def stock_nvcc_flags(self) -> list[str]:
        number = self._tools.arch.replace(".", "")
        gencode = f"-gencode=arch=compute_{number},code=sm_{number}"
        host = ["--compiler-options", "-fPIC", self._tools.std]
        return ["-DTORCH_EXTENSION_NAME=prefix", *DEFINES, *self._system(), *COMMON_NVCC_FLAGS, gencode, *host]

    def _own(self) -> list[str]:
        return [f"-I{self.folder / 'operators'}", f"-I{lean.LEAN}"]

    def _system(self) -> list[str]:
        root = Path(self._tools.torch_root) / "include"
        system = [root, root / "torch/csrc/api/include", sysconfig.get_path("include", scheme="posix_prefix")]
        if self._tools.cuda_include:
            system.append(self._tools.cuda_include)
        system += self._tools.stand_ins
        return [word for path in system for word in ("-isystem", str(path))]

    def _run(self, command: list[str], target: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=self.folder)
        os.close(handle)
        done = subprocess.run([*command, "-o", scratch], capture_output=True, text=True, check=False)
        if done.returncode:
            os.unlink(scratch)
            raise RuntimeError(done.stderr[-2000:])
        os.chmod(scratch, 0o644)
        os.rename(scratch, target)

    def _keep(self, path: Path, data: bytes) -> None:
        handle, scratch = tempfile.mkstemp(dir=self.folder)
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(scratch, 0o644)
        os.rename(scratch, path)


def _asked(prefix: str) -> list[str]:
    """The macros by which lean headers know what a prefix is to hold."""
    ((context, module),) = [kind for kind, name in nvcc.PREFIXES.items() if name == prefix]
    return [lean.CUDA_CONTEXT] * context + [lean.BINDS_IN_CUDA] * module


def _words(level: str) -> list[str]:
    return [level] if level else []


def _said(*command: str) -> str:
    output = subprocess.STDOUT
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=output, text=True, check=False).stdout


@cache
def _own_digest() -> str:
    """Of our own headers and of the code that uses them."""
    hasher = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted(path for folder in (here, lean.HEADERS) for path in folder.rglob("*") if path.is_file()):
        if path.suffix in (".py", ".h", ".cu"):
            hasher.update(f"{path.relative_to(here)}\0".encode() + path.read_bytes())
    return hasher.hexdigest()
