"""What a set of hard inputs holds candidates to: the limits that an expectation of such inputs gets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from harness.oracle import checks, denominators, formats, rule
from harness.oracle.error import Part
from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation
from harness.oracle.fast import Fast
from harness.oracle.promises import Promises, leaves
from harness.oracle.slices import real, rms, widened
from harness.oracle.stress import Stress
from harness.oracle.structure import flatten
from harness.oracle.yardstick import Yardstick

# An output that scales with the inputs by a power of two differs by no more than this many of the reference's errors.
SCALED_ROUNDINGS = 4.0
# And one that has outgrown the constants that are added to it, by no more than this share: a bias of one beside inputs
# of 2^20.
OUTGROWN = 2.0**-14


class Demands:
    """What sets of hard inputs demand of one reference's candidates. `known` are the limits of drawn inputs by path,
    which may grow."""

    def __init__(self, reference: ExactReference, promises: Promises, known: Mapping[str, Fast]) -> None:
        self._reference = reference
        self._promises = promises
        self._known = known

    def of(self, proposed: Stress, expected: Expectation, drawn: list[Any]) -> Expectation | None:
        """An expectation with the limits of its set; None if an honest kernel may not be able to meet them, or nothing
        is left to ask.

        `drawn` are the inputs that the set was made from.
        """
        telling = _telling(expected, proposed)
        if telling is None:
            return None
        expected = telling
        if proposed.demands == "absolute":
            expected = self._as_on_drawn(expected, drawn)
            return expected if self._takes_safe_denominators(expected) else None
        if proposed.demands == "growth":
            return self._as_it_grows(expected, self._row(proposed, expected.inputs))
        return _demanding(expected, proposed.demands, self._row(proposed, expected.inputs))

    def _as_on_drawn(self, expected: Expectation, drawn: list[Any]) -> Expectation:
        """With limits no smaller than on ordinary inputs, except for outputs that only scale with the inputs.

        Of small numbers the exponentials are equal but for their last digits, as are other functions' values: a running
        sum of those rounds one way.
        """
        before = dict(flatten(self._reference.native(drawn, expected.seed)))
        after = dict(flatten(expected.native))
        yards = dict(expected.yards)
        for path, fast in self._known.items():
            # An output may be a plain number.
            old, new = (fast.fills.lifted(real(torch.as_tensor(leaf))) for leaf in (before[path], after[path]))
            if path in yards and not _only_scaled(old, new, yards[path]):
                yards[path] = yards[path].no_less(max(fast.limits.norm, yards[path].heaped and yards[path].drift))
        return replace(expected, yards=yards)

    def _takes_safe_denominators(self, expected: Expectation) -> bool:
        """Whether what honest kernels add to denominators for safety changes nothing on these small inputs."""
        try:
            output = self._reference.native(expected.inputs, expected.seed, mode=denominators.Safe())
        except torch.OutOfMemoryError:
            raise
        except Exception:
            # Foreign code that does more with a denominator than to divide by it.
            return True
        return checks.full(self._reference, expected, output, None, None).passed

    def _row(self, proposed: Stress, inputs: list[Any]) -> int:
        """The length of the rows in each of which a stress set may put a large element: those of the input that it
        changes, or the shortest of the largest ones."""
        tensors, largest = leaves(inputs), self._promises.largest(inputs)
        if proposed.largest_only and largest:
            largest = [largest[proposed.turn % len(largest)]]
        return min((tensors[number][1].shape[-1] if tensors[number][1].dim() else 0 for number in largest), default=0)

    def _as_it_grows(self, expected: Expectation, row: int) -> Expectation | None:
        """With the limits of outputs that grow as a power of the inputs, or of those that stay; None for any other."""
        quarter = self._promises.changed(expected.inputs, lambda t: t / 4)
        before = dict(flatten(self._reference.native(quarter, expected.seed)))
        after = dict(flatten(expected.native))
        powers = {
            path: _growth(*(yard.fills.lifted(real(torch.as_tensor(leaf))) for leaf in (before[path], after[path])))
            for path, yard in expected.yards.items()
        }
        some = expected.without({path for path, power in powers.items() if power is None})
        if some is None:
            return None
        # What stays may do so because it is saturated, as a softmax is.
        return _demanding(some, "growth" if all(powers[path] for path in some.yards) else "sense", row)


def _only_scaled(before: torch.Tensor, after: torch.Tensor, yard: Yardstick) -> bool:
    """Whether an output of the reference is another one times a power of two, but for rounding."""
    if before.shape != after.shape:
        return True
    old, new = _both_finite(before, after)
    if not new.numel() or not rms(old) or not rms(new):
        return True
    factor = 2.0 ** round(math.log2(rms(new) / rms(old)))
    return rms(new - factor * old) <= SCALED_ROUNDINGS * yard.unit


def _growth(before: torch.Tensor, after: torch.Tensor) -> int | None:
    """The power of two by which an output of the reference exceeds another one, but for constants that it has outgrown;
    None where that is no power, or less than none."""
    if before.shape != after.shape:
        return None
    old, new = _both_finite(before, after)
    sizes = (rms(old), rms(new)) if new.numel() else (0.0, 0.0)
    if not all(0 < size < math.inf for size in sizes):
        return None
    power = round(math.log2(sizes[1] / sizes[0]))
    return power if power >= 0 and rms(new - 2.0**power * old) <= OUTGROWN * sizes[1] else None


def _both_finite(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The elements, of a part of two outputs, that are finite in both; widened."""
    part = Part(other)
    one, other = widened(part.of(one)), widened(part.of(other))
    finite = torch.isfinite(one) & torch.isfinite(other)
    return one[finite], other[finite]


def _telling(expected: Expectation, proposed: Stress) -> Expectation | None:
    """Without the leaves of which the reference gets no answer on a set, nor finite numbers where it has to; None where
    it gets none at all."""
    telling = {path: yard for path, yard in expected.yards.items() if path not in expected.empty} or expected.yards
    return expected.without(
        {path for path, yard in telling.items() if not yard.meaningful or (proposed.finite and not yard.finite)}
    )


def _demanding(expected: Expectation, demands: str, row: int) -> Expectation | None:
    """With the limits of a stress set with one large element in a `row`; None if an honest kernel may not be able to
    meet them."""

    def limited(yard: Yardstick) -> Yardstick:
        if demands == "equals" and "comparing" in yard.kinds:
            return yard
        if demands in ("equals", "sense_in_rows"):
            return yard.sensible_in_rows()
        if demands == "strewn":
            return yard.no_less(yard.drift) if "centred" in yard.kinds else yard
        if demands == "sense" or (demands != "rounding" and yard.level.bits < formats.FLOAT32.bits):
            return yard.sensible()
        if demands == "heaped" and "transformed" in yard.kinds:
            # Winograd's and Fourier's ways err by the largest number around, wherever that stands.
            return yard.sensible()
        if demands == "growth" and "centred" in yard.kinds and yard.heaped >= row:
            # A second pass adds the others of a row as squares of the mean, which are all equal.
            return yard.no_less(yard.drift * row / yard.heaped * rule.BESIDE_HUGE / rule.DRIFT)
        # Squared, one large element is as large as all others of its row.
        several = yard.heaped >= row if "centred" in yard.kinds else yard.heaped > row
        return yard.no_less(yard.drift) if demands == "heaped" and several else yard

    yards = {path: limited(yard) for path, yard in expected.yards.items()}
    beyond = {path for path, yard in yards.items() if yard is not expected.yards[path] and not yard.resolvable}
    return replace(expected, yards=yards).without(beyond)
