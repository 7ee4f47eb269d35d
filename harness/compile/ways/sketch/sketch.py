"""Kernel files read with a sketch of torch, and the real headers precompiled for the host compiler alone.

nvcc.py goes in nvcc's place, for each kernel file by itself: what is not for the sketch is built over the lean headers.
"""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.catalog.facts import HeadersWanted
from harness.compile.calls import listed
from harness.compile.precompiled import Precompiled
from harness.compile.ways import conditionals, smaller
from harness.compile.ways.operators import LEAN
from harness.compile.ways.sketch import nvcc, prefixes
from harness.compile.ways.sketch.passes import SKETCH
from harness.compile.ways.way import BuildCall, BuildPlan, NotThisWay, Preparation


class Sketch:
    """The call over smaller headers, with nvcc.py as its nvcc."""

    name = "sketch"
    contains = frozenset({"lean"})
    headers: Mapping[str, tuple[Path, ...]] = {"cpp": (LEAN,), "cuda": (LEAN, SKETCH)}

    def preparations(self, wanted: HeadersWanted, headers: Precompiled) -> list[Preparation]:
        """The binding's header, and what takes the sketch's place for the host compiler."""
        found = smaller.preparations(wanted, headers)
        if headers.tools.nvcc:
            found += [
                functools.partial(prefixes.prepare, kind, level, smaller.BINDING, headers)
                for kind in prefixes.wanted_by(wanted)
                for level in wanted.cuda_levels
            ]
        return found

    def plan(self, call: BuildCall, folder: Path) -> BuildPlan:
        """The call with nvcc.py for its kernel files."""
        flags = listed(call.arguments.get("extra_cuda_cflags"))
        macros = smaller.macros(call.prepared)
        if not call.cuda:
            raise NotThisWay("no kernel files")
        if not call.nvcc:
            raise NotThisWay("no nvcc of ours to take the place of")
        if macros is None:
            raise NotThisWay("no headers were precompiled")
        if conditionals.defines(flags, macros):
            raise NotThisWay("flags change a macro that headers ask for")
        notes = folder / "notes.txt"
        environment = {
            "PYTORCH_NVCC": shlex.join([sys.executable, "-PSE", nvcc.__file__]),
            "ASSAY_NVCC": call.nvcc,
            "ASSAY_TORCH": str(call.torch_root),
            "ASSAY_FLAGS": shlex.join(flags),
            "ASSAY_GENERATED": str(smaller.generated_in(folder)),
            "ASSAY_PREPARED": str(call.prepared),
            "ASSAY_NOTES": str(notes),
            # Dependencies are for building again; this folder is built once.
            "TORCH_EXTENSION_SKIP_NVCC_GEN_DEPENDENCIES": "1",
        }
        return smaller.plan(call, folder)._replace(environment=environment, notes=notes)
