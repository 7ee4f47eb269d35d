"""As torch builds by itself: its own headers, the compilers it finds. It always applies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.catalog.facts import HeadersWanted
from harness.compile.precompiled import Precompiled
from harness.compile.ways.way import BuildCall, BuildPlan, Preparation


class Stock:
    """The call as it was written."""

    name = "stock"
    contains: frozenset[str] = frozenset()
    headers: Mapping[str, tuple[Path, ...]] = {"cpp": (), "cuda": ()}

    def preparations(self, wanted: HeadersWanted, headers: Precompiled) -> list[Preparation]:
        """None: torch reads its headers as they are."""
        return []

    def plan(self, call: BuildCall, folder: Path) -> BuildPlan:
        """The same arguments."""
        return BuildPlan(arguments=dict(call.arguments), environment={}, made="stock headers")
