"""What error to expect of one output: measured on the reference itself, run in several ways on the same inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from harness.oracle import rule
from harness.oracle.error import Errors, Expected, Part, Tolerances, expected_errors, is_small, measure
from harness.oracle.fills import NONE, Fills
from harness.oracle.formats import (
    BY_NAME,
    FLOAT32,
    NUDGE,
    ROUNDING_RMS,
    TF32,
    Format,
    format_of,
    is_eight_bits,
    next_lower,
    nudge,
    smallest,
)
from harness.oracle.lengths import Longest
from harness.oracle.outliers import MOST, NEARER, NEARLY_ALL, SUSPECT, Outliers
from harness.oracle.scale import PAIRS, Scale, scale_of
from harness.oracle.shared_errors import lines, sizes
from harness.oracle.slices import SHORTEST_ROW, rms, sample, widened

# Measures of errors that few rows or elements decide.
OF_PLACES = ("scaled", "row", "worst")


@dataclass(frozen=True)
class Signature:
    """How the native output moves, at some flat `positions`, when products are taken in a coarser format.

    `exact` and `moved` hold the exact output and the movement at these positions, float64.
    """

    format: Format
    positions: torch.Tensor
    exact: torch.Tensor
    moved: torch.Tensor


@dataclass(frozen=True)
class Grid:
    """How the exact output moves, at some flat `positions`, when nothing on the way is rounded to a grid, and `most`,
    how far on that way an answer may be. `exact` and `moved` as in `Signature`. `noise`: the reference's own
    (`off_grid`)."""

    positions: torch.Tensor
    exact: torch.Tensor
    moved: torch.Tensor
    most: float
    noise: float

    def on_the_way(self, error: torch.Tensor) -> float:
        """How far an error at the positions leads from the exact output to the one that was not rounded."""
        return float(error @ self.moved) / float(self.moved @ self.moved)

    def off_grid(self, error: torch.Tensor) -> float:
        """Of an error at the positions, what no rounding to the other side of a boundary makes, as a share of the
        movement's square: never below 0 but for what is nearer to the unrounded output than to any on the grid, where
        it is -1.

        A number that is rounded the other way errs by twice the movement m, so that the error's square is twice its
        product with m, whichever numbers are so.
        """
        return float(error @ error - 2 * (error @ self.moved)) / float(self.moved @ self.moved)


@dataclass(frozen=True)
class Yardstick:
    """Errors to expect of one floating output; root mean squares, absolute, in the output's own unit.

    own: of the reference at the problem's precision. floor: of rounding the exact output to its dtype. base: the
    largest of these and of what one rounding of the inputs does to the output, which any sound algorithm may show.
    lowered: of the reference with its products in the format below `level`, the format it computes in (None: unknown,
    or of no account). drift: what a plain running sum may lose, where rounding goes one way, or where a variance is the
    difference of two. heaped: the terms of the longest sum, where that is not of products, or of very many; else 0.
    kinds: of the computation (`Longest.kinds`). limits: what a candidate may show; `loose` the same for each allowed
    format. finite: whether the reference's output is. unrounded: whether it is the exact one, to the last bit, without
    a sum behind it. fills: its fill values, of which none of the others knows. grid: what tells who leaves a quantiser
    out. jumped: the share of the reference's own output that jumps, which is in no other figure; None where it is not
    known to jump. whole: whether nothing is asked of parts of the output by themselves.
    """

    numel: int
    scale: Scale
    own: float
    floor: float
    base: float
    lowered: float | None
    level: Format
    drift: float
    heaped: int
    kinds: frozenset[str]
    limits: Tolerances
    loose: dict[str, Tolerances]
    expected: Expected
    finite: bool
    unrounded: bool
    signature: Signature | None
    fills: Fills = NONE
    grid: Grid | None = None
    jumped: float | None = None
    whole: bool = False

    @property
    def unit(self) -> float:
        """The reference's error that a candidate's is compared with in `error_ratio`."""
        return max(self.own, self.floor)

    @property
    def meaningful(self) -> bool:
        """Whether the reference, at its own precision, tells one output from another: it is finite, and its error is
        small against how much the true output varies."""
        return self.finite and self.scale.size > 0 and self.own <= rule.MEANINGFUL * self.scale.spread

    @property
    def resolvable(self) -> bool:
        """Whether an honest kernel can be asked for `rule.SENSE`: even a plain running sum keeps to it."""
        return self.drift <= rule.SENSE * self.scale.spread

    def sensible(self) -> Yardstick:
        """The same with the limit of `rule.SENSE`, and none for single rows and elements."""
        limits = Tolerances(max(self.limits.norm, rule.SENSE * self.scale.spread))
        return replace(self, limits=limits, signature=None, grid=None)

    def sensible_in_rows(self) -> Yardstick:
        """The same, and for each row that errs by more than rounding the same limit, of its own size. Not in 16 bits,
        where what magnifies rounding may take all of a single row; nor where a row's errors may be its neighbour's."""
        sensible = self.sensible()
        if self.level.bits < FLOAT32.bits or "transformed" in self.kinds:
            return sensible
        return replace(sensible, limits=replace(sensible.limits, share=rule.SENSE, rows=self.limits.row))

    def as_a_whole(self) -> Yardstick:
        """The same with no limit of its own for some of the output, nor for errors that rows share."""
        limits = replace(self.limits, bulk=math.inf, small=math.inf, shared=math.inf, apart=math.inf)
        return replace(self, limits=limits, whole=True)

    def as_seen(self, known: list[Errors]) -> Yardstick:
        """The same with limits of rows and elements by more `known` errors of the reference's own runs."""
        seen = _limits(self.limits.norm, self.base, known, self.scale)
        mine = self.limits
        wider = {name: max(getattr(mine, name), getattr(seen, name)) for name in OF_PLACES}
        return replace(self, limits=replace(mine, **wider))

    def no_less(self, norm: float) -> Yardstick:
        """The same with a limit of at least `norm`, and none for single rows and elements where that is more."""
        if norm <= self.limits.norm:
            return self
        return replace(self, limits=Tolerances(norm), signature=None, grid=None)


