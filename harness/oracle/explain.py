"""Why an output was refused: reason, one sentence, figures.

May run the reference again, `RUNS` times at the most and none begun after `case.SECONDS`; never for a pass.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.oracle import patterns, precision, regions, rule
from harness.oracle.case import Case, Cause
from harness.oracle.error import distant, measure, wrong
from harness.oracle.expectation import expect
from harness.oracle.growth import growth
from harness.oracle.mistakes import search
from harness.oracle.running import running_sum
from harness.oracle.slices import coordinates, counted, real
from harness.oracle.structure import flatten, same
from harness.oracle.verdict import is_left_out, weigh

# Runs of the reference: the search, lower precisions, the other mode, a running sum, and another seed.
RUNS = search.MOST + precision.MOST + 3
# Below this share, wrong elements are counted.
RARE = 1e-3
# Above this share of wrong elements, the whole output is taken for something else.
MOSTLY = 0.3
# If no element exceeds the limit of the worst, elements this many times over what is expected count as wrong.
VISIBLE = 4.0
# Errors below this share of the variation are taken for rounding.
ROUNDED = 1e-3
ROUNDED_OPERANDS = "whole rows or columns err alike, as those of a product do whose operands are kept with fewer digits"
CENTRED_OPERANDS = (
    "each element by itself errs by more than adding up loses, as those of a product do whose operands are kept with "
    "fewer digits, without their means"
)
EIGHT_BITS = (
    "small elements err as much as large ones, as those of a product do whose operands have eight bits, and not as "
    "rounding to 16 bits does"
)
# What of a region's words says how many elements there are.
COUNTED = ("one_element", "few_elements")
# Measures other than the error of the whole, which may be within its limit.
OF_PARTS = {
    "scaled": "beside what is expected of each, elements err by",
    "row": "the worst row errs by",
    "worst": "the worst element errs by",
}
# Measures of how elements err together, which come last: no other one is over its limit.
TOGETHER = ("signature", "shared", "apart", "small", "grid")
RANDOM = "the reference draws random numbers as it runs, and these may come of others"
DRAW = "draw them with PyTorch's own functions, as many and in the same order"
# Of a refusal without a known cause.
UNKNOWN = "mismatch"


@dataclass(frozen=True)
class Explanation:
    """`reason` for the record, `message` for people, `evidence` JSON-able and bounded."""

    reason: str
    message: str
    evidence: dict[str, Any] = field(default_factory=dict)


def explain(case: Case) -> Explanation:
    """The explanation of a refused floating leaf. Raises nothing: whatever becomes of it, the refusal stands.

    Where memory does not do, a few entries of the batch are explained, if these are refused by themselves.
    """
    unexplained = ""
    for looked_at in (lambda: case, lambda: _of_few(case)):
        try:
            return _explained(looked_at())
        except Exception as error:
            # The search runs the reference, which is foreign code, in ways that nobody has tried.
            traceback.print_exc()
            unexplained = unexplained or type(error).__name__
            short_of_memory = isinstance(error, torch.OutOfMemoryError)
        if not short_of_memory:
            break
    message = f"{case.path}: why was not found out ({unexplained}); {_size(case)}"
    return Explanation("mismatch", message, {"path": case.path, "unexplained": unexplained})


def _of_few(case: Case) -> Case:
    """The same refusal of a few entries of the batch. Raises ValueError where these are not refused by themselves."""
    reference, expected = case.reference, case.expected
    few = reference.few(expected.inputs, expected.seed, expected.native)
    if few is None:
        raise ValueError("no few entries stand for the batch")
    some = expect(reference, few.inputs(expected.inputs), expected.seed, ())
    got = few.outputs(case.got)
    yard = some.yards[case.path]
    errors = measure(real(got), some.exact[case.path], yard.scale, yard.expected, None, yard.limits)
    weighed = weigh(got, errors, yard)
    if not weighed.refused:
        raise ValueError("a few entries of the batch are not refused")
    return Case(reference, some, case.path, got, weighed, case.earlier, case.poison)


def _explained(case: Case) -> Explanation:
    got = real(case.got)
    mask, worst = _wrong(case, got)
    region = regions.locate(mask)
    count = counted(mask)
    share = count / mask.numel()
    elements = _elements(got, case.exact, mask, worst)
    evidence = {"path": case.path, "shape": list(mask.shape), **elements}
    if case.weighed.refused not in TOGETHER:
        evidence["share_wrong"] = share
    if region.box:
        evidence["wrong_within"] = region.box
    cause = next(_causes(case, got, region, mask))
    where = f"{_share_of(count, mask.numel())} elements wrong"
    if not count:
        where = f"no single one of {mask.numel()} elements stands out"
    elif mask.numel() == 1:
        where = _told(elements["worst"])
    elif cause.clause == region.sentence and region.word in COUNTED:
        # It has said how many there are, and where if it is one.
        where = f"the worst {_told(elements['worst'])}" if count > 1 else _told({**elements["worst"], "index": []})
    elif share < MOSTLY or cause.reason == UNKNOWN:
        # Where most are wrong, a single one says less than the cause, if there is one.
        where += f" (the worst {_told(elements['worst'])})"
    parts = [f"{case.path}: {cause.clause}", where]
    if not case.weighed.errors.broken:
        parts.append(_size(case))
    if cause.mend:
        parts.append(f"the fix: {cause.mend}")
    return Explanation(cause.reason, "; ".join(parts), {**evidence, **cause.evidence})


def explain_other(path: str, got: torch.Tensor, exact: torch.Tensor, mask: torch.Tensor) -> Explanation:
    """The explanation of a refused integer or boolean leaf, whose wrong elements are those in `mask`."""
    region = regions.locate(mask)
    count = counted(mask)
    share = count / mask.numel()
    at = int(mask.reshape(-1).to(torch.uint8).argmax())
    first = _element(got, exact, at)
    evidence = {"path": path, "shape": list(mask.shape), "share_wrong": share, "first": first}
    evidence["wrong_within"] = region.box
    word = region.word or "integers"
    clause = region.sentence or "values differ"
    message = f"{path}: {clause}"
    if region.word not in COUNTED:
        message += f"; {_share_of(count, mask.numel())} {str(got.dtype).removeprefix('torch.')} elements wrong"
    told = _told({**first, "index": []}) if word == "one_element" else f"the first {_told(first)}"
    return Explanation(f"mismatch:{word}", f"{message}; {told}", evidence)


def _share_of(count: int, total: int) -> str:
    """In per cent, or how many where these are few."""
    return f"{count / total:.2%} of {total}" if count >= RARE * total else f"{count} of {total}"


def _wrong(case: Case, got: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Which elements are wrong, and the flat place of the worst.

    Those far over what is expected, if there are any; else those over it; else those over the limit of the measure
    that refused the output, of which there is always one. None where it is how they err together that tells: each is
    within its limits.
    """
    yard, refused = case.yard, case.weighed.refused
    if refused == "bulk":
        within = (case.exact - yard.scale.center).abs() <= yard.scale.bulk
        mask, worst = distant(torch.where(within, got, case.exact.to(got)), case.exact, yard.limits.bulk)
        return mask.reshape(got.shape), worst
    allowed = max(1.0, yard.limits.norm / yard.base)
    limits = [yard.limits.worst] if refused in TOGETHER else [min(yard.limits.worst, VISIBLE * allowed), allowed]
    if refused in ("worst", "row", "scaled"):
        limits.append(getattr(yard.limits, refused))
    if refused == "share":
        limits.append(yard.limits.rows)
    for limit in limits:
        mask, worst = wrong(got, case.exact, yard.scale, yard.expected, limit)
        if bool(mask.any()):
            break
    else:
        if refused == "norm":
            mask, worst = distant(got, case.exact, yard.limits.norm)
    return mask.reshape(got.shape), worst


