"""How far an output is from the exact one: as a norm, in the worst row, at the worst element. All in slices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness.oracle.formats import format_of, smallest

# Elements looked at together: temporaries of a few times this, and few enough slices that launches cost little.
SLICE = 1 << 22
# A row must be long enough for its mean error to mean something.
SHORTEST_ROW = 64
# Random elements from which typical sizes are estimated, to a part in a thousand.
SAMPLES = 1 << 20
PAIRS = 1 << 16


@dataclass(frozen=True)
class Scale:
    """How large and how varied a true output is, seen as a matrix of `row.numel()` rows and `col.numel()` columns.

    spread: root mean square about the mean, the unit that relative errors are given in; the root mean square itself
    where the output is constant or has one element. size: root mean square. center: the median (of a sample).
    row, col: mean distance from the center in each row and column; their product over `level`, the overall mean
    distance, is the size of error expected at an element when errors grow with rows and columns (rank one, so that a
    large row does not hide a small one, and an outlier raises only its own row and column).
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
class Errors:
    """Distances from the exact output. `norm` is absolute (root mean square); the others are in units of the error
    expected at each element: their root mean square over all, over the worst row, and the worst single one.

    `broken` counts elements that are NaN or infinite where they should not be, or the reverse; they are left out of
    the distances. `index` is the flat position of the worst element (the first broken one, if any).
    """

    norm: float
    scaled: float
    row: float
    worst: float
    index: int
    broken: int = 0


def widened(output: torch.Tensor) -> torch.Tensor:
    """Real numbers to compare in: float64, or float32 for a 16-bit or narrower output, which it resolves well enough
    (2^-24 against 2^-11) at half the memory."""
    real = torch.view_as_real(output.resolve_conj()) if output.is_complex() else output
    return real.double() if format_of(output.dtype).bits > 10 else real.float()


def matrix(tensor: torch.Tensor) -> torch.Tensor:
    """A 2-d view: trailing dimensions are joined until rows are `SHORTEST_ROW` long, leading ones into the rest.

    A copy is made only of a tensor that is not contiguous.
    """
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    tensor = tensor.contiguous()
    columns = 1
    for length in reversed(tensor.shape):
        if columns >= SHORTEST_ROW:
            break
        columns *= length
    return tensor.reshape(-1, max(1, columns))


