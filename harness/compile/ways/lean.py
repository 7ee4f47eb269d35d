"""Smaller headers for g++ and for nvcc: a source gets what it names of torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.catalog.facts import HeadersWanted
from harness.compile.precompiled import Precompiled
from harness.compile.ways import smaller
from harness.compile.ways.operators import LEAN
from harness.compile.ways.way import BuildCall, BuildPlan, Preparation


class Lean:
    """The call with `headers/lean` before torch's own headers."""

    name = "lean"
    contains: frozenset[str] = frozenset()
    headers: Mapping[str, tuple[Path, ...]] = {"cpp": (LEAN,), "cuda": (LEAN,)}

    def preparations(self, wanted: HeadersWanted, headers: Precompiled) -> list[Preparation]:
        """The header that the binding of every extension begins with."""
        return smaller.preparations(wanted, headers)

    def plan(self, call: BuildCall, folder: Path) -> BuildPlan:
        """The call over smaller headers."""
        return smaller.plan(call, folder)
