"""What an explanation of a refusal starts from, and what it comes to."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.oracle import patterns
from harness.oracle.error import Errors, measure
from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation, number
from harness.oracle.slices import real, sample, widened
from harness.oracle.structure import flatten
from harness.oracle.verdict import Weighed
from harness.oracle.yardstick import Yardstick

# Elements kept of each earlier output, to recognise it if it is returned for another input; number of outputs kept.
FINGERPRINT = 1024
KEPT = 64
CLOSE = 1e-3
# Another run of the reference explains an output that is nearer to it than to the right one by this factor ...
NEARER = 4.0
# ... and no further from it than this many of the reference's own errors, or nearer by this factor again.
AS_ROUNDING = 64.0
# How long runs of the reference are begun to explain one refusal.
SECONDS = 10.0


@dataclass(frozen=True)
class Cause:
    """Why: `reason` for the record, `clause` of a sentence, figures; `mend`: what to do, where that is known."""

    reason: str
    clause: str
    evidence: dict[str, Any] = field(default_factory=dict)
    mend: str = ""


# A few numbers may be near those of another input by chance.
FEWEST = 8


class Earlier:
    """Some elements of each earlier output, by path."""

    def __init__(self) -> None:
        self._kept: list[dict[str, torch.Tensor]] = []

    def keep(self, output: Any) -> None:
        tensors = {path: leaf for path, leaf in flatten(output) if isinstance(leaf, torch.Tensor) and leaf.numel()}
        self._kept = [*self._kept, {path: _print(leaf) for path, leaf in tensors.items()}][-KEPT:]

    def holds(self, path: str, got: torch.Tensor, native: torch.Tensor) -> bool:
        """Whether an earlier output at `path`, other than `native`, had the elements of `got` but for rounding."""
        if got.numel() < FEWEST:
            return False
        given, right = _print(got), _print(native)

        def near(kept: torch.Tensor, to: torch.Tensor) -> bool:
            return bool(((kept - to).abs() <= CLOSE * float(kept.abs().max())).all())

        return any(near(kept[path], given) and not near(kept[path], right) for kept in self._kept if path in kept)


def _print(leaf: torch.Tensor) -> torch.Tensor:
    leaf = real(leaf)
    return patterns.at(leaf, sample(leaf.numel(), leaf.device, FINGERPRINT))


@dataclass(frozen=True)
class Case:
    """A refused floating leaf, and everything that may explain it. No run begins after `until` (monotonic clock)."""

    reference: ExactReference
    expected: Expectation
    path: str
    got: torch.Tensor
    weighed: Weighed
    earlier: Earlier
    poison: float | None
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    @property
    def yard(self) -> Yardstick:
        return self.expected.yards[self.path]

    @property
    def exact(self) -> torch.Tensor:
        exact: torch.Tensor = self.expected.exact[self.path]
        return exact

    @property
    def native(self) -> torch.Tensor:
        leaf = self.leaf(self.expected.native)
        assert leaf is not None
        return leaf

    def leaf(self, output: Any) -> torch.Tensor | None:
        """The same leaf of another run's output, if it has the shape and is as complex; in a dtype to calculate in."""
        found, right = (self._number(run) for run in (output, self.expected.native))
        if found is None or right is None or found.shape != right.shape or found.is_complex() != right.is_complex():
            return None
        return self.yard.fills.lifted(real(found)) if self.yard.fills else found

    def _number(self, output: Any) -> torch.Tensor | None:
        leaf = dict(flatten(output)).get(self.path)
        return None if leaf is None else number(leaf, self.got.dtype)

    def left_by(self, output: Any) -> float | None:
        """The error that is left of the candidate's where `output`, of another run of the reference, is taken for the
        right one; None where that does not explain it."""
        leaf = self.leaf(output)
        if leaf is None:
            return None
        yard, errors = self.yard, self.weighed.errors
        left = measure(self.got, widened(leaf), yard.scale, yard.expected, leaf, yard.limits)
        # That run has an error of its own, as large as the reference's.
        most = yard.limits.norm + yard.own
        if not errors.broken:
            as_rounding = max(AS_ROUNDING * yard.unit, errors.norm / AS_ROUNDING)
            most = min(most, errors.norm / NEARER, as_rounding)
        # What was refused for its worst element is not explained while that is as far away.
        refused = self.weighed.refused
        parts = ("scaled", "row", "worst", "share", "bulk", "small")
        if refused in parts and getattr(left, refused) > getattr(yard.limits, refused):
            return None
        return left.norm if _sound(left) and left.norm <= most else None

    def sampled(self) -> torch.Tensor:
        """The same flat places each time."""
        return sample(self.exact.numel(), self.got.device, patterns.SAMPLES)


def _sound(errors: Errors) -> bool:
    return not errors.broken and errors.norm == errors.norm