@dataclass(frozen=True)
class Runs:
    """One floating leaf of the reference's outputs, of `dtype`, in several runs: `exact` whole and widened, of the
    others the same `part`, in a dtype that holds theirs. `jittered` by one unit in the last place, `further` by
    `rule.FURTHER` of them; `moved` with parameters and what is rounded to integers, too, each run when it is asked for.
    `smooth`: in float64, without rounding to a grid; None where nothing is rounded so. `unrounded` is whether all of
    the native output is the exact one, `may_jump` whether jumps are looked for.

    `lowered` (with products in a format), `coarsened` (from inputs and parameters rounded to it), `strict` and
    `added_up` (`exact.ExactReference` has them) run the reference when they are asked, and answer None where it cannot
    run that way. `finite` is whether all of the native output is.
    """

    exact: torch.Tensor
    part: Part
    native: torch.Tensor
    finite: bool
    unrounded: bool
    dtype: torch.dtype
    lowered: Callable[[Format], torch.Tensor | None]
    coarsened: Callable[[Format], torch.Tensor | None]
    strict: Callable[[], torch.Tensor | None]
    added_up: Callable[[], torch.Tensor | None] = lambda: None
    composed: torch.Tensor | None = None
    permitted: torch.Tensor | None = None
    jittered: tuple[torch.Tensor, ...] = ()
    further: Callable[[], tuple[torch.Tensor, ...]] = tuple
    smooth: torch.Tensor | None = None
    moved: Callable[[], Iterator[torch.Tensor]] = lambda: iter(())
    may_jump: bool = True

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Runs:
        """The same with every output changed that the reference has with its rounding."""

        def one(output: torch.Tensor | None) -> torch.Tensor | None:
            return None if output is None else change(output)

        return replace(
            self,
            native=change(self.native),
            lowered=lambda format: one(self.lowered(format)),
            coarsened=lambda format: one(self.coarsened(format)),
            strict=lambda: one(self.strict()),
            added_up=lambda: one(self.added_up()),
            composed=one(self.composed),
            permitted=one(self.permitted),
            jittered=tuple(map(change, self.jittered)),
            further=lambda: tuple(map(change, self.further())),
        )


