"""What rows of an input can promise: how sure a draw makes it, whether rows have it, and how changed rows get it back.

A row lies along the last dimension of what is given here. All work is on a block of rows; nothing is written to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch

# Digits after the leading one, of the formats in which promises are looked for.
DIGITS = {torch.float64: 52, torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}
# Elements that are looked at before the whole: what random numbers lack is missed there.
HEAD = 1 << 14
# How many distinct values are few: those of a 4-bit number.
FEW = 16
# Rounding errors of a row's elements are independent; their sum stays within this many standard deviations.
DEVIATIONS = 8.0
# A figure further from one than this is another figure, whatever the rounding.
LARGEST_TOLERANCE = 2.0**-4
# What float32 arithmetic over a long row loses.
ARITHMETIC = 2.0**-19


class Property(Protocol):
    """One thing that rows may promise; an instance is of one tensor and remembers what its draws showed."""

    @property
    def words(self) -> str:
        """The promise, in words for people."""
        ...

    def bits(self, rows: torch.Tensor, varying: torch.Tensor | None) -> float | None:
        """Chance would give these rows the property with a probability of at most 2**-bits; None: they lack it.

        `varying` tells which elements differ from draw to draw (None: all): the others are no evidence.
        """

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        """The rows with the property, as far as they can have it; those that have it stay as they are, bit for bit."""

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        """For each row, whether it has the property."""


class Sorted:
    """Ascending or descending."""

    def __init__(self, descending: bool) -> None:
        self.words = f"rows in {'descending' if descending else 'ascending'} order"
        self._descending = descending

    def bits(self, rows: torch.Tensor, varying: torch.Tensor | None) -> float | None:
        """One order of n! for n different elements."""
        if not bool(self.held(rows).all()):
            return None
        steps = rows[..., 1:] != rows[..., :-1]
        if varying is not None:
            steps &= varying[..., 1:] & varying[..., :-1]
        return float(torch.lgamma(steps.sum(-1).double() + 2).sum()) / math.log(2)

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.sort(-1, descending=self._descending).values

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        low, high = rows[..., :-1], rows[..., 1:]
        if self._descending:
            low, high = high, low
        # Sorting takes NaN for the largest number.
        return ((low <= high) | high.isnan()).all(-1)


@dataclass(frozen=True)
class Figure:
    """For each row, in float64: what should be one, and its rounding error where each element is off by its own size:
    its standard deviation where they are independent, and at most."""

    value: torch.Tensor
    deviation: torch.Tensor
    most: torch.Tensor


class Measured:
    """Rows of which one figure is one; `divided` is what it does to a row to divide its figure by a number."""

    def __init__(
        self,
        words: str,
        measure: Callable[[torch.Tensor], Figure],
        divided: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> None:
        self.words = words
        self._measure, self._divided = measure, divided
        # How far from one the draws' figures are.
        self._shown = 0.0

    def bits(self, rows: torch.Tensor, varying: torch.Tensor | None) -> float | None:
        """A figure of n random terms is spread over 1 / sqrt(n) or more."""
        figure, tolerance = self._figure(rows)
        away = (figure.value - 1).abs()
        if not bool((away <= tolerance).all()):
            return None
        self._shown = max(self._shown, float(away.max()))
        chance = (4 * math.sqrt(rows.shape[-1]) * tolerance).clamp_max(0.5)
        told = -chance.log2() if varying is None else -chance.log2() * varying.any(-1)
        return float(told.sum())

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        """To the precision that draws showed, or that rounding the elements leaves."""
        figure, _ = self._figure(rows)
        rounded = _unit(rows) * figure.most / figure.value.abs() + _lost(rows) * rows.shape[-1]
        near = rounded.nan_to_num(0.0).clamp(self._shown, LARGEST_TOLERANCE)
        # Where a power of two will do, so that the digits stay.
        power = figure.value.log2().round().exp2()
        factor = torch.where((figure.value / power - 1).abs() <= near, power, figure.value)
        return torch.where((factor == 1)[..., None], rows, self._divided(rows.double(), factor[..., None]).to(rows))

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        figure, tolerance = self._figure(rows)
        return (figure.value - 1).abs() <= tolerance

    def _figure(self, rows: torch.Tensor) -> tuple[Figure, torch.Tensor]:
        """The figure, and how far rounding may move it from one."""
        figure = self._measure(rows.double())
        unit = _unit(rows)
        lost = _lost(rows) * math.sqrt(rows.shape[-1])
        tolerance = unit + DEVIATIONS * (unit * figure.deviation + lost) + ARITHMETIC
        # What is no number counts as zero, which is nowhere near one.
        value = figure.value.nan_to_num(0.0, 0.0, 0.0)
        return replace(figure, value=value), tolerance.nan_to_num(0.0).clamp_max(LARGEST_TOLERANCE)


def _unit(rows: torch.Tensor) -> float:
    return float(2.0 ** -(DIGITS[rows.dtype] + 1))


def _lost(rows: torch.Tensor) -> float:
    """What float16 rounds small numbers to."""
    return 2.0**-25 if rows.dtype is torch.float16 else 0.0


class Probabilities(Measured):
    """Rows that sum to one; where no draw had a negative element, none gets one."""

    def __init__(self) -> None:
        def measure(rows: torch.Tensor) -> Figure:
            return Figure(rows.sum(-1), (rows * rows).sum(-1).sqrt(), rows.abs().sum(-1))

        super().__init__("rows that sum to one", measure, lambda rows, by: rows / by)
        self._negative = False

    def bits(self, rows: torch.Tensor, varying: torch.Tensor | None) -> float | None:
        self._negative = self._negative or bool((rows < 0).any())
        return super().bits(rows, varying)

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        return super().restored(rows if self._negative else rows.abs())

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        held = super().held(rows)
        return held if self._negative else held & (rows >= 0).all(-1)


def unit_length() -> Measured:
    """Rows with an L2 norm of one."""

    def measure(rows: torch.Tensor) -> Figure:
        norm = torch.linalg.vector_norm(rows, dim=-1)
        return Figure(norm, (rows**4).sum(-1).sqrt(), norm)

    return Measured("rows of unit length", measure, lambda rows, by: rows / by)


class LogProbabilities(Measured):
    """Rows whose exponentials sum to one."""

    def __init__(self) -> None:
        def measure(rows: torch.Tensor) -> Figure:
            shares = rows.exp()
            moved = (rows * shares).nan_to_num(0.0)
            return Figure(shares.sum(-1), moved.square().sum(-1).sqrt(), moved.abs().sum(-1))

        super().__init__("rows whose exponentials sum to one", measure, lambda rows, by: rows - by.log())

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows so far off that their exponentials have no sum that is a number are shifted first."""
        wide = rows.double()
        within = super().restored(rows)
        shifted = (wide - wide.logsumexp(-1, keepdim=True)).to(rows)
        return torch.where(self.held(within)[..., None], within, shifted)


