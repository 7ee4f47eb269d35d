"""What to expect of some inputs: the exact output, the reference's own, and a yardstick for each floating leaf."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from harness.errors import AssayError
from harness.oracle.choices import Chosen
from harness.oracle.chunks import Cut
from harness.oracle.error import Part
from harness.oracle.exact import ExactReference
from harness.oracle.fills import NONE, Fills, find
from harness.oracle.formats import FLOAT32, Format, all_finite, calculable, format_of, on_grid
from harness.oracle.indices import JITTER, Spans
from harness.oracle.lengths import ODD
from harness.oracle.outliers import RUNS
from harness.oracle.rule import FURTHER
from harness.oracle.slices import SHORTEST_ROW, counted, matrix, real, tiles, wide_dtype
from harness.oracle.structure import flatten, places, tensors, unsupported
from harness.oracle.yardstick import Runs, Yardstick, yardstick

# Runs with inputs moved by a unit in the last place, for outputs whose own error may be small by luck.
JITTERED = 4
# Of an integer leaf, a larger share of elements that float64 makes others says that rounding decides them.
MOST_UNDECIDED = 1 / 64


class InvalidReference(AssayError):
    """The problem cannot be used for judging: `reason` is a word, `str()` a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def require_form(known: list[str], output: Any) -> None:
    """Require the leaves of an output of the reference to be at the `known` places. Raises InvalidReference."""
    if places(output) != known:
        why = "the output's keys or lengths depend on values, or change from call to call"
        raise InvalidReference("contract", f"{why}, so that nothing can be compared call by call")


@dataclass(frozen=True)
class Expectation:
    """What to expect of `inputs`, which must stay as they are until the last check. Leaves by path.

    native: the reference's output at the problem's precision. exact: float64 results, the floating ones as
    `error.widened` gives them, with infinities for fill values. yards: the yardstick of each floating leaf. where:
    device, chunked or host, `cut`: into what slices; precision: float64, or the most exact that was possible. empty:
    floating leaves that are nothing but zeros for drawn inputs, as a loss that is switched off. left_out: leaves that
    nothing is asked of. chosen: what the reference chooses by order; chooses: whether it chooses any number so;
    compares: whether it matters to it which numbers are equal.
    odd: what it does on these inputs that no answer should hang on (lengths.ODD). nearest: 8-bit floats have to be the
    nearest ones. spans: what of integers rounding decides, as far as that was looked into.
    """

    inputs: list[Any]
    seed: int
    native: Any
    exact: dict[str, Any]
    yards: dict[str, Yardstick]
    where: str
    precision: str
    empty: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    chosen: frozenset[Chosen] = frozenset()
    chooses: bool = False
    compares: bool = False
    odd: frozenset[str] = frozenset()
    nearest: bool = False
    cut: Cut | None = None
    spans: Spans = field(default_factory=dict)

    @property
    def meaningful(self) -> bool:
        """Whether the reference itself gets an answer on these inputs: finite, and well apart from its error."""
        telling = [yard for path, yard in self.yards.items() if path not in self.empty]
        return all(yard.meaningful for yard in telling or self.yards.values())

    @property
    def signed(self) -> bool:
        """Whether vectors are found on the way whose signs are anybody's choice."""
        return any("signed" in yard.kinds for yard in self.yards.values())

    def as_far_as_decided(self) -> Expectation | None:
        """The same without integer and boolean leaves of which rounding decides too much: in float64 the reference
        gives others in more than a few places. Of equal numbers, each is above their mean or none is. None if no
        other leaf tells."""
        gone = {
            path
            for path, leaf in flatten(self.native)
            if path not in self.yards and isinstance(leaf, torch.Tensor) and leaf.numel()
            if _share_of_others(leaf, self.exact[path]) > MOST_UNDECIDED
        }
        if gone and not self.yards and gone >= {path for path, _ in flatten(self.native)}:
            return None
        return replace(self, left_out=self.left_out | gone)

    def without(self, some: Iterable[str]) -> Expectation | None:
        """The same without some floating leaves, where one overflows and another does not; None if no other tells.

        Leaves that are not floating may have come from those, and are left out with them.
        """
        gone = frozenset(some)
        if not gone:
            return self
        yards = {path: yard for path, yard in self.yards.items() if path not in gone}
        if not yards.keys() - self.empty:
            return None
        return replace(self, yards=yards, left_out=frozenset(path for path in self.exact if path not in yards))


def _share_of_others(leaf: torch.Tensor, exact: Any) -> float:
    if not isinstance(exact, torch.Tensor) or leaf.dtype.is_floating_point or leaf.is_complex():
        return 0.0
    return counted(leaf != exact.to(leaf.device)) / leaf.numel()


