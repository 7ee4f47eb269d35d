"""Compares an output tree with an expectation, leaf by leaf; the first refusal decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.oracle import alike, indices, left_out, noise, regions
from harness.oracle.case import Case, Earlier
from harness.oracle.error import measure, wrong_at
from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation, number
from harness.oracle.explain import UNKNOWN, explain, explain_other
from harness.oracle.factor import slope
from harness.oracle.fast import Fast, quick
from harness.oracle.formats import is_of_eight_bits
from harness.oracle.jumps import decided_by_rounding, most_that_jumps
from harness.oracle.slices import counted, picked, real, rms, sample
from harness.oracle.structure import compare, flatten, same
from harness.oracle.verdict import Finding, Slope, Weighed, weigh
from harness.oracle.yardstick import OF_PLACES, Yardstick
from harness.records import Status

# Where nobody asks why an answer is wrong, so many elements of a large output are looked at first. One that is too far
# off refuses it, unless rounding decides it, as it may of a few (jumps.py); so many times as many are not few, nor by
# chance.
GLIMPSE = 1 << 16
NOT_FEW = 2


@dataclass(frozen=True)
class _Missed:
    """The elements of a leaf that should have its fill value, and have not, by `mask`."""

    got: torch.Tensor
    native: torch.Tensor
    mask: torch.Tensor

    def __str__(self) -> str:
        at = int(self.mask.reshape(-1).to(torch.uint8).argmax())
        got, native = (float(one.reshape(-1)[at]) for one in (self.got, self.native))
        count = f"{counted(self.mask)} of {self.mask.numel()} elements"
        return f"{count} are not the fill value that masked ones have: {got:g} in place of {native:g}"

    def evidence(self) -> dict[str, Any]:
        return {"share_wrong": counted(self.mask) / self.mask.numel(), "wrong_within": regions.locate(self.mask).box}


def full(
    reference: ExactReference, expected: Expectation, outputs: Any, earlier: Earlier | None, poison: float | None
) -> Finding:
    """`outputs`, of the reference's structure, against the float64 reference; without `earlier`, a refusal of a
    floating leaf is not explained, which costs several runs of the reference."""
    got = dict(flatten(outputs))
    dtype = reference.precision(expected.inputs)
    error: float | None = None
    ratio: float | None = None
    allowance = ""
    slopes: dict[str, Slope] = {}
    figures: dict[str, Any] = {"float64": expected.where, "exact_precision": expected.precision, "leaves": {}}
    for path, native in flatten(expected.native):
        if path in expected.left_out:
            continue
        leaf = number(got[path], dtype)
        if path not in expected.yards or leaf is None:
            refusal = _other(reference, expected, path, native, got[path])
            if refusal is not None:
                return refusal
            continue
        yard, own = expected.yards[path], number(native, dtype)
        missed, given = None, real(leaf)
        if earlier is None and (off := _far_off(given, expected.exact[path], yard)):
            size = off / (yard.scale.spread or 1.0), off / yard.unit
            return Finding(Status.INCORRECT, "mismatch", path, *size, leaf=path, evidence=figures)
        if yard.fills and own is not None:
            own = real(own)
            missed = _Missed(given, own, yard.fills.missed(given, own, expected.exact[path]))
            leaf, own = yard.fills.lifted_as(given, own), yard.fills.lifted(own)
        errors = measure(leaf, expected.exact[path], yard.scale, yard.expected, own, yard.limits)
        weighed = weigh(leaf, errors, yard, earlier is not None)
        if weighed.refused in OF_PLACES:
            permitted = _permitted(reference, expected, path, yard)
            yard = _of_the_whole(expected, path, [own, permitted])
            weighed = weigh(leaf, errors, yard, earlier is not None)
            if weighed.refused in OF_PLACES and permitted is not None:
                rest = noise.without(leaf, expected.exact[path], permitted)
                others = measure(rest, expected.exact[path], yard.scale, yard.expected, own, yard.limits)
                weighed = replace(weighed, refused=yard.limits.exceeded(others))
        if weighed.refused or (missed is not None and bool(missed.mask.any())):
            jumps = decided_by_rounding(reference, expected, path, given, None if missed is None else missed.mask)
            if jumps is not None:
                # Judged by the others alone.
                leaf = torch.where(jumps, expected.exact[path].to(given), real(leaf))
                missed = missed and replace(missed, mask=missed.mask & ~jumps)
                errors = measure(leaf, expected.exact[path], yard.scale, yard.expected, own, yard.limits)
                weighed = weigh(leaf, errors, yard, earlier is not None)
                figures["decided_by_rounding"] = figures.get("decided_by_rounding", 0) + int(jumps.sum())
        leaf_error, leaf_ratio = _size(weighed, yard)
        figures["leaves"][path] = _figures(weighed, expected, path)
        if weighed.refused in ("", "small") and own is not None and not yard.whole:
            lacking = _lacking(path, leaf, own, expected)
            if lacking:
                reason = "mismatch:part_left_out"
                return Finding(Status.INCORRECT, reason, lacking, leaf_error, leaf_ratio, leaf=path, evidence=figures)
        error = max((one for one in (error, leaf_error) if one is not None), default=None)
        ratio = max((one for one in (ratio, leaf_ratio) if one is not None), default=None)
        allowance = weighed.allowance or allowance
        if weighed.refused and earlier is None:
            return Finding(Status.INCORRECT, "mismatch", path, leaf_error, leaf_ratio, leaf=path, evidence=figures)
        if weighed.refused and earlier is not None:
            why = explain(Case(reference, expected, path, leaf, weighed, earlier, poison))
            if why.reason == UNKNOWN and expected.nearest and is_of_eight_bits(native):
                beside = _not_nearest(reference, expected, path, native, got[path], figures, only_beside=True)
                if beside is not None:
                    return beside
            evidence = {**figures, **why.evidence}
            return Finding(
                Status.INCORRECT, why.reason, why.message, leaf_error, leaf_ratio, leaf=path, evidence=evidence
            )
        if missed is not None and bool(missed.mask.any()):
            evidence = figures | missed.evidence()
            message = f"{path}: {missed}"
            return Finding(
                Status.INCORRECT, "mismatch:fill_value", message, leaf_error, leaf_ratio, leaf=path, evidence=evidence
            )
        if expected.nearest and is_of_eight_bits(native):
            refusal = _not_nearest(reference, expected, path, native, got[path], figures)
            if refusal is not None:
                return refusal
        found = slope(leaf, expected.exact[path], yard.level.roundoff)
        if found is not None:
            slopes[path] = found
    return Finding(Status.PASSED, error=error, error_ratio=ratio, allowance=allowance, evidence=figures, slopes=slopes)


def _lacking(path: str, leaf: torch.Tensor, own: torch.Tensor, expected: Expectation) -> str:
    """What part of the output is missing, or there twice, in words; empty where none is known to be."""
    yard, exact = expected.yards[path], expected.exact[path]
    if not left_out.tells(exact):
        return ""
    lacks = left_out.share(*(real(one)[None] for one in (leaf, own, exact)))
    beyond = bool(lacks.beyond(max(yard.base, yard.expected.smallest)))
    return f"{path}: {left_out.told(float(lacks.found))}" if beyond else ""


def _permitted(reference: ExactReference, expected: Expectation, path: str, yard: Yardstick) -> torch.Tensor | None:
    """All of a leaf of the reference's run in TF32, where the switches permit that to any of its operators."""
    if not reference.permits:
        return None
    output = dict(flatten(reference.permitted(expected.inputs, expected.seed)))[path]
    found = number(output, reference.precision(expected.inputs))
    return found if found is None or not yard.fills else yard.fills.lifted(found)