def tiles(shape: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
    """Blocks of at most `SLICE` elements that cover a matrix, row-major."""
    rows, columns = shape
    width = max(1, min(columns, SLICE))
    height = max(1, SLICE // width)
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            yield slice(top, top + height), slice(left, left + width)


def sample(numel: int, device: torch.device, count: int = SAMPLES) -> torch.Tensor:
    """Flat positions, random but the same each time; all of them where there are no more than `count`."""
    if numel <= count:
        return torch.arange(numel, device=device)
    generator = torch.Generator(device).manual_seed(numel)
    return torch.randint(numel, (count,), generator=generator, device=device)


def scale_of(exact: torch.Tensor) -> Scale:
    """The scale of a true output (float32 or float64, any shape); NaN and infinities in it are passed over."""
    if exact.numel() == 0:
        empty = torch.ones(1, device=exact.device)
        return Scale(1.0, 0.0, 0.0, 1.0, empty, empty, math.inf, True)
    y = matrix(exact)
    picked = y.reshape(-1)[sample(y.numel(), y.device)].double()
    finite = picked[torch.isfinite(picked)]
    center = float(finite.median()) if finite.numel() else 0.0
    row = torch.zeros(y.shape[0], dtype=torch.float64, device=y.device)
    col = torch.zeros(y.shape[1], dtype=torch.float64, device=y.device)
    total = torch.zeros(3, dtype=torch.float64, device=y.device)
    for rows, columns in tiles((y.shape[0], y.shape[1])):
        away = y[rows, columns] - center
        away = torch.nan_to_num(away, nan=0.0, posinf=0.0, neginf=0.0)
        total[0] += away.sum(dtype=torch.float64)
        total[1] += torch.linalg.vector_norm(away, dtype=torch.float64) ** 2
        away.abs_()
        row[rows] += away.sum(1, dtype=torch.float64)
        col[columns] += away.sum(0, dtype=torch.float64)
    total[2] = row.sum()
    mean, square, level = (total / y.numel()).tolist()
    variance = max(0.0, square - mean * mean)
    size = math.sqrt(max(0.0, square + center * (2 * mean + center)))
    # Below the resolution of float64 (or of float32, which 16-bit outputs are kept in), variation is rounding.
    constant = y.numel() == 1 or math.sqrt(variance) <= 16 * format_of(exact.dtype).roundoff * size
    if constant:
        row.fill_(size)
        col.fill_(1.0)
        return Scale(size, size, center, 1.0, row, col, math.inf, True)
    row /= y.shape[1]
    col /= y.shape[0]
    return Scale(math.sqrt(variance), size, center, level, row, col, _least_axis(exact), False)


def rms(tensor: torch.Tensor) -> float:
    """Root mean square; 0 for an empty tensor."""
    return float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) / math.sqrt(max(1, tensor.numel()))


@dataclass(frozen=True)
class Expected:
    """The error expected at an element: `relative` of its scale, and `roundoff` of its own size, never below
    `smallest`. Dimensionless but for the last."""

    relative: float
    roundoff: float
    smallest: float


def expected_errors(dtype: torch.dtype, relative: float) -> Expected:
    return Expected(relative, format_of(dtype).roundoff, smallest(dtype))


def measure(
    got: torch.Tensor,
    exact: torch.Tensor,
    scale: Scale,
    expected: Expected,
    native: torch.Tensor | None = None,
) -> Errors:
    """Errors of `got` (its own dtype) against `exact` (widened, perhaps on the host), slice by slice.

    A non-finite element is right where the exact output, rounded to the dtype, or the `native` one is non-finite in
    the same way. Temporaries are a few slices.
    """
    if got.numel() == 0:
        return Errors(0.0, 0.0, 0.0, 0.0, 0)
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
    norm = torch.zeros((), dtype=torch.float64, device=device)
    worst, where = [], []
    broken, first_broken = 0, -1
    row_scale = (scale.row * (expected.relative / scale.level if scale.level else 0.0)).to(exact.dtype).to(device)
    col_scale = scale.col.to(exact.dtype).to(device)
    for rows, columns in tiles((got.shape[0], got.shape[1])):
        g, y = got[rows, columns], exact[rows, columns].to(device, non_blocking=True)
        difference = torch.sub(g.to(y.dtype), y)
        if masked:
            wrong = _broken(g, y, None if native is None else native[rows, columns])
            count = int(wrong.sum())
            if count and not broken:
                at = int(wrong.reshape(-1).to(torch.uint8).argmax())
                first_broken = _flat(at, rows, columns, got.shape[1], g.shape[1])
            broken += count
            difference = torch.nan_to_num(difference, nan=0.0, posinf=0.0, neginf=0.0)
            difference[~(torch.isfinite(g) & torch.isfinite(y))] = 0.0
            y = torch.nan_to_num(y, nan=0.0, posinf=0.0, neginf=0.0)
        norm += torch.linalg.vector_norm(difference, dtype=torch.float64) ** 2
        allowed = torch.outer(row_scale[rows], col_scale[columns])
        allowed.add_((y - scale.center).abs_(), alpha=expected.relative)
        allowed.add_(y.abs(), alpha=expected.roundoff).add_(expected.smallest)
        difference.div_(allowed)
        row[rows] += torch.linalg.vector_norm(difference, dim=1, dtype=torch.float64) ** 2
        peak = difference.abs_().reshape(-1).max(0)
        worst.append(peak.values)
        where.append((peak.indices, rows, columns, g.shape[1]))
    peaks = torch.stack(worst)
    at = int(peaks.argmax())
    position, rows, columns, width = where[at]
    index = first_broken if first_broken >= 0 else _flat(int(position), rows, columns, got.shape[1], width)
    return Errors(
        norm=math.sqrt(float(norm) / got.numel()),
        scaled=math.sqrt(float(row.sum()) / got.numel()),
        row=math.sqrt(float(row.max()) / got.shape[1]),
        worst=float(peaks[at]),
        index=index,
        broken=broken,
    )


def _broken(got: torch.Tensor, exact: torch.Tensor, native: torch.Tensor | None) -> torch.Tensor:
    """Where a value is non-finite without the exact or the native output being so, or finite where both are not."""
    rounded = exact.to(got.dtype)
    alike = _same_kind(got, rounded)
    if native is not None:
        alike |= _same_kind(got, native)
    # A finite number where only the native output overflowed is judged by its distance.
    return ~alike


def _same_kind(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    finite = torch.isfinite(a) & torch.isfinite(b)
    return finite | (torch.isnan(a) & torch.isnan(b)) | (torch.isinf(a) & (a == b))


def _flat(position: int, rows: slice, columns: slice, total_width: int, width: int) -> int:
    return (rows.start + position // width) * total_width + columns.start + position % width


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
                least = min(least, float(pairs.square().mean().sqrt()) / math.sqrt(2.0))
        stride *= length
    return least