def _size(case: Case) -> str:
    """How large the error is, beside the reference's own."""
    yard, spread = case.yard, case.yard.scale.spread or 1.0
    if case.weighed.refused == "bulk":
        share = case.weighed.errors.bulk * rule.BULK_WIDTH / yard.scale.bulk
        return f"error {share:.2g} of what the output varies by without its few far larger elements"
    unit = "size" if yard.scale.constant else "variation"
    error, own = case.weighed.errors.norm / spread, yard.own / spread
    said = f"error {error:.2g} of the output's {unit}, the reference's own error {own:.2g}"
    if case.weighed.refused in OF_PARTS:
        beyond = getattr(case.weighed.errors, case.weighed.refused) / getattr(yard.limits, case.weighed.refused)
        said += f"; {OF_PARTS[case.weighed.refused]} {beyond:.2g} times as much as may be"
    return said


def _causes(case: Case, got: torch.Tensor, region: regions.Region, mask: torch.Tensor) -> Iterator[Cause]:
    """All that fit, the surest and most specific ones first; each is looked for when it is asked for. `mask` marks the
    wrong elements, which `region` describes."""
    if (unwritten := _unwritten(case, got)) is not None:
        yield unwritten
    if case.yard.grid is not None and not case.weighed.errors.broken and is_left_out(case.yard.grid, got):
        yield Cause("mismatch:not_quantised", "what the reference rounds to a grid on the way is not rounded to it")
    if case.weighed.refused == "signature" and (found := precision.lower_precision(case)) is not None:
        yield found
    if case.weighed.refused in ("shared", "apart"):
        word = ROUNDED_OPERANDS if case.weighed.refused == "shared" else CENTRED_OPERANDS
        size = getattr(case.weighed.errors, case.weighed.refused)
        of_it = {f"{case.weighed.refused}_error_ratio": size / case.yard.unit}
        yield Cause("precision_downgrade", word, of_it, precision.SPLIT.format(level="float32"))
    if case.weighed.refused == "small":
        ratio = case.weighed.errors.small / case.yard.limits.small
        yield Cause("precision_downgrade", EIGHT_BITS, {"small_error_ratio": ratio}, "keep the operands in 16 bits")
    broken = bool(case.weighed.errors.broken)
    # If most elements are right, the place of the wrong ones says more than a pattern over all elements.
    mostly, placed = counted(mask) >= MOSTLY * mask.numel(), bool(region.word)
    pattern = patterns.recognise(got, case.exact) if mostly and not broken else None
    if mostly and not broken:
        yield from _something_else(case, got, pattern)
    else:
        yield from _other_mode(case)
    in_place = placed and not mostly and not broken and _right_elsewhere(case, got, mask)
    if not broken and not in_place and (found := precision.lower_precision(case)) is not None:
        yield found
    if broken:
        # NaN and infinities are what one sees; a mistake that overflows says why.
        here, why = _broken(got, mask, region), next(_mistake(case), None)
        yield (
            here
            if why is None
            else Cause(here.reason, f"{here.clause}, {why.clause}", {**here.evidence, **why.evidence})
        )
    yield from _mistake(case)
    if case.weighed.refused == "bulk":
        yield Cause("mismatch:bulk", "right at a few far larger elements, wrong at the others")
    if pattern is not None:
        yield Cause(f"mismatch:{pattern.word}", pattern.sentence, pattern.evidence)
    if (found := running_sum(case)) is not None:
        yield found
    if (grown := growth(got, case.exact)) is not None:
        yield Cause("mismatch:growing", grown.sentence, grown.evidence)
    if case.yard.unrounded and case.weighed.errors.norm < ROUNDED * case.yard.scale.spread:
        yield Cause("mismatch:rounded", "the reference rounds nothing here, and these numbers are rounded")
    if placed:
        yield Cause(f"mismatch:{region.word}", region.sentence, {}, region.mend)
    if _draws(case):
        yield Cause("mismatch:random", RANDOM, {}, DRAW)
    yield Cause(UNKNOWN, "no usual mistake fits, and size alone does not tell why")