def yardstick(runs: Runs, longest: Longest, allow: tuple[str, ...]) -> Yardstick:
    """The yardstick of one leaf; `longest` tells how long the sums behind it may be."""
    scale, part, format = scale_of(runs.exact), runs.part, format_of(runs.dtype)
    exact = part.of(runs.exact)

    def distance(output: torch.Tensor | None) -> float | None:
        return None if output is None else _distance(output, exact)

    # The rounding of a few elements may be anything up to the roundoff; that of many is known.
    few = runs.exact.numel() < SHORTEST_ROW
    share = 1.0 if few else ROUNDING_RMS
    floor = format.roundoff * scale.size * share + smallest(runs.dtype)
    own = _distance(runs.native, exact)
    tight = format.bits < FLOAT32.bits

    level, lower = format, next_lower(format)
    downgraded = None if tight or lower is None else distance(runs.lowered(lower))
    if downgraded is not None and _is_coarse(own, floor, downgraded, lambda: distance(runs.strict())):
        level, lower, tight = next_lower(format) or format, next_lower(level), True
        downgraded = None if lower is None else distance(runs.lowered(lower))
    permitted = distance(runs.permitted) or 0.0
    if permitted > own and not tight:
        # The next format after the permitted one is the first that tells of a lower precision.
        lower = next_lower(TF32)
    # What one rounding does to attention is known from the run that rounds its scores and weights.
    nudged = None if runs.composed is not None else runs.coarsened(nudge(runs.dtype))
    condition = (distance(nudged) or 0.0) / NUDGE
    base = max(own, floor, condition)
    base = max(base, _moved(runs, exact, base))
    if 1 < runs.exact.numel() < SHORTEST_ROW:
        scale = _each_by_itself(runs, exact, scale, base, nudged)

    unrounded = runs.unrounded and longest.any == 1
    # In float32, whatever narrower dtype the result has.
    roundoff = min(format.roundoff, FLOAT32.roundoff)
    unit = roundoff * max(scale.size, condition / format.roundoff)
    # Not of what one rounding of the inputs costs: the mean's distance from zero is in that already.
    one_pass = rule.serial_error(longest.any, roundoff * scale.size)
    facts = rule.Facts(
        own=max(own, floor),
        base=base,
        lowered=downgraded,
        composed=distance(runs.composed) or 0.0,
        permitted=permitted,
        sums=_sums(format, longest, scale, unit, one_pass * longest.lift, downgraded) * (rule.LUCK if few else 1.0),
        size=scale.size,
        axis=scale.axis,
        tight=tight,
        unrounded=unrounded,
    )
    expected = expected_errors(runs.dtype, scale, base)
    others = (runs.native, runs.composed, runs.permitted, nudged)
    known = [_errors(part, output, exact, scale, expected) for output in others if output is not None]
    if nudged is not None:
        # The last of them; it was moved by so many roundings.
        known[-1] = replace(known[-1], bulk=known[-1].bulk / NUDGE)
    furthest = max(errors.worst for errors in known) * base / floor
    if runs.may_jump and not few and furthest > SUSPECT:
        outliers = Outliers.of(exact, part.scale(scale), floor, runs.dtype)
        if _jumps(runs, outliers, nudged):
            share = float(outliers.left_out(runs.native).double().mean())
            left = replace(runs.changed(outliers.without), may_jump=False)
            return replace(yardstick(left, longest, allow), jumped=share)
    loose = {}
    for name in allow:
        error = distance(runs.coarsened(BY_NAME[name]))
        if error is not None:
            # A kernel in that format rounds its result to it as well, before it is cast to the output's dtype.
            error = max(error, ROUNDING_RMS * BY_NAME[name].roundoff * scale.size)
            loose[name] = _limits(rule.limit_allowed(facts, error), base, known, scale)
    limits = _limits(rule.limit(facts), base, known, scale)
    if longest.one_product and format is FLOAT32 and not tight and not permitted and not few:
        limits = _of_one_product(runs, exact, scale.center, limits, rule.SHARED * unit, floor)
    if format.bits < FLOAT32.bits and longest.product > 1 and exact.numel() >= rule.SMALL_LEAST:
        moved = rule.SMALL_MOVED_ALONE if longest.one_product else rule.SMALL_MOVED
        limits = _of_small_elements(runs, exact, limits, base, nudged, moved)
    # A few elements that are far larger than all others are hardly ever in the part, and err by as much more.
    seen = _rms_of_finite(exact)
    if seen and seen < scale.size:
        limits = replace(limits, norm=limits.norm * scale.size / seen)
    made = Yardstick(
        numel=runs.exact.numel(),
        scale=scale,
        own=own,
        floor=floor,
        base=base,
        lowered=downgraded,
        level=level,
        drift=max(rule.drift(longest.any, unit), one_pass * longest.most_lift),
        # To products, what tensor cores cut off is allowed on any inputs; of longer ones a running sum loses more.
        heaped=longest.any if longest.any > min(longest.product, rule.HEAPED_PRODUCTS) else 0,
        kinds=longest.kinds,
        limits=limits,
        loose=loose,
        expected=expected,
        finite=runs.finite,
        unrounded=unrounded,
        signature=None if tight or lower is None else _signature(runs, lower, max(base, permitted)),
        grid=None if runs.smooth is None else _grid(runs, runs.smooth),
    )
    # A kernel by way of Fourier's transform errs everywhere by the largest numbers.
    return made.as_a_whole() if "transformed" in made.kinds else made