def _of_the_whole(expected: Expectation, path: str, runs: list[torch.Tensor | None]) -> Yardstick:
    """A leaf's yardstick with limits of rows and elements by what the reference's runs show of the whole leaf.

    Those at hand are of some rows and columns. One row where all cancels may be in none of them, and be smaller than
    all others, but err by as much.
    """
    yard, exact = expected.yards[path], expected.exact[path]
    return yard.as_seen([measure(one, exact, yard.scale, yard.expected) for one in runs if one is not None])


def fast(
    reference: ExactReference,
    inputs: list[Any],
    native: Any,
    outputs: Any,
    limits: dict[str, Fast],
    left_out: frozenset[str] = frozenset(),
) -> Finding | None:
    """`outputs`, of the reference's structure, against its own output but for what is `left_out`; None if that does
    not decide."""
    got = dict(flatten(outputs))
    dtype = reference.precision(inputs)
    figures = {}
    for path, leaf in flatten(native):
        if path in left_out:
            continue
        own, given = number(leaf, dtype), number(got[path], dtype)
        if own is None or given is None or is_of_eight_bits(leaf):
            if not same(leaf, got[path]):
                return None
        elif own.numel():
            if path not in limits:
                return None
            result = quick(given, own, limits[path])
            if not result.accepted:
                return None
            figures[path] = {"distance": result.distance, "of_limit": result.of_limit}
    return Finding(Status.PASSED, level="fast", evidence={"leaves": figures})