def _draws(case: Case) -> bool:
    """Whether the reference gives another answer to the same inputs from another seed."""
    if time.monotonic() > case.until:
        return False
    other = case.leaf(case.reference.native(case.expected.inputs, case.expected.seed + 1))
    if other is None:
        return False
    return not measure(other, case.exact, case.yard.scale, case.yard.expected).norm <= case.yard.limits.norm


def _right_elsewhere(case: Case, got: torch.Tensor, mask: torch.Tensor) -> bool:
    """Whether the output would be within the limit of the norm but for its wrong elements. Where it is not, a few that
    stand out, and their place, do not say why it was refused."""
    mended = torch.where(mask, case.exact.to(got), got)
    return measure(mended, case.exact, case.yard.scale, case.yard.expected).norm <= case.yard.limits.norm


def _something_else(case: Case, got: torch.Tensor, pattern: patterns.Pattern | None) -> Iterator[Cause]:
    """What the output is in place of the right answer, but for a line through that: many mistakes are near one."""
    if pattern is not None and pattern.word in ("zeros", "constant"):
        yield Cause(f"mismatch:{pattern.word}", pattern.sentence, pattern.evidence)
    if case.earlier.holds(case.path, case.got, case.native):
        yield Cause("mismatch:earlier_output", "this is the right output for an earlier input")
    yield from _other_mode(case)
    for position, value in enumerate(case.expected.inputs):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and patterns.same_as(got, value, case.exact):
            yield Cause("mismatch:input_returned", f"this is input {position}")
    if pattern is not None and pattern.word not in patterns.LINES_THROUGH:
        yield Cause(f"mismatch:{pattern.word}", pattern.sentence, pattern.evidence)