def _of_one_product(
    runs: Runs, exact: torch.Tensor, center: float, limits: Tolerances, shared: float, floor: float
) -> Tolerances:
    """The limits with those of what errors of one product have in common and have not, at the end of the computation:
    what comes there of an error of each element's own."""
    added_up, length = runs.added_up(), lines(runs.exact)[1]
    true = runs.part.in_lines(exact, length)
    if added_up is None or true is None:
        return limits
    own, its = (sizes(run.to(exact.device).reshape(true.shape), true, center) for run in (runs.native, added_up))
    return replace(
        limits,
        shared=max(shared, rule.SPREAD * own.shared, its.shared),
        apart=max(its.apart, rule.SPREAD * own.apart, rule.HONEST * floor),
    )


def _of_small_elements(
    runs: Runs, exact: torch.Tensor, limits: Tolerances, base: float, nudged: torch.Tensor | None, moved: float
) -> Tolerances:
    """The limits with that of the smallest elements' errors, by what the reference's own runs show there, or so many
    times what inputs that were rounded once more do."""
    some = exact.reshape(-1)[sample(exact.numel(), exact.device, PAIRS)].abs().nan_to_num(math.inf)
    some = some[some > 0]
    # Of a product that is masked, or cut off below, as much as of others.
    if len(some) * exact.numel() < rule.SMALL_LEAST * min(PAIRS, exact.numel()):
        return limits
    size = float(some.quantile(rule.SMALL_SHARE))
    within = is_small(exact, size)
    if not math.isfinite(size) or not bool(within.any()):
        return limits

    def shown(run: torch.Tensor) -> float:
        return rms((run.to(exact.device) - exact)[within].nan_to_num(0.0, 0.0, 0.0))

    others = (runs.native, runs.composed, *runs.jittered)
    most = rule.SMALL * max(shown(run) for run in others if run is not None)
    if nudged is not None:
        most = max(most, moved * shown(nudged) / NUDGE)
    return replace(limits, small=max(most, base), small_size=size)