def number(leaf: Any, dtype: torch.dtype) -> torch.Tensor | None:
    """A floating or complex leaf as a tensor to calculate with, a Python float as a 0-d one of `dtype`; None for any
    other leaf."""
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=dtype)
    if isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex()):
        return calculable(leaf)
    return None


def expect(
    reference: ExactReference,
    inputs: list[Any],
    seed: int,
    allow: tuple[str, ...],
    fills: dict[str, Fills] | None = None,
    broken: dict[str, torch.Tensor] | None = None,
    native: Any = None,
    unrounded: frozenset[str] | None = None,
    jumping: frozenset[str] | None = None,
) -> Expectation:
    """Runs the reference: as it is, in float64, on coarser inputs, and in what other ways the output calls for.

    `fills` are the fill values of each floating leaf, `broken` tells where those of drawn inputs are NaN or infinite,
    and how (see `broken_in`); None: either is looked for. `native` is its output as it is, where that is known.
    `unrounded` names the leaves that are not rounded for drawn inputs, `jumping` those that jump; None: it is found
    out.
    """
    native = reference.native(inputs, seed) if native is None else native
    if fault := unsupported(native):
        raise InvalidReference("unsupported_output", f"the reference's {fault}")
    result = reference.exact(inputs, seed, native)
    form = places(native)
    require_form(form, result.output)
    exact, precision, cut, longest = dict(flatten(result.output)), result.precision, result.cut, result.longest
    where, attention = result.where, result.attention
    del result
    dtype = reference.precision(inputs)
    leaves = {path: tensor for path, leaf in flatten(native) if (tensor := number(leaf, dtype)) is not None}
    dtypes = {path: getattr(leaf, "dtype", dtype) for path, leaf in flatten(native) if path in leaves}
    for path in leaves:
        # Replaced one by one, so that two precisions of the whole output are never held at once.
        exact[path] = _widened(number(exact[path], torch.float64), dtypes[path])
    filled: dict[str, Fills] = {}
    for path, leaf in leaves.items():
        known = find(real(leaf), exact[path]) if fills is None else fills.get(path, NONE)
        if known:
            filled[path] = known
            exact[path] = known.lifted_exact(exact[path], real(leaf).to(exact[path].device))
    parts = {path: Part(exact[path]) for path, leaf in leaves.items() if leaf.numel()}
    # Where little is seen of the reference's own error: a few elements, or none known better than by itself.
    few = precision != "float64" or any(leaf.numel() < SHORTEST_ROW for leaf in leaves.values())

    def taken(run: Callable[[list[Any]], Any], cut: Cut | None = cut) -> dict[str, torch.Tensor] | None:
        """The part of each floating leaf that is kept of a run; None where the reference cannot run so."""
        found: dict[str, list[torch.Tensor]] = {path: [] for path in parts}
        for start, some in [(0, inputs)] if cut is None else cut.parts(inputs):
            try:
                output = run(some)
            except torch.OutOfMemoryError:
                raise
            except Exception:
                # Foreign code may raise anything.
                return None
            require_form(form, output)
            for path, part in parts.items():
                leaf = number(dict(flatten(output))[path], dtype)
                if leaf is None:
                    return None
                found[path].append(part.of(leaf) if cut is None else part.within(leaf, start, cut.split.size))
        kept = {path: parts[path].joined(pieces) for path, pieces in found.items()}
        for path, known in filled.items():
            kept[path] = known.lifted(kept[path], parts[path].of(leaves[path]))
        return kept

    # Not cut: each slice would be moved in the same way.
    @functools.cache
    def jittered(ulps: int) -> list[dict[str, torch.Tensor]]:
        runs = (
            taken(functools.partial(reference.jittered, ulps=ulps, seed=seed, draw=draw), None)
            for draw in range(JITTERED if few else 0)
        )
        return [run for run in runs if run is not None]

    # Each made when the first leaf asks for it.
    @functools.cache
    def moved_throughout(draw: int) -> dict[str, torch.Tensor] | None:
        ulps = JITTER[format_of(dtype).bits < FLOAT32.bits]
        return taken(functools.partial(reference.jittered_throughout, ulps=ulps, seed=seed, draw=draw), None)

    def moved(path: str) -> Iterator[torch.Tensor]:
        runs = (moved_throughout(draw) for draw in range(RUNS))
        return (run[path] for run in runs if run is not None)

    # Of integers and their like, sums and products are exact as well. Asked only where it matters: a card waits for it.
    @functools.cache
    def on_a_grid() -> bool:
        return any(on_grid(tensor) for tensor in tensors(inputs) if tensor.is_floating_point())

    def unrounded_there(path: str) -> bool:
        may_be = unrounded is None or path in unrounded
        return may_be and precision == "float64" and not on_a_grid()

    composed = taken(lambda some: reference.composed(some, seed)) if attention else None
    permitted = taken(lambda some: reference.permitted(some, seed)) if dtype is torch.float32 else None
    graded = precision == "float64" and "graded" in longest.kinds
    smooth = taken(lambda some: reference.smooth(some, seed)) if graded else None
    lowered = functools.cache(lambda format: taken(lambda some: reference.lowered(some, format, seed)))
    coarsened = functools.cache(lambda format: taken(lambda some: reference.coarsened(some, format, seed)))
    strict = functools.cache(lambda: taken(lambda some: reference.strict(some, seed)))
    added_up = functools.cache(lambda: taken(lambda some: reference.added_up(some, seed)))

    def leaf_of(run: dict[str, torch.Tensor] | None, path: str) -> torch.Tensor | None:
        return None if run is None else run[path]

    def runs(path: str) -> Runs:
        def lower(format: Format) -> torch.Tensor | None:
            return leaf_of(lowered(format), path)

        def coarser(format: Format) -> torch.Tensor | None:
            return leaf_of(coarsened(format), path)

        return Runs(
            exact=exact[path],
            part=parts[path],
            native=filled.get(path, NONE).lifted(parts[path].of(leaves[path])),
            finite=_as_finite(path, real(leaves[path]), exact[path], broken),
            unrounded=unrounded_there(path)
            and _unrounded(filled.get(path, NONE).lifted(real(leaves[path])), exact[path]),
            dtype=dtypes[path],
            lowered=lower,
            coarsened=coarser,
            strict=lambda: leaf_of(strict(), path),
            # Elements that should have a fill value, and have not, would count.
            added_up=lambda: None if path in filled else leaf_of(added_up(), path),
            composed=leaf_of(composed, path),
            permitted=leaf_of(permitted, path),
            jittered=tuple(run[path] for run in jittered(1)),
            further=lambda: tuple(run[path] for run in jittered(FURTHER)),
            smooth=leaf_of(smooth, path),
            moved=lambda: moved(path),
            may_jump=jumping is None or path in jumping,
        )

    yards = {path: yardstick(runs(path), longest, allow) for path in parts}
    yards |= {path: replace(yards[path], fills=known) for path, known in filled.items() if path in yards}
    return Expectation(
        inputs,
        seed,
        native,
        exact,
        yards,
        where,
        precision,
        chosen=frozenset(longest.chosen),
        chooses="choice" in longest.seen,
        compares="comparing" in longest.kinds,
        odd=ODD & longest.seen,
        cut=cut,
    )


