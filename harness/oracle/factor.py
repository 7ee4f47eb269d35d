"""An answer that is too large or too small by the same share on all inputs: a factor, not rounding.

A long sum may err by as much, but by another share on each kind of inputs: its errors go with the number, the signs and
the order of its terms, and where one term is all there is, nothing is rounded.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import torch

from harness.oracle import rule
from harness.oracle.slices import real, sample
from harness.oracle.verdict import Finding, Slope
from harness.records import Status

ELEMENTS = 1 << 16
# Inputs of which a sum has one term.
ONE_TERM = "one_hot"
# And here a running sum rounds one way whatever comes behind one element that is as large as all others together.
ONE_WAY = "one_of_all"


def slope(got: torch.Tensor, exact: torch.Tensor, roundoff: float) -> Slope | None:
    """The share by which `got` exceeds `exact` (widened), by least squares over some elements; None where `exact` is
    zero, or nothing is finite. `roundoff` is that of the format it is computed in."""
    places = sample(exact.numel(), exact.device, ELEMENTS)
    true = exact.reshape(-1)[places].double()
    error = real(got).reshape(-1)[places.to(got.device)].to(true.device).double() - true
    finite = torch.isfinite(error)
    true, error = true[finite], error[finite]
    largest = float(true.abs().amax()) if true.numel() else 0.0
    if not largest:
        return None
    # Squares of the largest numbers leave float64's range.
    true, error = true / largest, error / largest
    square = float(true @ true)
    share = float(error @ true) / square
    rest = float((error - share * true).norm())
    return Slope(share, rest / math.sqrt(square), true.numel(), roundoff)


@dataclass(frozen=True)
class _Met:
    name: str
    slope: Slope


class Factors:
    """One candidate's slopes, by leaf, over drawn and hard inputs."""

    def __init__(self) -> None:
        self._met: dict[str, list[_Met]] = {}

    def add(self, name: str, finding: Finding) -> None:
        """A passed call on the inputs of that name."""
        if name == ONE_WAY:
            return
        for path, found in finding.slopes.items():
            self._met.setdefault(path, []).append(_Met(name, found))

    def refusal(self) -> Finding | None:
        """The refusal of an output that is off by one factor everywhere; None if there is none such."""
        for path, met in self._met.items():
            share = _common(met)
            if share is not None:
                names = ", ".join(one.name for one in met)
                message = (
                    f"{path}: off by the factor {1 + share:.9g} on all kinds of inputs ({names}); rounding would "
                    "differ from one to another"
                )
                evidence = {"factor": 1 + share, "slopes": {one.name: one.slope.share for one in met}}
                return Finding(Status.INCORRECT, "mismatch:constant_factor", message, leaf=path, evidence=evidence)
        return None


def _common(met: list[_Met]) -> float | None:
    """The share that all have in common and enough of them resolve; None if there is none."""
    sharpest = min(met, key=lambda one: one.slope.deviation).slope
    share, least = sharpest.share, rule.FACTOR * sharpest.roundoff
    apart, rest = rule.FACTOR_APART * abs(share), rule.FACTOR_REST * abs(share)
    if abs(share) < least or any(abs(m.slope.share - share) > apart + 4 * m.slope.deviation for m in met):
        return None
    if statistics.median(m.slope.rest for m in met) > rest:
        return None
    resolved = {one.name for one in met if one.slope.deviation <= rest}
    return share if len(resolved) >= rule.FACTOR_SETS and ONE_TERM in resolved else None
