"""How large and how varied an exact output is: the unit of errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.machine.pauses import pause
from harness.oracle import rule
from harness.oracle.formats import format_of
from harness.oracle.slices import SHORTEST_ROW, matrix, sample, tiles

# Elements, or pairs of them, from which typical values are estimated.
PAIRS = 1 << 16
# An output that varies by fewer roundings than this is constant.
CONSTANT = 16


@dataclass(frozen=True)
class Scale:
    """How large and how varied a true output is, seen as a matrix of `row.numel()` rows and `col.numel()` columns.

    spread: root mean square about the mean, the unit that relative errors are given in; the root mean square itself
    where the output is constant or has one element. size: root mean square. center: the median (of a part).
    row, col: mean distance from the center in each row and column. Their product over `level`, the overall mean
    distance, is how large an element is expected to be there: rank one, so that a large row does not hide a small
    one, and an outlier raises its own row and column only.
    axis: the smallest variation along one dimension, the others held fixed; inf where there is none.
    bulk: the distance from the center within which all elements but a few far larger ones are; inf where none are so.
    """

    spread: float
    size: float
    center: float
    level: float
    row: torch.Tensor
    col: torch.Tensor
    axis: float
    constant: bool
    bulk: float = math.inf


def scale_of(exact: torch.Tensor, *, axes: bool = True) -> Scale:
    """The scale of a true output (real, widened, not empty); NaN and infinities in it are passed over.

    Without `axes`, the variation along single dimensions is left out (`axis` is inf), which the limits of later checks
    do not need.
    """
    y = matrix(exact)
    center, most, typical = _typical(y)
    factor = in_range(typical, y.dtype)
    sums = _sums(y, center, factor, masked=False)
    if not math.isfinite(sums.square):
        # Infinities, or a few numbers so large beside typical ones that their squares are.
        sums = _sums(y, center, in_range(_largest(y), y.dtype), masked=True)
    mean, square = sums.total / y.numel(), sums.square / y.numel()
    variance = max(0.0, square - mean * mean)
    size = math.sqrt(max(0.0, square + center * (2 * mean + center)))
    if y.numel() == 1 or math.sqrt(variance) <= CONSTANT * format_of(exact.dtype).roundoff * size:
        return Scale(size, size, center, size, sums.row.fill_(size), sums.col.fill_(size), math.inf, True)
    row, col = sums.row / y.shape[1], sums.col / y.shape[0]
    level = sums.absolute / y.numel()
    if y.shape[0] < SHORTEST_ROW:
        # A column of a few elements says what those elements are, not how large an element there would be.
        col = _periodic(exact, col) if exact.dim() > 1 and 1 < exact.shape[-1] < SHORTEST_ROW else col.fill_(level)
    # What is nothing but zeros says nothing about errors there, either.
    least = format_of(exact.dtype).roundoff * level
    row, col = (torch.where(sizes < least, level, sizes) for sizes in (row, col))
    axis = _least_axis(exact) if axes else math.inf
    heavy = 0 < rule.BULK_FAR * most < math.sqrt(variance)
    bulk = rule.BULK_WIDTH * most if heavy else math.inf
    return Scale(math.sqrt(variance), size, center, level, row, col, axis, False, bulk)


def _typical(y: torch.Tensor) -> tuple[float, float, float]:
    """The median, the distance from it within which most elements are, and the root mean square of all distances; of a
    part, of what is finite in it; zeros where nothing is."""
    pause()
    picked = y.reshape(-1)[sample(y.numel(), y.device, PAIRS)]
    finite = torch.isfinite(picked)
    center = picked.masked_fill(~finite, math.nan).nanmedian()
    away = picked.double() - center
    distance = away.abs().masked_fill(~finite, math.nan).nanquantile(rule.BULK_MOST)
    norm = torch.linalg.vector_norm(away.masked_fill(~finite, 0.0))
    # Read together: on a card each reading waits for the device.
    middle, most, whole, count = torch.stack([center.double(), distance, norm, finite.sum().double()]).tolist()
    return (middle, most, whole / math.sqrt(count)) if count else (0.0, 0.0, 0.0)


def _largest(y: torch.Tensor) -> float:
    """The largest size of a finite element."""
    largest = torch.zeros((), dtype=y.dtype, device=y.device)
    for rows, columns in tiles(y):
        tile = y[rows, columns].nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        largest = torch.maximum(largest, torch.linalg.vector_norm(tile, math.inf))
    return float(largest)


@dataclass(frozen=True)
class _Sums:
    """Sums of the distances from the center: signed, squared, absolute; the last by row and by column, too."""

    total: float
    square: float
    absolute: float
    row: torch.Tensor
    col: torch.Tensor


def in_range(size: float, dtype: torch.dtype) -> float:
    """What to multiply numbers of that size with before their squares leave the range of float32."""
    return 1 / size if dtype is torch.float32 and size and not 1e-12 < size < 1e12 else 1.0


def _sums(y: torch.Tensor, center: float, factor: float, masked: bool) -> _Sums:
    row = torch.zeros(y.shape[0], dtype=torch.float64, device=y.device)
    col = torch.zeros(y.shape[1], dtype=torch.float64, device=y.device)
    both = torch.zeros(2, dtype=torch.float64, device=y.device)
    for rows, columns in tiles(y):
        away = y[rows, columns] - center
        if masked:
            away = torch.nan_to_num(away, nan=0.0, posinf=0.0, neginf=0.0)
        if factor != 1.0:
            away.mul_(factor)
        # Within a slice in the output's own width: asking these for float64 would copy the slice first.
        both[0] += away.sum()
        both[1] += torch.linalg.vector_norm(away).double() ** 2
        row[rows] += torch.linalg.vector_norm(away, 1, dim=1)
        col[columns] += torch.linalg.vector_norm(away, 1, dim=0)
    total, square, absolute = torch.cat([both, row.sum(0, keepdim=True)]).tolist()
    return _Sums(total / factor, square / factor**2, absolute / factor, row.div_(factor), col.div_(factor))


def _periodic(exact: torch.Tensor, col: torch.Tensor) -> torch.Tensor:
    """How large an element is in each column of `matrix(exact)`, where columns are a short last dimension's, repeated.

    Boxes beside scores, a sum beside a mean: each index has its own center and size, of a part.
    """
    period = exact.shape[-1]
    flat = exact.contiguous().reshape(-1, period)
    if flat.shape[0] < SHORTEST_ROW:
        return col.fill_(float(col.mean()))
    picked = flat[sample(flat.shape[0], flat.device, PAIRS)].double()
    picked = picked.masked_fill(~torch.isfinite(picked), math.nan)
    size = (picked - picked.nanmedian(0).values).abs().nanmean(0).nan_to_num(0.0)
    return size.repeat(col.numel() // period)


def _least_axis(exact: torch.Tensor) -> float:
    """The smallest variation along a dimension: half the mean square difference of random pairs that differ in their
    position along it only is the variance within it, averaged over the rest."""
    flat = exact.contiguous().reshape(-1)
    first = sample(flat.numel(), flat.device, PAIRS)
    generator = torch.Generator(flat.device).manual_seed(1)
    norms, counts, stride = [], [], 1
    for length in reversed(exact.shape):
        if length > 1:
            step = torch.randint(1, length, first.shape, generator=generator, device=flat.device)
            place = first.div(stride, rounding_mode="floor") % length
            second = first + ((place + step) % length - place) * stride
            pairs = (flat[first] - flat[second]).double()
            finite = torch.isfinite(pairs)
            norms.append(torch.linalg.vector_norm(pairs.masked_fill_(~finite, 0.0)))
            counts.append(finite.sum().double())
        stride *= length
    if not norms:
        return math.inf
    read = torch.stack([*norms, *counts]).tolist()
    pairs_of = zip(read[: len(norms)], read[len(norms) :], strict=True)
    return min((norm / math.sqrt(2.0 * count) for norm, count in pairs_of if count), default=math.inf)
