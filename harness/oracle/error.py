"""How far an output is from the exact one: as a norm, in the worst row, at the worst element. All in slices."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace

import torch

from harness.oracle.formats import format_of, smallest
from harness.oracle.scale import Scale, in_range
from harness.oracle.shared_errors import sizes
from harness.oracle.slices import matrix, sample, tiles

# Size of the part of an output from which typical errors are estimated.
PART_ROWS = 1 << 12
PART = 1 << 22


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

    `bulk` is absolute, too, and of the elements within `Scale.bulk` alone; 0 where an output has no such bulk. So are
    `shared`, of errors that rows or columns have in common, and `apart`, of what is left of them (`shared_errors`), and
    `small`, of the elements of no more than `Tolerances.small_size`; 0 where that was not asked.
    `share` is the largest error of a row, relative to the row's distance from the center, of those rows that
    err by more than was asked about. `broken` counts elements that are NaN or infinite where they should not be, or the
    reverse; they are left out of the distances.
    """

    norm: float
    scaled: float
    row: float
    worst: float
    broken: int = 0
    share: float = 0.0
    bulk: float = 0.0
    shared: float = 0.0
    apart: float = 0.0
    small: float = 0.0


@dataclass(frozen=True)
class Tolerances:
    """The most that each measure of `Errors` may show; `share` of rows that err by more than `rows` only, `small` of
    elements of that size at the most."""

    norm: float
    scaled: float = math.inf
    row: float = math.inf
    worst: float = math.inf
    share: float = math.inf
    rows: float = math.inf
    bulk: float = math.inf
    shared: float = math.inf
    apart: float = math.inf
    small: float = math.inf
    small_size: float = math.inf

    def exceeded(self, errors: Errors) -> str:
        """The first measure over its limit (`broken` for misplaced NaN and infinities), or nothing."""
        if errors.broken:
            return "broken"
        for name in ("norm", "scaled", "row", "worst", "share", "bulk", "small", "shared", "apart"):
            # Written so that a NaN exceeds.
            if not getattr(errors, name) <= getattr(self, name):
                return name
        return ""

    def stricter(self, other: Tolerances) -> Tolerances:
        """The smaller of each limit."""
        return Tolerances(*map(min, astuple(self), astuple(other)))


# Nothing is limited.
ANY = Tolerances(math.inf)


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
    asked: Tolerances = ANY,
) -> Errors:
    """Errors of `got` (its own dtype) against `exact` (widened, perhaps on the host), slice by slice.

    Of what costs more to tell, `share`, `small`, `shared` and `apart`, only what has a limit in `asked` is told.

    A non-finite element is right where the exact output, rounded to the dtype, or the `native` one is non-finite in
    the same way.
    """
    errors = _measure(matrix(got), matrix(exact), scale, expected, None, asked, masked=False)
    if math.isfinite(errors.norm) and math.isfinite(errors.worst):
        if not math.isfinite(min(asked.shared, asked.apart)):
            return errors
        found = sizes(got, exact, scale.center)
        return replace(errors, shared=found.shared, apart=found.apart)
    own = None if native is None else matrix(native)
    return _measure(matrix(got), matrix(exact), scale, expected, own, asked, masked=True)


def is_small(exact: torch.Tensor, size: float) -> torch.Tensor:
    """Which elements are no larger than that, and not nothing at all, as what a ReLU or a mask leaves of a product."""
    sizes_of = exact.abs()
    return (sizes_of <= size).logical_and_(sizes_of > 0)


