"""The ways to build, in the order in which they are tried; the last one's words are those that are reported."""

from __future__ import annotations

from harness.compile.ways.lean import Lean
from harness.compile.ways.sketch.sketch import Sketch
from harness.compile.ways.stock import Stock
from harness.compile.ways.way import BuildWay

WAYS: tuple[BuildWay, ...] = (
    Sketch(),
    Lean(),
    Stock(),
)


def chosen(headers: str) -> tuple[BuildWay, ...]:
    """The ways for a value of `compile.headers`: all, or for `stock` the last one alone."""
    return WAYS[-1:] if headers == "stock" else WAYS
