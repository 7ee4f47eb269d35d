"""The compilers and headers that extensions are built with, and a digest of them. No torch."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import msgspec

from harness.catalog import cpp_tokens
from harness.compile.toolkit import STAND_INS, Toolkit
from harness.environment import torch_build


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


def compiler() -> str:
    """The C++ compiler's name or path, as torch looks for it."""
    return os.environ.get("CXX", "c++")


def find_tools(cuda: Toolkit | None, arch: str) -> Tools | None:
    """The tools, with nvcc out of `cuda`; None where torch or a C++ compiler is missing."""
    spec = importlib.util.find_spec("torch")
    cxx = compiler()
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


def _said(*command: str) -> str:
    output = subprocess.STDOUT
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=output, text=True, check=False).stdout


@cache
def _own_digest() -> str:
    """A digest of our own headers and of the code that uses them."""
    hasher = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted([*(path for path in here.rglob("*") if path.is_file()), Path(cpp_tokens.__file__)]):
        if path.suffix in (".py", ".h", ".cu"):
            hasher.update(f"{path.relative_to(here.parent)}\0".encode() + path.read_bytes())
    return hasher.hexdigest()
