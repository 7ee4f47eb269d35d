"""Why an output was refused: reason, one sentence, figures. May run the reference again; not used for a pass."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.oracle import patterns, regions, rule
from harness.oracle.error import measure, wrong
from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation, number
from harness.oracle.formats import Format, next_lower
from harness.oracle.slices import real, sample, widened
from harness.oracle.structure import flatten
from harness.oracle.verdict import Weighed, correlation

# Elements kept of each earlier output, to recognise it if it is returned for another input; number of outputs kept.
FINGERPRINT = 1024
KEPT = 64
CLOSE = 1e-3
# A lower precision explains an error that differs from its own by at most this factor.
SIZE = 4.0
# Below this share, wrong elements are counted.
RARE = 1e-3
# Above this share of wrong elements, the whole output is taken for something else.
MOSTLY = 0.3
# If no element exceeds the limit of the worst, elements this many times over what is expected count as wrong.
VISIBLE = 4.0


@dataclass(frozen=True)
class Explanation:
    """`reason` for the record, `message` for people, `evidence` JSON-able and bounded."""

    reason: str
    message: str
    evidence: dict[str, Any] = field(default_factory=dict)


class Earlier:
    """Some elements of each earlier output, by path."""

    def __init__(self) -> None:
        self._kept: list[dict[str, torch.Tensor]] = []

    def keep(self, output: Any) -> None:
        tensors = {path: leaf for path, leaf in flatten(output) if isinstance(leaf, torch.Tensor) and leaf.numel()}
        self._kept = [*self._kept, {path: _print(leaf) for path, leaf in tensors.items()}][-KEPT:]

    def holds(self, path: str, got: torch.Tensor, native: torch.Tensor) -> bool:
        """Whether an earlier output at `path`, other than `native`, had the elements of `got` but for rounding."""
        given, right = _print(got), _print(native)

        def near(kept: torch.Tensor, to: torch.Tensor) -> bool:
            return bool(((kept - to).abs() <= CLOSE * float(kept.abs().max())).all())

        return any(near(kept[path], given) and not near(kept[path], right) for kept in self._kept if path in kept)


def _print(leaf: torch.Tensor) -> torch.Tensor:
    return patterns.at(leaf, sample(leaf.numel(), leaf.device, FINGERPRINT))


@dataclass(frozen=True)
class Case:
    """A refused floating leaf, and everything that may explain it."""

    reference: ExactReference
    expected: Expectation
    path: str
    got: torch.Tensor
    weighed: Weighed
    earlier: Earlier
    poison: float | None


def explain(case: Case) -> Explanation:
    """The explanation of a refused floating leaf."""
    yard = case.expected.yards[case.path]
    exact = case.expected.exact[case.path]
    got = real(case.got)
    allowed = max(1.0, yard.limits.norm / yard.base)
    mask, worst = wrong(got, exact, yard.scale, yard.expected, min(yard.limits.worst, VISIBLE * allowed))
    if not bool(mask.any()):
        # All errors are of similar size, so no element is several times over the limit.
        mask, worst = wrong(got, exact, yard.scale, yard.expected, allowed)
    mask = mask.reshape(got.shape)
    region = regions.locate(mask)
    count = int(mask.sum())
    share = count / mask.numel()
    elements = _elements(got, exact, mask, worst)
    evidence = {"path": case.path, "share_wrong": share, **elements}
    if region.box:
        evidence["wrong_within"] = region.box
    reason, clause, more = _cause(case, got, exact, region, share)
    error = case.weighed.errors.norm / (yard.scale.spread or 1.0)
    some = f"{share:.2%}" if share >= RARE else f"{count}"
    # Where most are wrong, a single one says little.
    worst_one = f" (the worst {_told(elements['worst'])})" if share < MOSTLY else ""
    message = (
        f"{case.path}: {clause}; {some} of {mask.numel()} elements wrong{worst_one}; error {error:.2g} of the output's "
        f"variation, the reference's own error {yard.own / (yard.scale.spread or 1.0):.2g}"
    )
    return Explanation(reason, message, {**evidence, **more})


def explain_other(path: str, got: torch.Tensor, exact: torch.Tensor, mask: torch.Tensor) -> Explanation:
    """The explanation of a refused integer or boolean leaf, whose wrong elements are those in `mask`."""
    region = regions.locate(mask)
    share = float(mask.sum()) / mask.numel()
    at = int(mask.reshape(-1).to(torch.uint8).argmax())
    evidence = {"path": path, "share_wrong": share, "first": _element(got, exact, at), "wrong_within": region.box}
    word = region.word or "integers"
    clause = region.sentence or "values differ"
    message = f"{path}: {clause}; {share:.2%} of {mask.numel()} {str(got.dtype).removeprefix('torch.')} elements wrong"
    return Explanation(f"mismatch:{word}", message, evidence)


def _cause(
    case: Case, got: torch.Tensor, exact: torch.Tensor, region: regions.Region, share: float
) -> tuple[str, str, dict[str, Any]]:
    """Reason, clause and figures of the first cause that fits, the most specific ones first."""
    unwritten = _unwritten(case, got)
    if unwritten is not None:
        return unwritten
    if case.weighed.errors.broken:
        return _broken(got, region)
    # If most elements are right, the place of the wrong ones says more than a pattern over all elements.
    if share >= MOSTLY:
        found = _whole(case, got, exact)
        if found is not None:
            return found
    if region.word:
        return f"mismatch:{region.word}", region.sentence, {}
    precision = _precision(case, exact)
    return precision or ("mismatch", "no pattern found", {})


def _whole(case: Case, got: torch.Tensor, exact: torch.Tensor) -> tuple[str, str, dict[str, Any]] | None:
    """What the output is instead of the right answer."""
    pattern = patterns.recognise(got, exact)
    if pattern is not None and pattern.word in ("zeros", "constant"):
        return f"mismatch:{pattern.word}", pattern.sentence, pattern.evidence
    if case.earlier.holds(case.path, case.got, _native(case)):
        return "mismatch:earlier_output", "this is the right output for an earlier input", {}
    for position, value in enumerate(case.expected.inputs):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and patterns.same_as(got, value, exact):
            return "mismatch:input_returned", f"this is input {position}", {}
    if pattern is not None:
        return f"mismatch:{pattern.word}", pattern.sentence, pattern.evidence
    return _other_mode(case)


def _unwritten(case: Case, got: torch.Tensor) -> tuple[str, str, dict[str, Any]] | None:
    """Elements that still hold the fill value, bit for bit, although the right answer is something else."""
    if case.poison is None or got.is_complex() or got.element_size() not in _BITS:
        return None
    integer = _BITS[got.element_size()]
    value = torch.tensor(case.poison, dtype=got.dtype, device=got.device)
    held = got.contiguous().view(integer) == value.view(integer)
    count = int(held.sum())
    if not count or count < 0.001 * got.numel():
        return None
    share = count / got.numel()
    if share > regions.WHOLE:
        return "unwritten", "never written: it still holds the fill value", {"share_unwritten": share}
    place = regions.locate(held)
    word = f"unwritten:{place.word}" if place.word else "unwritten"
    clause = f"never written: {place.sentence or f'{share:.2%} of the elements'}"
    return word, clause, {"share_unwritten": share, "unwritten_within": place.box}


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _broken(got: torch.Tensor, region: regions.Region) -> tuple[str, str, dict[str, Any]]:
    nans, infinities = int(torch.isnan(got).sum()), int(torch.isinf(got).sum())
    if not nans and not infinities:
        return "mismatch:finite", "finite where the reference is NaN or infinite", {}
    word = "nan" if nans else "inf"
    everywhere = max(nans, infinities) >= regions.WHOLE * got.numel()
    place = f" in {region.sentence}" if region.sentence and not everywhere else ""
    clause = f"{'all' if everywhere else nans or infinities} elements are {'NaN' if nans else 'infinite'}{place}"
    reason = f"{word}:{region.word}" if region.word and not everywhere else word
    return reason, clause, {"nan": nans, "inf": infinities}


def _other_mode(case: Case) -> tuple[str, str, dict[str, Any]] | None:
    """Whether the output is right for the reference in the other mode, eval instead of train or the reverse."""
    training = case.reference.module.training
    try:
        other = case.reference.native(case.expected.inputs, case.expected.seed, training=not training)
    except Exception:
        return None
    leaf = dict(flatten(other)).get(case.path)
    exact = None if leaf is None else number(leaf, case.got.dtype)
    yard = case.expected.yards[case.path]
    if exact is None or exact.shape != case.got.shape:
        return None
    errors = measure(case.got, widened(exact), yard.scale, yard.expected)
    # The other mode's output has an error of its own, as large as the reference's.
    if errors.broken or errors.norm > yard.limits.norm + yard.own or errors.norm > case.weighed.errors.norm / 4:
        return None
    here, there = ("train", "eval") if training else ("eval", "train")
    return f"mismatch:{there}_mode", f"matches the reference in {there} mode, not in {here} mode", {}


def _precision(case: Case, exact: torch.Tensor) -> tuple[str, str, dict[str, Any]] | None:
    """Whether the error is that of a lower precision: correlated with it, or of its size and evenly spread."""
    yard, errors = case.expected.yards[case.path], case.weighed.errors
    places = sample(exact.numel(), case.got.device, patterns.SAMPLES)
    true = patterns.at(exact, places)
    error = patterns.at(widened(case.got), places) - true
    own = patterns.at(widened(_native(case)), places)
    sizes = {}
    best, likeness = None, 0.0
    for format in _coarser(yard.level):
        run = _lowered(case, format)
        if run is None:
            continue
        values = patterns.at(widened(run), places)
        moved = values - own
        sizes[format] = float((values - true).square().mean().sqrt())
        alike = correlation(error, moved) if error.numel() >= 256 else 0.0
        if alike > max(likeness, rule.SIGNATURE) and errors.norm <= SIZE * sizes[format]:
            best, likeness = format, alike
    evidence = {"lower_precision": {format.name: size / (yard.scale.spread or 1.0) for format, size in sizes.items()}}
    if best is not None:
        clause = f"errors of {best.name} (correlation {likeness:.2f} with the reference on inputs rounded to it)"
        return "precision_downgrade", clause, {**evidence, "likeness": likeness, "format": best.name}
    even = errors.row <= 16 * errors.scaled
    within = [format for format, size in sizes.items() if size / SIZE <= errors.norm <= SIZE * size]
    if even and within:
        nearest = min(within, key=lambda format: abs(math.log(errors.norm / sizes[format])))
        clause = f"the errors are as large as those of {nearest.name}, and evenly spread"
        return "precision_downgrade", clause, {**evidence, "format": nearest.name}
    return None


def _coarser(level: Format) -> list[Format]:
    """The next two formats below the one in which the reference computes."""
    first = next_lower(level)
    second = next_lower(first) if first else None
    return [format for format in (first, second) if format is not None]


def _native(case: Case) -> torch.Tensor:
    leaf = number(dict(flatten(case.expected.native))[case.path], case.got.dtype)
    assert leaf is not None
    return leaf


def _lowered(case: Case, format: Format) -> torch.Tensor | None:
    try:
        run = case.reference.lowered(case.expected.inputs, format, case.expected.seed)
    except Exception:
        return None
    return number(dict(flatten(run))[case.path], case.got.dtype)


def _elements(got: torch.Tensor, exact: torch.Tensor, mask: torch.Tensor, worst: int) -> dict[str, Any]:
    """The first wrong element and the worst one."""
    found = {"worst": _element(got, exact, worst)}
    if bool(mask.any()):
        found["first"] = _element(got, exact, int(mask.reshape(-1).to(torch.uint8).argmax()))
    return found


def _element(got: torch.Tensor, exact: torch.Tensor, flat: int) -> dict[str, Any]:
    index = [int(i) for i in patterns.coordinates(torch.tensor(flat), got.shape)] if got.dim() else []
    place = tuple(index)
    return {"index": index, "expected": _plain(exact[place]), "got": _plain(got[place])}


def _told(element: dict[str, Any]) -> str:
    got, expected = (x if isinstance(x, str) else f"{x:.6g}" for x in (element["got"], element["expected"]))
    return f"at {element['index']}: {got} in place of {expected}"


def _plain(value: torch.Tensor) -> Any:
    """A JSON value: NaN and infinities as words."""
    item = value.item()
    return str(item) if isinstance(item, float) and not math.isfinite(item) else item