def fast_together(
    reference: ExactReference, inputs: list[Any], natives: list[Any], outputs: list[Any], limits: dict[str, Fast]
) -> list[bool]:
    """Which of several calls' outputs `fast` accepts, as far as that can be told of all of them at once.

    Each native output is that of its call, `inputs` those of one of them.
    """
    if any(compare(native, output) is not None for native, output in zip(natives, outputs, strict=True)):
        return [False] * len(natives)
    dtype = reference.precision(inputs)
    right: list[torch.Tensor] = []
    found = [(dict(flatten(native)), dict(flatten(output))) for native, output in zip(natives, outputs, strict=True)]
    for path in found[0][0]:
        leaves = [(native[path], output[path]) for native, output in found]
        own, given = ([one for leaf in leaves if (one := number(leaf[side], dtype)) is not None] for side in (0, 1))
        if not own or is_of_eight_bits(leaves[0][0]):
            right.append(torch.tensor([same(*leaf) for leaf in leaves]))
        elif own[0].numel():
            if path not in limits:
                return [False] * len(natives)
            right.append(alike.accepted(torch.stack(given), torch.stack(own), limits[path]).cpu())
    return torch.stack(right).all(0).tolist() if right else [True] * len(natives)


def _other(reference: ExactReference, expected: Expectation, path: str, native: Any, got: Any) -> Finding | None:
    """A refusal of an integer, boolean, text or empty leaf, if it is wrong."""
    exact = expected.exact[path]
    if not isinstance(native, torch.Tensor):
        if got in (native, exact):
            return None
        message = f"{path}: expected {native!r}, got {got!r}"
        return Finding(Status.INCORRECT, "mismatch:scalar", message[:500], leaf=path)
    if native.numel() == 0:
        return None
    wrong = indices.mismatches(got, exact, native)
    if bool(wrong.any()):
        inputs, seed, spans = expected.inputs, expected.seed, expected.spans
        wrong &= ~indices.excused(reference, inputs, seed, path, got, exact, native, spans, expected.cut)
    if not bool(wrong.any()):
        return None
    why = explain_other(path, got, exact.to(got.device), wrong)
    return Finding(Status.INCORRECT, why.reason, why.message, leaf=path, evidence=why.evidence)


def _far_off(got: torch.Tensor, exact: torch.Tensor, yard: Yardstick) -> float:
    """The error of some elements of a large output, if too many of them are too far off; else 0."""
    if got.numel() <= GLIMPSE or yard.fills:
        return 0.0
    places = sample(got.numel(), got.device, GLIMPSE)
    given = picked(got, places).to(exact.dtype)
    right = picked(exact, places).to(given.device)
    worst = max(limits.worst for limits in (yard.limits, *yard.loose.values()))
    far = wrong_at(places, given, right, yard.scale, yard.expected, worst)
    off = rms(given - right)
    return off if math.isfinite(off) and counted(far) > NOT_FEW * most_that_jumps(yard) * GLIMPSE else 0.0


def _not_nearest(
    reference: ExactReference,
    expected: Expectation,
    path: str,
    native: Any,
    got: Any,
    figures: dict[str, Any],
    only_beside: bool = False,
) -> Finding | None:
    """A refusal of an 8-bit floating leaf that is near enough to the right one, but not rounded to it; with
    `only_beside`, of one whose elements are the right numbers or those beside them."""
    exact = expected.exact[path]
    inputs, seed, spans = expected.inputs, expected.seed, expected.spans
    wrong = indices.not_nearest(reference, inputs, seed, path, got, exact, native, spans)
    if not bool(wrong.any()) or (only_beside and indices.furthest(got, exact) > 1):
        return None
    share, its = counted(wrong) / wrong.numel(), str(native.dtype).removeprefix("torch.")
    message = (
        f"{path}: {share:.2%} of {wrong.numel()} elements are not the {its} number nearest to the right one, where "
        "rounding decides nothing: a digit is missing, or cut off"
    )
    evidence = {**figures, "share_wrong": share, "wrong_within": regions.locate(wrong).box}
    return Finding(Status.INCORRECT, "mismatch:not_nearest", message, leaf=path, evidence=evidence)


def _size(weighed: Weighed, yard: Yardstick) -> tuple[float | None, float | None]:
    """The error in units of the true output's spread, and over the reference's own.

    None where elements are NaN or infinite that should not be: the distances leave them out, and they are the error.
    """
    norm = weighed.errors.norm
    return (None, None) if weighed.errors.broken else (norm / (yard.scale.spread or 1.0), norm / yard.unit)


def _figures(weighed: Weighed, expected: Expectation, path: str) -> dict[str, Any]:
    """The figures behind a verdict, in units of the true output's spread."""
    yard, errors = expected.yards[path], weighed.errors
    spread = yard.scale.spread or 1.0
    error, ratio = _size(weighed, yard)
    figures: dict[str, Any] = {
        "error": error,
        "error_ratio": ratio,
        "limit_ratio": yard.limits.norm / yard.unit,
        "reference_error": yard.own / spread,
        "lower_precision_error": None if yard.lowered is None else yard.lowered / spread,
        "level": yard.level.name,
        "worst": errors.worst,
        "worst_limit": yard.limits.worst,
        "row": errors.row,
        "row_limit": yard.limits.row,
        "likeness": weighed.likeness,
        "over": weighed.refused,
        "allowance": weighed.allowance,
    }
    # JSON has no infinities: None stands for no limit, and for an infinite error or one that cannot be told.
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in figures.items()}
