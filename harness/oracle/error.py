"""How far an output is from the exact one: as a norm, in the worst row, at the worst element. All in slices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness.oracle.formats import format_of, smallest

# Elements looked at together: temporaries are three times this, and launches stay few enough. A card takes more, since
# it is done with a small slice before the host has launched the next operation.
SLICE = {"cpu": 1 << 22, "cuda": 1 << 26}
# A row must be this long, and rows this many, for their mean to say how large an element is there.
SHORTEST_ROW = 64
# Size of the part of an output from which typical errors are estimated.
PART_ROWS = 1 << 12
PART = 1 << 22
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
    """

    spread: float
    size: float
    center: float
    level: float
    row: torch.Tensor
    col: torch.Tensor
    axis: float
    constant: bool


@dataclass(frozen=True)
class Expected:
    """The error expected at an element: `relative` of its scale, and `own` of its own size, never below `smallest`.

    Dimensionless but for the last, which is absolute.
    """

    relative: float
    own: float
    smallest: float


@dataclass(frozen=True)
class Errors:
    """Distances from the exact output. `norm` is absolute (root mean square); the others are in units of the error
    expected at each element: their root mean square over all, over the worst row, and the worst single one.

    `broken` counts elements that are NaN or infinite where they should not be, or the reverse; they are left out of
    the distances.
    """

    norm: float
    scaled: float
    row: float
    worst: float
    broken: int = 0