def _jumps(runs: Runs, outliers: Outliers, nudged: torch.Tensor | None) -> bool:
    """Whether the output jumps at some elements. What is made anyway is looked at first: where nothing is far off in
    it, or what is lies anywhere when the inputs are rounded, no further runs are made."""
    mask = outliers.suspected(runs.native)
    if mask is not None:
        may = nudged is None or outliers.gone(runs.native, mask, nudged) >= MOST
        return may and outliers.jumps(runs.native, mask, runs.moved())
    mask = None if nudged is None else outliers.suspected(nudged)
    if nudged is None or mask is None or outliers.gone(nudged, mask, runs.native, NEARER) < NEARLY_ALL:
        return False
    return outliers.jumps(nudged, mask, runs.moved())


def _moved(runs: Runs, exact: torch.Tensor, known: float) -> float:
    """What one rounding of the inputs does to the output; nothing where it is far more than the `known` errors and no
    less than what many roundings do: the inputs then were no rounded numbers."""
    one = max((_distance(output, exact) for output in runs.jittered), default=0.0)
    if one <= rule.JUMP * known:
        return one
    more = max((_distance(output, exact) for output in runs.further()), default=math.inf)
    return one if more >= rule.GROWS * one else 0.0


def _each_by_itself(runs: Runs, exact: torch.Tensor, scale: Scale, base: float, nudged: torch.Tensor | None) -> Scale:
    """The scale of a few elements, each as large as its errors in the reference's own runs: a sum and a mean side by
    side have sizes of their own, which so few numbers do not show."""
    runs_of = [runs.native, *runs.jittered, *(one for one in (runs.composed, runs.permitted) if one is not None)]
    errors = [_off(output, exact) for output in runs_of]
    if nudged is not None:
        errors.append(_off(nudged, exact) / NUDGE)
    roundoff, sizes = format_of(runs.dtype).roundoff, exact.abs().nan_to_num(0.0, 0.0, 0.0)
    each = torch.stack([*errors, sizes * roundoff]).amax(0)
    # One alone may be near by luck, but not most of them.
    share = (each / sizes)[sizes > 0].median() if bool((sizes > 0).any()) else 0.0
    each = torch.maximum(each, rule.LUCK * share * sizes).double().reshape(-1)
    # What is exactly zero says nothing about errors there.
    each = torch.where(each < roundoff**2 * scale.size, roundoff * scale.size, each)
    # So that `error.expected_errors` expects just that.
    return replace(scale, row=torch.full_like(scale.row, scale.level), col=each * (2 * scale.level / base))