def _measure(
    got: torch.Tensor,
    exact: torch.Tensor,
    scale: Scale,
    expected: Expected,
    native: torch.Tensor | None,
    asked: Tolerances,
    masked: bool,
) -> Errors:
    device = got.device
    row, off, size = torch.zeros(3, got.shape[0], dtype=torch.float64, device=device)
    norm, worst, bulk, inside, small, few = torch.zeros(6, dtype=torch.float64, device=device)
    factor = in_range(scale.spread * max(expected.relative, expected.own), exact.dtype)
    broken = torch.zeros((), dtype=torch.int64, device=device)
    for rows, columns in tiles(got):
        g, y = got[rows, columns], exact[rows, columns].to(device, non_blocking=True)
        difference = g - y
        if masked:
            broken += (~_same_kind(g, y.to(g.dtype), None if native is None else native[rows, columns])).sum()
            difference.masked_fill_(~(torch.isfinite(g) & torch.isfinite(y)), 0.0)
            y = torch.nan_to_num(y, nan=0.0, posinf=0.0, neginf=0.0)
        norm += torch.linalg.vector_norm(difference if factor == 1.0 else difference * factor).double() ** 2
        if math.isfinite(scale.bulk):
            within = (y - scale.center).abs_() <= scale.bulk
            bulk += torch.linalg.vector_norm(difference.masked_fill(~within, 0.0)).double() ** 2
            inside += within.sum()
        if math.isfinite(asked.small):
            within = is_small(y, asked.small_size)
            small += torch.linalg.vector_norm(difference.masked_fill(~within, 0.0)).double() ** 2
            few += within.sum()
        if math.isfinite(asked.rows):
            off[rows] += torch.linalg.vector_norm(difference, dim=1, dtype=torch.float64) ** 2
            size[rows] += torch.linalg.vector_norm(y - scale.center, dim=1, dtype=torch.float64) ** 2
        difference.div_(_allowed(y, scale.row[rows], scale.col[columns], scale.level, expected))
        row[rows] += torch.linalg.vector_norm(difference, dim=1).double() ** 2
        worst = torch.maximum(worst, torch.linalg.vector_norm(difference, math.inf).double())
    of_bulk = bulk / inside.clamp_min(1)
    of_small = small / few.clamp_min(1)
    squares = torch.stack([norm / got.numel(), row.mean() / got.shape[1], row.max() / got.shape[1], of_bulk, of_small])
    # Read together: on a card each reading waits for the device.
    found = torch.cat([squares.sqrt(), torch.stack([worst, broken.double()])])
    whole, scaled, most, near, of_small, furthest, lost = found.tolist()
    beyond = asked.rows
    share = float(_share(off, size)[(row / got.shape[1]).sqrt() > beyond].max()) if most > beyond else 0.0
    return Errors(whole / factor, scaled, most, furthest, int(lost), share, near, small=of_small)


