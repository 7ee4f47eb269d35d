"""Integer and boolean outputs: exact, but for decisions that rounding makes.

An index from argmax or sort may differ between two right answers where the values it chooses between are nearer to
each other than rounding. Where the index comes straight out of such an operator, the float64 values themselves are
looked up and compared. Elsewhere (thresholds, rounding to integers) an element is undecided if the reference changes
its own mind when its inputs, its parameters and what it rounds to integers move by a few roundings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle.choices import CHOOSERS, dimension
from harness.oracle.chunks import Cut
from harness.oracle.exact import ExactReference
from harness.oracle.float64 import Operation
from harness.oracle.formats import FLOAT32, format_of
from harness.oracle.rule import TIGHT
from harness.oracle.slices import counted
from harness.oracle.structure import flatten

# Operators whose index is into so many last dimensions of their operand, as one.
_POOLS: dict[str, int] = {
    "aten::max_pool2d_with_indices": 2,
    "aten::max_pool3d_with_indices": 3,
    "aten::adaptive_max_pool2d": 2,
    "aten::adaptive_max_pool3d": 3,
    "aten::fractional_max_pool2d": 2,
    "aten::fractional_max_pool3d": 3,
}

# Values chosen between may each be off by rounding of themselves, once more where they are added up in another order,
# and by what the reference shows beyond that; the largest of many such errors is about six times their root mean
# square.
TIE_ROUNDINGS, TIE = 4.0, 8.0
# Values so many times as large as what is chosen take no part: a mask's fill value may be any number.
FAR = 64.0
# Inputs moved by up to this many units in the last place, so many times. In float32 sound sums differ by tens of
# roundings; in 16 bits by one or two.
JITTER = {True: 2, False: 16}
DRAWS = 12
# Rounding makes the reference itself differ from float64 at about one in 50 of the elements that jitter changes. Where
# it does at fewer than one in so many, and jitter changes more than a small share of all, exact numbers were moved, and
# nothing is excused.
SMALL_SHARE, OWN_SHARE = 20, 256
# Values that are looked at together.
BLOCK = 1 << 24
# So few elements that are not explained by moving inputs are looked at by moving each operation's result.
FEW_LEFT, FEW_LEFT_SHARE = 4, 1e-4
# Of outputs with no more elements, what jitter shows is kept for the next answer to the same inputs.
KEPT_ELEMENTS = 1 << 22
# A decision at the edge of what rounding does may be missed: one in so many may, and only by one.
MISSED = 10


# For an expectation, by path and number of the kind of jitter: the least and the largest of each element's values.
Spans = dict[tuple[str, int], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Choice:
    """A choosing operator's operand in float64 (`values`) and as it is (`own`, with its `roundoff`), and the dimension
    (None: of the flattened operand). `unique`: no index comes twice; `stable`: equal values keep their order."""

    values: torch.Tensor
    own: torch.Tensor
    roundoff: float
    dim: int | None
    unique: bool
    stable: bool


def mismatches(got: torch.Tensor, exact: torch.Tensor, native: torch.Tensor) -> torch.Tensor:
    """A mask of the elements that equal neither the float64 reference nor the reference at its own precision."""
    return (got != exact.to(got.device)) & (got != native)


def excused(
    reference: ExactReference,
    inputs: list[Any],
    seed: int,
    path: str,
    got: torch.Tensor,
    exact: torch.Tensor,
    native: torch.Tensor,
    spans: Spans,
    cut: Cut | None = None,
) -> torch.Tensor:
    """A mask of the elements of the output at `path` where any right answer may differ (see the module's text).

    With a `cut` the reference runs in float64 on one slice of the batch after the other. `spans` are those of these
    inputs, as far as they are known, and take what is found out.
    """
    exact = exact.to(got.device)
    tied, own = torch.zeros(2, *got.shape, dtype=torch.bool, device=got.device)
    for start, some in [(0, inputs)] if cut is None else cut.parts(inputs):
        here = ... if cut is None else slice(start, start + cut.step)
        if torch.equal(got[here], exact[here]) and torch.equal(native[here], exact[here]):
            continue
        choice = _choice(reference, some, seed, path)
        if choice is None:
            return _undecided(reference, inputs, seed, path, got, exact, native, spans)
        for ties, one in ((tied, got), (own, native)):
            ties[here] = _ties(choice, one[here], exact[here])
    left = mismatches(got, exact, native) & ~tied
    # A choice before this one (of groups, then of what is in them) may be rounding's, and all behind it with that.
    return tied | left if int(left.sum()) <= TIGHT * int((~own & (native != exact)).sum()) else tied


def not_nearest(
    reference: ExactReference,
    inputs: list[Any],
    seed: int,
    path: str,
    got: torch.Tensor,
    exact: torch.Tensor,
    native: torch.Tensor,
    spans: Spans,
) -> torch.Tensor:
    """A mask of the elements of an output in 8-bit floats that are neither the number nearest to the float64 one nor
    the reference's own, where rounding does not decide: of so few numbers the next one is half as far as a digit less.
    """
    wanted = exact.to(got.device, got.dtype)
    wrong = mismatches(_whole(got), _whole(wanted), _whole(native))
    if bool(wrong.any()):
        wrong &= ~_undecided(reference, inputs, seed, path, got, wanted, native, spans)
    return wrong


def furthest(got: torch.Tensor, exact: torch.Tensor) -> int:
    """By how many numbers of its format an 8-bit floating output is off at most."""
    return int((_whole(got) - _whole(exact.to(got.device, got.dtype))).abs().max())


def _whole(leaf: torch.Tensor) -> torch.Tensor:
    """Integers as they are, 8-bit floats counted from zero on in the order of their values."""
    if not leaf.is_floating_point():
        # Unsigned numbers of 16 bits and more cannot be compared with others.
        return leaf.to(torch.int64)
    bits = leaf.contiguous().view(torch.uint8).to(torch.int64)
    return torch.where(bits >= 128, 128 - bits, bits)


def _choice(reference: ExactReference, inputs: list[Any], seed: int, path: str) -> Choice | None:
    """The operator whose index the output at `path` is, in float64 and native runs alike."""
    keep = frozenset(CHOOSERS) | frozenset(_POOLS)
    exact = _maker(*reference.recorded(inputs, seed, True, keep), path)
    native = _maker(*reference.recorded(inputs, seed, False, keep), path)
    if exact is None or native is None:
        return None
    wide, narrow = exact.args[0], native.args[0]
    if wide.shape != narrow.shape:
        return None
    roundoff = format_of(narrow.dtype).roundoff if narrow.is_floating_point() else 0.0
    if exact.name in _POOLS:
        wide, narrow = wide.flatten(-_POOLS[exact.name]), narrow.flatten(-_POOLS[exact.name])
        return Choice(wide, narrow, roundoff, -1, unique=False, stable=False)
    dim = dimension(exact.name, exact.args, exact.kwargs)
    unique = exact.name in ("aten::topk", "aten::sort", "aten::argsort")
    return Choice(wide, narrow, roundoff, dim, unique, bool(exact.kwargs.get("stable")))


def _maker(output: Any, seen: list[Operation], path: str) -> Operation | None:
    leaf = dict(flatten(output)).get(path)
    if not isinstance(leaf, torch.Tensor):
        return None
    # Unsigned numbers of 16 bits and more cannot be compared with others.
    leaf = leaf.to(torch.int64)
    for operation in reversed(seen):
        index = _index(operation)
        # Perhaps in another dtype or shape.
        if index is None:
            continue
        if index.numel() == leaf.numel() and torch.equal(index.long().reshape(leaf.shape), leaf):
            return operation
        if any(one.shape == leaf.shape and torch.equal(one.long(), leaf) for one in _ends(operation, index, leaf)):
            return operation
    return None


def _ends(operation: Operation, index: torch.Tensor, leaf: torch.Tensor) -> list[torch.Tensor]:
    """The first and the last of an index along its dimension, as many as the leaf has, where that has fewer."""
    dim = dimension(operation.name, operation.args, operation.kwargs) if operation.name in CHOOSERS else None
    if dim is None or not leaf.dim() == index.dim() == operation.args[0].dim():
        return []
    if not 0 < leaf.shape[dim] < index.shape[dim]:
        return []
    count, length = leaf.shape[dim], index.shape[dim]
    return [index.narrow(dim, start, count) for start in (0, length - count)]


def _index(operation: Operation) -> torch.Tensor | None:
    """The index that an operator gives; none where it gives the value alone, as `max` of a whole tensor does."""
    result = operation.result
    if operation.name.startswith("aten::arg"):
        return result if isinstance(result, torch.Tensor) else None
    return result[1] if isinstance(result, (tuple, list)) and len(result) > 1 else None


def _ties(choice: Choice, got: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Where an index is not the exact one and the values that it and that one point to count as equal."""
    values, own = choice.values, choice.own
    dim = choice.dim
    if dim is None:
        values, own, dim = values.reshape(-1), own.reshape(-1), 0
    length = values.shape[dim]
    # An index without its dimension (argmax) gets it back, so that both fit.
    shape = list(values.shape)
    shape[dim] = got.numel() * length // max(1, values.numel())
    # (..., length) and (..., indices): each row by itself.
    values, own = (one.movedim(dim, -1) for one in (values, own))
    given, right = (one.reshape(shape).movedim(dim, -1) for one in (got, exact))
    # Numbers that are known exactly are in the order that was asked for.
    exactly = choice.stable and not bool((own != values).any())
    tied = torch.zeros_like(given, dtype=torch.bool)
    rows = (given != right).any(-1).nonzero()
    for some in rows.split(max(1, BLOCK // max(1, length))):
        at = tuple(some.T)
        tied[at] = _tied_rows(choice, values[at], own[at], given[at], right[at], exactly)
    return tied.movedim(-1, dim).reshape(got.shape)


def _tied_rows(
    choice: Choice, values: torch.Tensor, own: torch.Tensor, given: torch.Tensor, right: torch.Tensor, exactly: bool
) -> torch.Tensor:
    """Which of the indices `given` for rows of values may stand in place of the right ones."""
    inside = (given >= 0) & (given < values.shape[-1])
    chosen = values.gather(-1, given.clamp(0, values.shape[-1] - 1).long())
    wanted = values.gather(-1, right.long())
    tied = torch.zeros_like(inside) if exactly else chosen == wanted
    if choice.roundoff:
        margin = _margin(choice, values, own.to(values.dtype), chosen, wanted)
        # Equal ones that are known exactly are as far apart as nothing, which is no margin.
        tied |= ((chosen - wanted).abs() <= margin) & (margin > 0 if exactly else True)
    if choice.unique:
        ordered, order = given.sort(-1)
        again = torch.zeros_like(tied)
        again[..., 1:] = ordered.diff(dim=-1) == 0
        tied &= ~torch.zeros_like(tied).scatter(-1, order, again)
    return tied & inside


def _margin(
    choice: Choice, values: torch.Tensor, own: torch.Tensor, chosen: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    """Within which two values of a row count as equal; nothing where the reference knows them exactly."""
    size = values.abs()
    far = size > FAR * right.abs().amax(-1, keepdim=True)
    off = (own - values).abs().masked_fill_(far | ~torch.isfinite(own) | ~torch.isfinite(values), 0.0)
    inexact = (off > 0).any(-1, keepdim=True)
    beyond = (off - choice.roundoff * size).clamp_min_(0.0)
    error = (beyond.square().sum(-1, keepdim=True) / (~far).sum(-1, keepdim=True).clamp_min(1)).sqrt()
    rounding = choice.roundoff * torch.maximum(chosen.abs(), right.abs())
    # Of two infinities, or of one, no difference is small.
    return torch.where(inexact, TIE_ROUNDINGS * rounding + TIE * error, 0.0).nan_to_num_(0.0, 0.0, 0.0)


def _undecided(
    reference: ExactReference,
    inputs: list[Any],
    seed: int,
    path: str,
    got: torch.Tensor,
    exact: torch.Tensor,
    native: torch.Tensor,
    spans: Spans,
) -> torch.Tensor:
    """Where the native output changes under jitter, and `got` is among or between the values seen."""
    narrow = format_of(reference.precision(inputs)).bits < FLOAT32.bits
    given, exact = _whole(got), _whole(exact)
    differs = _whole(native) != exact
    found = torch.zeros_like(differs)
    # 16-bit numbers that are widened before they are divided and rounded are exact there: only the steps round. And
    # where a loop magnifies it, what each operation's own rounding does is more than what the inputs' does.
    kinds = (
        (reference.jittered_throughout, JITTER[narrow]),
        (reference.jittered_steps, JITTER[False]),
        (reference.jittered_everywhere, 1),
    )
    for at, (run, ulps) in enumerate(kinds):
        low, high = spans.get((path, at), (exact, exact))
        if (path, at) not in spans:
            for draw in range(DRAWS):
                seen = _whole(dict(flatten(run(inputs, ulps, seed, draw)))[path])
                low, high = torch.minimum(low, seen), torch.maximum(high, seen)
            if low.numel() <= KEPT_ELEMENTS:
                spans[path, at] = low, high
        if not _is_no_rounding(low < high, differs):
            found = found | _seen(given, exact, low, high)
            # Many are no rounding of a loop's, and to run it so takes long.
            if not 0 < counted((given != exact) & ~found) <= max(FEW_LEFT, FEW_LEFT_SHARE * found.numel()):
                break
    return found


def _seen(given: torch.Tensor, exact: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Where what is given is among or between the values seen, and a few of many such: just beside these, or anywhere
    where several were seen, since what a loop magnifies has no bounds."""
    moves = low < high
    between = moves & (given >= low) & (given <= high)
    missed = (given != exact) & ~between & (moves | ((given >= low - 1) & (given <= high + 1)))
    known = int((between & (given != exact)).sum())
    return between | missed if int(missed.sum()) * MISSED <= known else between


def _is_no_rounding(moves: torch.Tensor, differs: torch.Tensor) -> bool:
    """Whether jitter changes (`moves`) far more elements than rounding explains, by where the reference `differs` from
    float64."""
    count, own = int(moves.sum()), int(differs.sum())
    return count * SMALL_SHARE > moves.numel() and count >= 4 * OWN_SHARE and own * OWN_SHARE < count