def _unwritten(case: Case, got: torch.Tensor) -> Cause | None:
    """Elements that still hold the fill value, bit for bit, although the right answer is something else."""
    if case.poison is None or got.is_complex() or got.element_size() not in _BITS:
        return None
    integer = _BITS[got.element_size()]
    value = torch.tensor(case.poison, dtype=got.dtype, device=got.device)
    held = got.contiguous().view(integer) == value.view(integer)
    count = counted(held)
    if not count or count < 0.001 * got.numel():
        return None
    share = count / got.numel()
    if share > regions.WHOLE:
        return Cause("unwritten", "never written: it still holds the fill value", {"share_unwritten": share})
    place = regions.locate(held)
    word = f"unwritten:{place.word}" if place.word else "unwritten"
    clause = f"never written: {place.sentence or f'{share:.2%} of the elements'}"
    return Cause(word, clause, {"share_unwritten": share, "unwritten_within": place.box}, place.mend)


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _broken(got: torch.Tensor, wrong: torch.Tensor, region: regions.Region) -> Cause:
    """What the wrong elements are; some infinities may belong where they are."""
    nans, infinities = counted(torch.isnan(got) & wrong), counted(torch.isinf(got) & wrong)
    if not nans and not infinities:
        return Cause("mismatch:finite", "finite where the reference is NaN or infinite")
    word = "nan" if nans else "inf"
    everywhere = max(nans, infinities) >= regions.WHOLE * got.numel()
    place = f" in {region.sentence}" if region.sentence and not everywhere else ""
    clause = f"{'all' if everywhere else nans or infinities} elements are {'NaN' if nans else 'infinite'}{place}"
    reason = f"{word}:{region.word}" if region.word and not everywhere else word
    return Cause(reason, clause, {"nan": nans, "inf": infinities})


def _other_mode(case: Case) -> Iterator[Cause]:
    """That the output is right for the reference in the other mode, eval instead of train or the reverse."""
    training = case.reference.module.training
    try:
        other = case.reference.native(case.expected.inputs, case.expected.seed, training=not training)
    except Exception:
        return
    own = dict(flatten(case.expected.native))
    if all(same(leaf, own.get(path)) for path, leaf in flatten(other)):
        # The mode makes no difference.
        return
    if case.left_by(other) is not None:
        here, there = ("train", "eval") if training else ("eval", "train")
        yield Cause(f"mismatch:{there}_mode", f"matches the reference in {there} mode, not in {here} mode")


def _mistake(case: Case) -> Iterator[Cause]:
    """That the output is right for the reference with one kind of call exchanged."""
    reference, expected = case.reference, case.expected
    found = search.search(
        lambda mode: reference.native(expected.inputs, expected.seed, mode=mode),
        case.left_by,
        enough=2 * case.yard.unit,
        broken=bool(case.weighed.errors.broken),
        until=case.until,
    )
    if found is not None:
        evidence = {"exchanged": found.mistake.words, "reference": found.mistake.instead, "runs": found.runs}
        yield Cause("mismatch:exchanged", f"as PyTorch {found.words}", evidence)


def _elements(got: torch.Tensor, exact: torch.Tensor, mask: torch.Tensor, worst: int) -> dict[str, Any]:
    """The first wrong element and the worst one."""
    found = {"worst": _element(got, exact, worst)}
    if bool(mask.any()):
        found["first"] = _element(got, exact, int(mask.reshape(-1).to(torch.uint8).argmax()))
    return found


def _element(got: torch.Tensor, exact: torch.Tensor, flat: int) -> dict[str, Any]:
    index = [int(i) for i in coordinates(torch.tensor(flat), got.shape)] if got.dim() else []
    place = tuple(index)
    return {"index": index, "expected": _plain(exact[place]), "got": _plain(got[place])}


def _told(element: dict[str, Any]) -> str:
    both = (element["got"], element["expected"])
    got, expected = (f"{x:.6g}" if isinstance(x, float) else str(x) for x in both)
    if got == expected:
        got, expected = (f"{element[name]:.9g}" for name in ("got", "expected"))
    at = f"at {element['index']}: " if element["index"] else ""
    return f"{at}{got} in place of {expected}"


def _plain(value: torch.Tensor) -> Any:
    """A JSON value: NaN and infinities as words."""
    item = value.item()
    return str(item) if isinstance(item, float) and not math.isfinite(item) else item