def _share(off: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """The error of each row relative to what it is of; infinite for one of nothing."""
    return torch.where(off > 0, (off / size).sqrt(), 0.0)


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
        times = _times(g, y, _allowed(y, scale.row[rows], scale.col[columns], scale.level, expected))
        mask[rows, columns] = times > threshold
        peak, at = times.reshape(-1).max(0)
        if float(peak) > most:
            most = float(peak)
            position = _flat(given, rows, columns, int(at), g.shape[1])
    return mask, position


def far_off(
    got: torch.Tensor, exact: torch.Tensor, scale: Scale, expected: Expected, element: float, row: float
) -> torch.Tensor:
    """A mask, in the shape of `got`, of elements that err by more than `element` times what is expected, and of rows
    the median error of which is beyond `row` times."""
    given, true = matrix(got), matrix(exact)
    mask = torch.empty(given.shape, dtype=torch.bool, device=got.device)
    for rows, columns in tiles(given):
        g, y = given[rows, columns], true[rows, columns].to(got.device)
        times = _times(g, y, _allowed(y, scale.row[rows], scale.col[columns], scale.level, expected))
        mask[rows, columns] = times > element
        if times.shape[1] == given.shape[1]:
            mask[rows] |= times.median(1, keepdim=True).values > row
    return mask.reshape(got.shape)


def wrong_at(
    places: torch.Tensor, got: torch.Tensor, exact: torch.Tensor, scale: Scale, expected: Expected, threshold: float
) -> torch.Tensor:
    """The same of the elements at some flat `places`, of which `got` and `exact` are the values."""
    return times_at(places, got, exact, scale, expected) > threshold


def times_at(
    places: torch.Tensor, got: torch.Tensor, exact: torch.Tensor, scale: Scale, expected: Expected
) -> torch.Tensor:
    """How many times what is expected the elements at some flat `places` err by."""
    row, column = torch.div(places, scale.col.numel(), rounding_mode="floor"), places % scale.col.numel()
    typical = scale.row.to(places.device)[row] * scale.col.to(places.device)[column]
    factor = expected.relative / scale.level if scale.level else 0.0
    return _times(got, exact, typical * factor + expected.smallest + expected.own * exact.abs())


def _times(got: torch.Tensor, exact: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """How many times what is `allowed` each element errs by; infinitely many if it is broken."""
    times = (got - exact).abs_().div_(allowed)
    times.masked_fill_(_same_kind(got, exact.to(got.dtype), None) & ~torch.isfinite(got), 0.0)
    return torch.nan_to_num(times, nan=math.inf, posinf=math.inf)


def distant(got: torch.Tensor, exact: torch.Tensor, limit: float) -> tuple[torch.Tensor, int]:
    """As `wrong`, but for elements further than `limit` from the exact ones, whatever is expected of each."""
    given, true = matrix(got), matrix(exact)
    mask = torch.empty(given.shape, dtype=torch.bool, device=got.device)
    most, position = -1.0, 0
    for rows, columns in tiles(given):
        away = (given[rows, columns] - true[rows, columns].to(got.device)).abs_()
        mask[rows, columns] = away > limit
        peak, at = torch.nan_to_num(away, nan=0.0, posinf=0.0).reshape(-1).max(0)
        if float(peak) > most:
            most = float(peak)
            position = _flat(given, rows, columns, int(at), away.shape[1])
    return mask, position


def _flat(given: torch.Tensor, rows: slice, columns: slice, at: int, width: int) -> int:
    """The flat position in a matrix of what is at flat `at` in a block of that width."""
    return int((rows.start + at // width) * given.shape[1] + columns.start + at % width)


def _allowed(y: torch.Tensor, row: torch.Tensor, col: torch.Tensor, level: float, expected: Expected) -> torch.Tensor:
    """The error expected at each element of a block."""
    least = torch.full((1, 1), expected.smallest, dtype=y.dtype, device=y.device)
    rows = row.to(y.device) * (expected.relative / level if level else 0.0)
    return torch.addr(least, rows.to(y.dtype), col.to(y.device, y.dtype)).add_(y.abs(), alpha=expected.own)


def expected_of(exact: torch.Tensor, scale: Scale, expected: Expected) -> torch.Tensor:
    """The error expected at each element of an output's matrix."""
    least = torch.nan_to_num(exact, nan=0.0, posinf=0.0, neginf=0.0)
    return _allowed(least, scale.row, scale.col, scale.level, expected)


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
        self.total, self.width = rows, columns

    def of(self, output: torch.Tensor) -> torch.Tensor:
        """That part of an output (its own dtype), (rows, columns)."""
        whole = matrix(output)
        if self.rows.numel() * self.columns.numel() == whole.numel():
            return whole
        return whole[self.rows.to(whole.device)[:, None], self.columns.to(whole.device)[None, :]]

    def within(self, some: torch.Tensor, start: int, length: int) -> torch.Tensor:
        """What a slice of an output, from index `start` of a first dimension of `length`, has of that part."""
        here = matrix(some)
        if self.total == 1:
            # Batch entries lie side by side in one long row.
            first = start * (self.width // length)
            inside = self.columns[(self.columns >= first) & (self.columns < first + here.numel())]
            return here.reshape(1, -1)[:, (inside - first).to(here.device)]
        first = start * (self.total // length)
        inside = self.rows[(self.rows >= first) & (self.rows < first + here.shape[0])]
        return here[(inside - first).to(here.device)[:, None], self.columns.to(here.device)[None, :]]

    def joined(self, slices: list[torch.Tensor]) -> torch.Tensor:
        """The part, of what all slices have of it, in order."""
        return torch.cat(slices, 1 if self.total == 1 else 0)

    def in_lines(self, found: torch.Tensor, length: int) -> torch.Tensor | None:
        """This part of an output whose last dimension has that length, in rows of it; None where it has only some
        elements of several rows that the matrix has in one."""
        if self.width == length:
            return found
        return found.reshape(-1, length) if self.columns.numel() == self.width else None

    def scale(self, scale: Scale) -> Scale:
        return Scale(**{**vars(scale), "row": scale.row[self.rows], "col": scale.col[self.columns]})

    @property
    def positions(self) -> torch.Tensor:
        """Flat positions in the output, (rows, columns)."""
        return self.rows[:, None] * self.width + self.columns[None, :]


def _some(length: int, count: int, device: torch.device) -> torch.Tensor:
    return sample(length, device, count).sort().values