def _off(output: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return (output.to(exact.device) - exact).abs().nan_to_num(0.0, 0.0, 0.0)


def _limits(norm: float, base: float, known: list[Errors], scale: Scale) -> Tolerances:
    """The limits of all measures, given that of the norm: no further from it than `rule.SPREAD` times what the
    reference's own runs show. Of a few elements, each is held to what its own errors are (`_each_by_itself`)."""
    if (numel := scale.row.numel() * scale.col.numel()) < SHORTEST_ROW:
        return Tolerances(norm) if numel == 1 else Tolerances(norm, worst=rule.SPREAD * norm / base)
    bulk = rule.bulk_limit(scale.bulk / rule.BULK_WIDTH, max((errors.bulk for errors in known), default=0.0))

    def most(name: str, least: float) -> float:
        # The errors of a run that hits the exact output almost everywhere, or where it is largest, are not spread as
        # others are: they are taken for those of a run that errs by the base.
        shapes = [
            getattr(errors, name) / (errors.norm if errors.norm >= 0.3 * base else base)
            for errors in known
            if not errors.broken
        ]
        return rule.SPREAD * norm * max([least / base, *shapes])

    return Tolerances(
        norm,
        most("scaled", rule.LEAST_SCALED),
        most("row", rule.LEAST_ROW),
        most("worst", rule.LEAST_WORST),
        bulk=bulk,
    )


def _is_coarse(own: float, floor: float, downgraded: float, strict: Callable[[], float | None]) -> bool:
    """Whether the reference computes in a lower precision than its output's dtype, as convolutions do under TF32.

    Suspected where rounding its inputs hardly hurts it; shown where it does far better in plain float32.
    """
    if own <= rule.COARSE * floor or 2 * own <= downgraded:
        return False
    error = strict()
    return error is not None and own > rule.COARSE * max(floor, error)


def _sums(
    format: Format, longest: Longest, scale: Scale, unit: float, one_pass: float, downgraded: float | None
) -> float:
    """The error of honest ways to add up results of that scale, where one rounding costs `unit`.

    A variance in one pass may lose more, as long as that is less than a lower precision would lose.
    """
    if downgraded is not None:
        one_pass = min(one_pass, downgraded / rule.DOWNGRADE)
    variation = scale.spread if scale.spread <= rule.SMALL_PART * scale.size else 0.0
    serial = max(rule.serial_error(longest.any, unit, variation), one_pass)
    return max(serial, rule.tensor_core_error(longest.product, scale.size)) if format is FLOAT32 else serial


def _distance(output: torch.Tensor, exact: torch.Tensor) -> float:
    """Root mean square distance, over the elements where both are finite."""
    found = _rms_of_finite(output.to(exact.device) - exact)
    return math.inf if found is None else found


def _rms_of_finite(tensor: torch.Tensor) -> float | None:
    """Root mean square of the finite elements; None where there is none."""
    whole = rms(tensor)
    if tensor.numel() and math.isfinite(whole):
        return whole
    # A copy of them takes as long as ten readings.
    finite = torch.isfinite(tensor)
    return rms(tensor[finite]) if bool(finite.any()) else None


def _errors(part: Part, output: torch.Tensor, exact: torch.Tensor, scale: Scale, expected: Expected) -> Errors:
    return measure(output.to(exact.device), exact, part.scale(scale), expected)


def _signature(runs: Runs, lower: Format, base: float) -> Signature | None:
    """Kept where rounding moves the output enough to be seen above the errors to expect anyway."""
    output = runs.lowered(lower)
    if output is None or runs.exact.numel() < rule.SIGNATURE_LEAST:
        return None
    moved = (widened(output) - widened(runs.native)).double()
    moved = torch.nan_to_num(moved, nan=0.0, posinf=0.0, neginf=0.0)
    if rms(moved) < rule.SIGNATURE_ABOVE * base:
        return None
    exact = runs.part.of(runs.exact).to(moved.device).double()
    return Signature(lower, runs.part.positions.reshape(-1), exact.reshape(-1), moved.reshape(-1))


def _grid(runs: Runs, smooth: torch.Tensor) -> Grid | None:
    """Kept where leaving the rounding out would show, and the reference itself is nearer to the exact output."""
    if runs.exact.numel() < rule.GRID_LEAST or is_eight_bits(runs.dtype):
        # Each number of such an output has to be the nearest one.
        return None
    exact = runs.part.of(runs.exact).double()
    moved = (smooth.to(exact.device).double() - exact).nan_to_num_(0.0, 0.0, 0.0).reshape(-1)
    square = float(moved @ moved)
    if not math.isfinite(square) or not square:
        return None
    off = (runs.native.to(exact.device).double() - exact).nan_to_num_(0.0, 0.0, 0.0).reshape(-1)
    grid = Grid(runs.part.positions.reshape(-1), exact.reshape(-1), moved, math.inf, 0.0)
    own = grid.on_the_way(off)
    if own > rule.GRID_BLURRED:
        return None
    return replace(grid, most=max(rule.GRID, (1 + own) / 2), noise=max(0.0, grid.off_grid(off)))
