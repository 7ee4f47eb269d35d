"""Can a problem tell right from wrong? Known wrong answers must be refused on it, and known right ones accepted."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from harness.oracle import controls
from harness.oracle.controls import Tried
from harness.oracle.expectation import Expectation
from harness.oracle.oracle import Oracle
from harness.oracle.stress import Stress

Sets = Iterable[tuple[str, Expectation]]


def negative(oracle: Oracle, expected: Expectation, other: Any, stress: Sets) -> list[Tried]:
    """What became of each wrong answer; one that gets through the drawn inputs is tried on the stress sets.

    `other` is the reference's output for other drawn inputs.
    """
    return _tried(oracle, controls.negative(oracle.reference, other), expected, stress)


def positive(oracle: Oracle, expected: Expectation, stress: Sets, compiled: bool) -> list[Tried]:
    """What became of each right answer; `compiled` adds torch.compile, which takes its time."""
    return _tried(oracle, controls.positive(oracle.reference, compiled), expected, stress)


def binding(sets: Iterable[tuple[Stress, Expectation]], budget_s: float = math.inf) -> Sets:
    """The stress sets that can refuse a candidate, by name, as far as the time goes."""
    deadline = time.monotonic() + budget_s
    for stress, expected in sets:
        if stress.binding:
            yield stress.name, expected
        if time.monotonic() > deadline:
            return


def _tried(oracle: Oracle, some: list[controls.Control], expected: Expectation, stress: Sets) -> list[Tried]:
    found = {tried.control.name: tried for tried in controls.try_all(oracle, some, [("drawn", expected)])}

    def unrefused() -> list[controls.Control]:
        return [control for control in some if control.name not in found or not found[control.name].refused_on]

    # Expectations are large, and take several runs of the reference: each set is made once, if a control needs it.
    sets = iter(stress)
    while (left := unrefused()) and (hard := next(sets, None)):
        for tried in controls.try_all(oracle, left, [hard]):
            if tried.refused_on or tried.control.name not in found:
                found[tried.control.name] = tried
    return [found[control.name] for control in some if control.name in found]