def broken_in(output: Any) -> dict[str, torch.Tensor]:
    """Of each floating leaf that has any: where it is NaN (3) or infinite (1 or 2, by the sign), and not 0."""
    floating = {path: number(leaf, torch.float64) for path, leaf in flatten(output)}
    return {path: _kinds(real(leaf)) for path, leaf in floating.items() if leaf is not None and not _finite(leaf)}


def _finite(leaf: torch.Tensor) -> bool:
    return all_finite(real(leaf))


def _kinds(leaf: torch.Tensor) -> torch.Tensor:
    return leaf.isposinf().to(torch.int8).add_(leaf.isneginf(), alpha=2).add_(leaf.isnan(), alpha=3)


def _as_finite(path: str, native: torch.Tensor, exact: torch.Tensor, drawn: dict[str, torch.Tensor] | None) -> bool:
    """Whether a leaf is finite but for what belongs there: it is the same in float64, and was for `drawn` inputs.

    That is what a mask leaves, or a row with nothing in it. Nothing overflowed.
    """
    if all_finite(native):
        return True
    kinds = _kinds(native)
    if drawn is not None and not (path in drawn and torch.equal(kinds, drawn[path])):
        return False
    its = kinds != 0
    return torch.equal(kinds[its], _kinds(exact.to(native.device))[its])


def _unrounded(native: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether each of many numbers is the exact one, though `exact` resolves more digits. Of a computation's none is,
    or few by chance."""
    if native.numel() < SHORTEST_ROW or native.dtype is exact.dtype or native.dtype.itemsize == 1:
        return False
    own, right = matrix(native), matrix(exact)
    for block in tiles(own):
        y, x = right[block], own[block].to(right.device, right.dtype)
        if not bool(((x == y) | (x.isnan() & y.isnan())).all()):
            return False
    return True


def _widened(exact: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """As exact as an output of `dtype` is compared."""
    if exact is None:
        raise TypeError("the reference gives another kind of output in float64")
    return real(exact).to(wide_dtype(dtype))
