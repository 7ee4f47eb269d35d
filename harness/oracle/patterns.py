"""Recognises kinds of wrong outputs from sampled elements, without temporaries as large as the output."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle.slices import coordinates, sample

SAMPLES = 1 << 14
LINES = 64
# A pattern explains an output if it leaves this share of the mean square of the error, or of the output's variation.
EXPLAINED = 1e-3
# Words of what is a line through the right values.
LINES_THROUGH = ("constant_factor", "offset", "factor_and_offset")


@dataclass(frozen=True)
class Pattern:
    """A word for the reason, a sentence for people, figures."""

    word: str
    sentence: str
    evidence: dict[str, Any]


class Views:
    """A wrong output and the true one at sampled places. `got` and `exact` have the same shape; float64 inside."""

    def __init__(self, got: torch.Tensor, exact: torch.Tensor) -> None:
        self.got = got
        self.exact = exact
        self.places = sample(exact.numel(), got.device, SAMPLES)
        self.given = at(got, self.places)
        self.true = at(exact, self.places)
        self.finite = torch.isfinite(self.given) & torch.isfinite(self.true)

    @property
    def variation(self) -> float:
        """Mean square of the true sample about its mean; of itself where it is constant."""
        true = self.true[self.finite]
        spread = float((true - true.mean()).square().mean()) if true.numel() else 0.0
        return spread or float(true.square().mean()) if true.numel() else 0.0

    @property
    def error(self) -> float:
        """Mean square error of the sample."""
        return float((self.given - self.true)[self.finite].square().mean())

    def explains(self, guess: torch.Tensor) -> bool:
        """Whether `guess` leaves almost nothing of the sampled output's error, or of the true output's variation."""
        off = float((self.given - guess)[self.finite].square().mean())
        return off <= EXPLAINED * min(self.error, max(self.variation, self.error))


def at(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Float64 values at flat places (row-major, whatever the strides), on the places' device."""
    index = coordinates(places.to(tensor.device), tensor.shape) if tensor.dim() else ()
    return tensor[index].reshape(-1).to(places.device).double()


def recognise(got: torch.Tensor, exact: torch.Tensor) -> Pattern | None:
    """The first pattern that explains the output from the true one alone."""
    views = Views(got, exact)
    if int(views.finite.sum()) < 2:
        return None
    for pattern in (_constant, _linear, _transposed, _other_axis, _flat_axis):
        found = pattern(views)
        if found is not None:
            return found
    return None


def same_as(got: torch.Tensor, other: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether `got` is `other` (of the same shape) rather than `exact`, by the size of either: beside a huge right
    answer all that is small is alike."""
    if other.shape != got.shape or other.is_complex():
        return False
    views = Views(got, exact)
    guess = at(other, views.places)
    if not bool(views.finite.any()) or not bool(torch.isfinite(guess).all()) or not views.explains(guess):
        return False
    off, size = (float(one[views.finite].square().mean()) for one in (views.given - guess, guess))
    return off <= EXPLAINED * size


def _constant(views: Views) -> Pattern | None:
    given = views.given[views.finite]
    value = float(given[0])
    if bool((given == value).all()) and given.numel() > 1:
        if value == 0:
            return Pattern("zeros", "all sampled elements are zero", {})
        return Pattern("constant", f"all sampled elements are {value:.6g}", {"constant": value})
    return None


def _linear(views: Views) -> Pattern | None:
    """got = factor * true + offset, with the factor or the offset alone first."""
    given, true = views.given[views.finite], views.true[views.finite]
    square = float(true @ true)
    if not square:
        return None
    factor = float(given @ true) / square
    if views.explains(factor * views.true) and factor:
        return Pattern("constant_factor", f"off by the factor {factor:.6g}", {"factor": factor})
    offset = float((given - true).mean())
    if views.explains(views.true + offset):
        return Pattern("offset", f"off by the constant {offset:.6g}", {"offset": offset})
    centered = true - true.mean()
    if float(centered @ centered) > 0:
        slope = float((given - given.mean()) @ centered) / float(centered @ centered)
        shift = float(given.mean() - slope * true.mean())
        if abs(slope) > 1e-3 and views.explains(slope * views.true + shift):
            evidence = {"factor": slope, "offset": shift}
            return Pattern("factor_and_offset", f"{slope:.6g} times the right answer plus {shift:.6g}", evidence)
    return None


def _transposed(views: Views) -> Pattern | None:
    """Two dimensions exchanged: of equal length in place, or of any two in the order of the memory."""
    shape = views.exact.shape
    if len(shape) < 2:
        return None
    for a, b in itertools.combinations(range(len(shape)), 2):
        if shape[a] < 2 or shape[b] < 2:
            continue
        swapped = views.exact.transpose(a, b)
        index = coordinates(views.places.to(swapped.device), swapped.shape)
        guess = swapped[index].to(views.places.device).double()
        if views.explains(guess):
            return Pattern("transposed", f"dimensions {a} and {b} are exchanged", {"dimensions": [a, b]})
    return None


def _other_axis(views: Views) -> Pattern | None:
    """Sums to one along another dimension than the true output does: a softmax over the wrong axis."""
    if views.exact.dim() < 2:
        return None
    true = [d for d in range(views.exact.dim()) if _sums_to_one(views.exact, d)]
    given = [d for d in range(views.got.dim()) if _sums_to_one(views.got, d)]
    if len(true) == 1 and len(given) == 1 and true != given:
        sentence = f"sums to one along dimension {given[0]} instead of {true[0]}: softmax over the wrong axis"
        return Pattern("softmax_axis", sentence, {"got": given[0], "expected": true[0]})
    return None


def _flat_axis(views: Views) -> Pattern | None:
    """Constant along a dimension in which the true output varies: its mean, or something else."""
    for dimension, length in enumerate(views.exact.shape):
        if length < 2:
            continue
        true, given = _lines(views.exact, dimension), _lines(views.got, dimension)
        mean = true.mean(1, keepdim=True)
        varied = float((true - mean).square().mean())
        if varied > 0 and float((given - given[:, :1]).square().mean()) <= 1e-4 * varied:
            if float((given - mean).square().mean()) <= 0.01 * varied:
                return Pattern("mean_of_axis", f"the mean along dimension {dimension}", {"dimension": dimension})
            return Pattern("flat_axis", f"constant along dimension {dimension}", {"dimension": dimension})
    return None


def _sums_to_one(tensor: torch.Tensor, dimension: int) -> bool:
    lines = _lines(tensor, dimension)
    return lines.shape[1] > 1 and bool(((lines.sum(1) - 1).abs() < 1e-2).all()) and bool((lines >= 0).all())


def _lines(tensor: torch.Tensor, dimension: int) -> torch.Tensor:
    """Up to `LINES` whole lines along a dimension, float64, (lines, length)."""
    moved = tensor.movedim(dimension, -1)
    leading = moved.shape[:-1]
    places = sample(leading.numel(), tensor.device, LINES)
    return moved[coordinates(places, leading)].double() if leading else moved.reshape(1, -1).double()
