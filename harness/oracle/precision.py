"""Whether an error is that of a lower precision. Its direction has to say so: size alone does not tell."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from harness.oracle import patterns, rule
from harness.oracle.case import Case, Cause
from harness.oracle.formats import FLOAT32, TF32, Format, next_lower, round_to
from harness.oracle.modes import Mode
from harness.oracle.slices import coordinates, real, widened
from harness.oracle.verdict import correlation, detrended

# A lower precision explains an error that is at most this many times its own.
SIZE = 4.0
# Sums kept in a lower precision lose more than the rounding of a result: up to this many times.
SUMS = 64.0
# Fewer elements agree by chance.
FEWEST = 32
# An output consists of numbers of a format if all but this share of its elements do, and hardly any right ones would.
STRAYS, BY_CHANCE = 1e-3, 0.5
# Correlations of so many elements come to this over their root by chance, once in a million times.
CHANCE = 5.0
# Errors that agree less may have another cause besides.
CLEARLY = 0.6
# Groups have so many elements each, or are so many themselves that they tell as much.
PER_GROUP = 16
# Runs of the reference.
MOST = 12
# What split operands mend.
SPLITTABLE = ("products", "inputs")
KEEP = "keep sums and results in {level}"
SPLIT = "compute in {level}, or split each operand into a high and a low part"


class Rounded(Mode):
    """Within it, results are rounded to a format: of every operator, or of `only` one. `met` names those with any."""

    def __init__(self, format: Format, only: str = "") -> None:
        super().__init__()
        self.met: dict[str, None] = {}
        self._format = format
        self._only = only

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        if func.is_view or func._schema.is_mutable:
            return result
        self.met[name] = None
        if self._only not in ("", name):
            return result
        if isinstance(result, tuple | list):
            return type(result)(self._round(part) for part in result)
        return self._round(result)

    def _round(self, value: Any) -> Any:
        rounds = isinstance(value, torch.Tensor) and value.is_floating_point() and value.layout is torch.strided
        return round_to(value, self._format) if rounds else value


def lower_precision(case: Case) -> Cause | None:
    """The lower precision that the errors show; runs the reference `MOST` times at the most."""
    if case.got.is_complex():
        # Its errors are two for each element.
        return _told_by(case, _refused_by_signature(case), {})
    formats = list(_coarser(case.yard.level))
    for format in reversed(formats):
        if _consists_of(case, format):
            clause = f"every element is a {_told(format)} number: the result or its sums were kept in that format"
            return Cause(
                "precision_downgrade", clause, {"format": format.name, "stored": True}, KEEP.format(level=_level(case))
            )
    places = case.sampled()
    if places.numel() < FEWEST:
        return None
    true = patterns.at(case.exact, places)
    error = detrended(patterns.at(widened(case.got), places) - true, true)
    own = patterns.at(widened(case.native), places)
    spread = case.yard.scale.spread or 1.0
    least = max(rule.SIGNATURE, CHANCE / math.sqrt(places.numel()))
    best: tuple[float, Format, str] | None = None
    sizes: dict[str, float] = {}
    for format, way, run in itertools.islice(_runs(case, formats), MOST):
        values = patterns.at(widened(run), places)
        size = float((values - true).square().mean().sqrt())
        sizes[f"{format.name} {way}"] = size / spread
        moved = detrended(values - own, true)
        alike = correlation(error, moved)
        if way not in SPLITTABLE:
            alike = min(alike, correlation(*_without_factors(error, moved, true, places, case.got.shape)))
        if alike > max(least, best[0] if best else 0.0) and case.weighed.errors.norm <= SIZE * size:
            best = (alike, format, way)
        if (best and way not in SPLITTABLE) or time.monotonic() > case.until:
            # Of single operators, only where nothing else goes along with the errors.
            break
    return _told_by(case, best or _refused_by_signature(case), sizes)


def _refused_by_signature(case: Case) -> tuple[float, Format, str] | None:
    """What the signature says, where that alone has refused the output."""
    signature = case.yard.signature
    if case.weighed.refused != "signature" or signature is None:
        return None
    return case.weighed.likeness, signature.format, "products" if case.reference.multiplies else "inputs"


def _told_by(case: Case, best: tuple[float, Format, str] | None, sizes: dict[str, float]) -> Cause | None:
    if best is None:
        return None
    alike, format, way = best
    agree = "are" if alike >= CLEARLY else "agree in part with"
    clause = f"the errors {agree} those of {_told(format)} {way} (correlation {alike:.2f})"
    evidence = {"lower_precision": sizes, "likeness": alike, "format": format.name}
    fix = SPLIT if way in SPLITTABLE else KEEP
    return Cause("precision_downgrade", clause, evidence, fix.format(level=_level(case)))


def _level(case: Case) -> str:
    return "float32" if case.yard.level is FLOAT32 else case.yard.level.name


def _runs(case: Case, formats: list[Format]) -> Iterator[tuple[Format, str, torch.Tensor]]:
    """The reference's leaf with products in each format, on inputs rounded to it, with every intermediate result
    rounded, and with those of one operator, the last one first."""
    reference, expected = case.reference, case.expected

    def rounded(mode: Rounded) -> Any:
        return reference.native(expected.inputs, expected.seed, mode=mode)

    for way, run in (("products", reference.lowered), ("inputs", reference.coarsened)):
        for format in formats:
            products = way == "products"
            if products and reference.multiplies is False:
                break
            leaf = _leaf(case, functools.partial(run, expected.inputs, format, expected.seed))
            if leaf is not None and not (products and not reference.multiplies):
                yield format, way, leaf
    modes = [Rounded(format) for format in formats]
    for format, mode in zip(formats, modes, strict=True):
        if (leaf := _leaf(case, functools.partial(rounded, mode))) is not None:
            yield format, "intermediate results", leaf
    names = reversed(dict.fromkeys(name for mode in modes for name in mode.met))
    for name, format in itertools.product(names, formats):
        if (leaf := _leaf(case, functools.partial(rounded, Rounded(format, name)))) is not None:
            yield format, f"results of {name.partition('::')[2]}", leaf


def _without_factors(
    error: torch.Tensor, moved: torch.Tensor, true: torch.Tensor, places: torch.Tensor, shape: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both without an offset and a factor for each row, and for each index along a dimension: a few statistics that are
    off, for whatever reason, agree by chance with others that are rounded."""
    index = coordinates(places, shape)
    groupings = [(at, length) for at, length in zip(index, shape, strict=True)]
    if len(shape) > 1:
        groupings.append((places // shape[-1], math.prod(shape[:-1])))
    for group, count in groupings:
        if 1 < count <= places.numel() / PER_GROUP:
            error, moved = (_without(x, true, group, count) for x in (error, moved))
    return error, moved


def _without(x: torch.Tensor, true: torch.Tensor, group: torch.Tensor, count: int) -> torch.Tensor:
    def total(values: torch.Tensor) -> torch.Tensor:
        return torch.zeros(count, dtype=values.dtype, device=values.device).index_add_(0, group, values)

    size = total(torch.ones_like(x)).clamp_min(1)
    x, true = (values - (total(values) / size)[group] for values in (x, true))
    square = total(true * true)
    factor = total(x * true) / torch.where(square == 0, 1.0, square)
    return x - true * factor[group]


def _leaf(case: Case, run: Callable[[], Any]) -> torch.Tensor | None:
    """None where foreign code raises, on numbers for which it was not written."""
    try:
        return case.leaf(run())
    except Exception:
        return None


def _consists_of(case: Case, format: Format) -> bool:
    """Whether the output's elements are numbers of the format, which those of a right one would not be."""
    places = case.sampled()
    given = patterns.at(real(case.got), places)
    right = patterns.at(case.exact, places).to(real(case.got).dtype)
    spacing = case.yard.scale.size * format.roundoff
    if case.weighed.errors.broken or case.weighed.errors.norm > SUMS * spacing or given.numel() < 2:
        return False
    strays, by_chance = (float((round_to(x, format) != x).double().mean()) for x in (given.to(right.dtype), right))
    return strays <= STRAYS and by_chance >= 1 - BY_CHANCE


def _told(format: Format) -> str:
    """TF32 and FP16 have the same digits."""
    return "tf32 or fp16" if format is TF32 else format.name


def _coarser(level: Format) -> Iterator[Format]:
    """The next two formats below the one in which the reference computes."""
    first = next_lower(level)
    second = next_lower(first) if first else None
    yield from (format for format in (first, second) if format is not None)