class Integers:
    """Integer-valued, of 32 bits: a kernel may hold them so."""

    words = "integer values"

    def bits(self, rows: torch.Tensor, varying: torch.Tensor | None) -> float | None:
        """As many as a number of that size has digits after the point; zero is no evidence."""
        if not bool(self.held(rows).all()):
            return None
        exponent = torch.frexp(rows.float() if rows.dtype is not torch.float64 else rows).exponent - 1
        told = (DIGITS[rows.dtype] - exponent).clamp_min(0) * ((rows != 0) & rows.isfinite())
        return float((told if varying is None else told * varying).sum())

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.round()

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        whole = (rows == rows.round()) & (rows.abs() < 2.0**31)
        return (whole | ~rows.isfinite()).all(-1)


class FewValues:
    """No more than `FEW` values, which all draws share."""

    def __init__(self) -> None:
        self.values: list[float] = []
        # The draw that is being looked at: values of it, and how many of all were known before.
        self._now: set[float] = set()
        self._known: frozenset[float] = frozenset()

    @property
    def words(self) -> str:
        return f"no values but {', '.join(f'{value:g}' for value in sorted(self.values))}"

    def next_draw(self) -> None:
        """Every draw's values count once."""
        self._now, self._known = set(), frozenset(self.values)

    def bits(self, rows: torch.Tensor, varying: torch.Tensor | None) -> float | None:
        """A value that comes again tells, a new one takes that back; zero, which has many causes, does neither."""
        flat = rows.reshape(-1)
        strange = flat[~self._among(flat)]
        for part in (strange[:HEAD], strange) if strange.numel() else ():
            new = part.unique()
            if len(self.values) + new.numel() > FEW or bool(new.isnan().any()):
                return None
        if strange.numel():
            self.values += [float(value) for value in new]
        first = not self._known
        told = 0
        for value in self.values:
            if value and value not in self._now and bool((rows == value).any()):
                self._now.add(value)
                told += 1 if value in self._known else -1
        digits = DIGITS[rows.dtype] - math.log2(len(self.values))
        return 0.0 if first else told * digits

    def restored(self, rows: torch.Tensor) -> torch.Tensor:
        """The nearest of them; none is near infinity but itself."""
        values = self._tensor(rows)
        between = ((values[1:].double() + values[:-1].double()) / 2).nan_to_num(0.0, math.inf, -math.inf)
        nearest = values[torch.bucketize(rows.to(torch.float64, memory_format=torch.contiguous_format), between)]
        return torch.where(self._among(rows), rows, nearest)

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        return self._among(rows).all(-1)

    def _among(self, rows: torch.Tensor) -> torch.Tensor:
        """Which elements are one of them."""
        among = torch.zeros_like(rows, dtype=torch.bool)
        for value in self.values:
            among |= rows == value
        return among

    def _tensor(self, like: torch.Tensor) -> torch.Tensor:
        return torch.tensor(sorted(self.values), dtype=like.dtype, device=like.device)


def along(length: int) -> list[Property]:
    """What rows of that length may promise, in the order in which it is brought back."""
    return [Probabilities(), unit_length(), LogProbabilities(), Sorted(False), Sorted(True)] if length > 1 else []


def of_each() -> list[Property]:
    """What elements may promise, each by itself."""
    return [FewValues(), Integers()]