def real(output: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones, in a last dimension of two."""
    return torch.view_as_real(output.resolve_conj()) if output.is_complex() else output


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """What to compare in: float64, or float32 for a 16-bit or narrower output, which it resolves well enough (2^-24
    against 2^-11) at half the memory."""
    return torch.float64 if format_of(dtype).bits > 10 else torch.float32


def widened(output: torch.Tensor) -> torch.Tensor:
    """The output as real numbers of `wide_dtype`."""
    return real(output).to(wide_dtype(output.dtype))


def matrix(tensor: torch.Tensor) -> torch.Tensor:
    """A 2-d view: trailing dimensions are joined until rows are `SHORTEST_ROW` long, leading ones into the rest.

    A copy is made only of a tensor that is not contiguous.
    """
    tensor = real(tensor).contiguous()
    columns = 1
    for length in reversed(tensor.shape):
        if columns >= SHORTEST_ROW:
            break
        columns *= length
    return tensor.reshape(-1, max(1, columns))


def tiles(of: torch.Tensor) -> Iterator[tuple[slice, slice]]:
    """Blocks of at most `SLICE` elements, of that device, that cover a matrix, row-major."""
    rows, columns = of.shape
    most = SLICE[of.device.type]
    width = max(1, min(columns, most))
    height = max(1, most // width)
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            yield slice(top, top + height), slice(left, left + width)


def sample(numel: int, device: torch.device, count: int) -> torch.Tensor:
    """`count` flat positions, random but the same each time; all of them where there are no more."""
    if numel <= count:
        return torch.arange(numel, device=device)
    generator = torch.Generator(device).manual_seed(numel)
    return torch.randint(numel, (count,), generator=generator, device=device)


def rms(tensor: torch.Tensor) -> float:
    """Root mean square; 0 for an empty tensor."""
    return float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) / math.sqrt(max(1, tensor.numel()))


def scale_of(exact: torch.Tensor) -> Scale:
    """The scale of a true output (real, widened, not empty); NaN and infinities in it are passed over."""
    y = matrix(exact)
    picked = y.reshape(-1)[sample(y.numel(), y.device, PAIRS)]
    picked = picked[torch.isfinite(picked)]
    center = float(picked.median()) if picked.numel() else 0.0
    factor = _factor(rms(picked.double() - center), y.dtype)
    sums = _sums(y, center, factor, masked=False)
    if not math.isfinite(sums.square):
        sums = _sums(y, center, factor, masked=True)
    mean, square = sums.total / y.numel(), sums.square / y.numel()
    variance = max(0.0, square - mean * mean)
    size = math.sqrt(max(0.0, square + center * (2 * mean + center)))
    if y.numel() == 1 or math.sqrt(variance) <= CONSTANT * format_of(exact.dtype).roundoff * size:
        return Scale(size, size, center, size, sums.row.fill_(size), sums.col.fill_(size), math.inf, True)
    row, col = sums.row / y.shape[1], sums.col / y.shape[0]
    level = float(row.mean())
    if y.shape[0] < SHORTEST_ROW:
        # A column of a few elements says what those elements are, not how large an element there would be.
        col.fill_(level)
    return Scale(math.sqrt(variance), size, center, level, row, col, _least_axis(exact), False)


@dataclass(frozen=True)
class _Sums:
    """Of the distances from the center: signed, squared; absolute by row and by column."""

    total: float
    square: float
    row: torch.Tensor
    col: torch.Tensor


def _factor(size: float, dtype: torch.dtype) -> float:
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
    total, square = both.tolist()
    return _Sums(total / factor, square / factor**2, row.div_(factor), col.div_(factor))


def _least_axis(exact: torch.Tensor) -> float:
    """The smallest variation along a dimension: half the mean square difference of random pairs that differ in their
    position along it only is the variance within it, averaged over the rest."""
    flat = exact.contiguous().reshape(-1)
    first = sample(flat.numel(), flat.device, PAIRS)
    generator = torch.Generator(flat.device).manual_seed(1)
    least, stride = math.inf, 1
    for length in reversed(exact.shape):
        if length > 1:
            step = torch.randint(1, length, first.shape, generator=generator, device=flat.device)
            place = first.div(stride, rounding_mode="floor") % length
            second = first + ((place + step) % length - place) * stride
            pairs = (flat[first] - flat[second]).double()
            pairs = pairs[torch.isfinite(pairs)]
            if pairs.numel():
                least = min(least, rms(pairs) / math.sqrt(2.0))
        stride *= length
    return least


def expected_errors(dtype: torch.dtype, scale: Scale, error: float) -> Expected:
    """How an error of root mean square `error` is expected to be spread over an output of that scale.

    With its scale and, by one rounding, with an element's own size. Where the output lies about zero, an element that
    stands out of its row and column errs by the same share as they do.
    """
    relative = error / (2 * scale.level) if scale.level else 0.0
    around_zero = abs(scale.center) <= scale.spread and not scale.constant
    roundoff = format_of(dtype).roundoff
    return Expected(relative, roundoff + relative if around_zero else roundoff, smallest(dtype))


def measure(
    got: torch.Tensor,
    exact: torch.Tensor,
    scale: Scale,
    expected: Expected,
    native: torch.Tensor | None = None,
) -> Errors:
    """Errors of `got` (its own dtype) against `exact` (widened, perhaps on the host), slice by slice.

    A non-finite element is right where the exact output, rounded to the dtype, or the `native` one is non-finite in
    the same way.
    """
    errors = _measure(matrix(got), matrix(exact), scale, expected, None, masked=False)
    if math.isfinite(errors.norm) and math.isfinite(errors.worst):
        return errors
    return _measure(matrix(got), matrix(exact), scale, expected, None if native is None else matrix(native), True)


def _measure(
    got: torch.Tensor,
    exact: torch.Tensor,
    scale: Scale,
    expected: Expected,
    native: torch.Tensor | None,
    masked: bool,
) -> Errors:
    device = got.device
    row = torch.zeros(got.shape[0], dtype=torch.float64, device=device)
    norm, worst = torch.zeros(2, dtype=torch.float64, device=device)
    factor = _factor(scale.spread * max(expected.relative, expected.own), exact.dtype)
    broken = torch.zeros((), dtype=torch.int64, device=device)
    for rows, columns in tiles(got):
        g, y = got[rows, columns], exact[rows, columns].to(device, non_blocking=True)
        difference = g - y
        if masked:
            broken += (~_same_kind(g, y.to(g.dtype), None if native is None else native[rows, columns])).sum()
            difference.masked_fill_(~(torch.isfinite(g) & torch.isfinite(y)), 0.0)
            y = torch.nan_to_num(y, nan=0.0, posinf=0.0, neginf=0.0)
        norm += torch.linalg.vector_norm(difference if factor == 1.0 else difference * factor).double() ** 2
        difference.div_(_allowed(y, scale.row[rows], scale.col[columns], scale.level, expected))
        row[rows] += torch.linalg.vector_norm(difference, dim=1).double() ** 2
        worst = torch.maximum(worst, torch.linalg.vector_norm(difference, math.inf).double())
    squares = torch.stack([norm / got.numel(), row.mean() / got.shape[1], row.max() / got.shape[1]])
    whole, scaled, most = squares.sqrt().tolist()
    return Errors(whole / factor, scaled, most, float(worst), int(broken))


def wrong(
    got: torch.Tensor, exact: torch.Tensor, scale: Scale, expected: Expected, threshold: float
) -> tuple[torch.Tensor, int]:
    """A mask, in the shape of `matrix(got)`, of elements that err by more than `threshold` times what is expected,
    and the flat position of the one that does most (of a broken one, if there is any)."""
    given, true = matrix(got), matrix(exact)
    mask = torch.empty(given.shape, dtype=torch.bool, device=got.device)
    most, position = -1.0, 0
    for rows, columns in tiles(given):
        g, y = given[rows, columns], true[rows, columns].to(got.device)
        times = (g - y).abs_().div_(_allowed(y, scale.row[rows], scale.col[columns], scale.level, expected))
        times.masked_fill_(_same_kind(g, y.to(g.dtype), None) & ~torch.isfinite(g), 0.0)
        times = torch.nan_to_num(times, nan=math.inf, posinf=math.inf)
        mask[rows, columns] = times > threshold
        peak, at = times.reshape(-1).max(0)
        if float(peak) > most:
            most = float(peak)
            position = (rows.start + int(at) // g.shape[1]) * given.shape[1] + columns.start + int(at) % g.shape[1]
    return mask, position


def _allowed(y: torch.Tensor, row: torch.Tensor, col: torch.Tensor, level: float, expected: Expected) -> torch.Tensor:
    """The error expected at each element of a block."""
    least = torch.full((1, 1), expected.smallest, dtype=y.dtype, device=y.device)
    rows = row.to(y.device) * (expected.relative / level if level else 0.0)
    return torch.addr(least, rows.to(y.dtype), col.to(y.device, y.dtype)).add_(y.abs(), alpha=expected.own)


def _same_kind(got: torch.Tensor, exact: torch.Tensor, native: torch.Tensor | None) -> torch.Tensor:
    """Where two tensors are both finite, both NaN, or the same infinity; `native` may stand in for the exact one."""
    alike = (torch.isfinite(got) & torch.isfinite(exact)) | (torch.isnan(got) & torch.isnan(exact))
    alike |= torch.isinf(got) & (got == exact)
    return alike if native is None else alike | _same_kind(got, native, None)


class Part:
    """Some rows and columns of an output's matrix, the same of every output of its shape, to estimate from."""

    def __init__(self, exact: torch.Tensor) -> None:
        rows, columns = matrix(exact).shape
        self.rows = _some(rows, PART_ROWS, exact.device)
        self.columns = _some(columns, max(1, PART // self.rows.numel()), exact.device)
        # Few long rows: more of them than the first count, if there is room.
        if self.rows.numel() * self.columns.numel() < PART // 2:
            self.rows = _some(rows, PART // self.columns.numel(), exact.device)
        self.width = columns

    def of(self, output: torch.Tensor) -> torch.Tensor:
        """That part of an output (its own dtype), (rows, columns)."""
        whole = matrix(output)
        return whole[self.rows.to(whole.device)[:, None], self.columns.to(whole.device)[None, :]]

    def scale(self, scale: Scale) -> Scale:
        return Scale(**{**vars(scale), "row": scale.row[self.rows], "col": scale.col[self.columns]})

    @property
    def positions(self) -> torch.Tensor:
        """Flat positions in the output, (rows, columns)."""
        return self.rows[:, None] * self.width + self.columns[None, :]


def _some(length: int, count: int, device: torch.device) -> torch.Tensor:
    return sample(length, device, count).sort().values
