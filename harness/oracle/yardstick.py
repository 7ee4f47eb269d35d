"""What error to expect of one output: measured on the reference itself, run in several ways on the same inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from harness.oracle import rule
from harness.oracle.error import (
    SHORTEST_ROW,
    Errors,
    Expected,
    Scale,
    expected_errors,
    measure,
    rms,
    sample,
    scale_of,
    widened,
)
from harness.oracle.formats import BY_NAME, FLOAT32, ROUNDING_RMS, Format, format_of, next_lower, smallest

SIGNATURE_SAMPLES = 1 << 16


@dataclass(frozen=True)
class Signature:
    """How the native output moves, at some flat `positions`, when inputs are rounded to a coarser format.

    `exact` and `moved` hold the exact output and the movement at these positions, float64.
    """

    format: Format
    positions: torch.Tensor
    exact: torch.Tensor
    moved: torch.Tensor


@dataclass(frozen=True)
class Yardstick:
    """Errors to expect of one floating output; all absolute root mean squares, in the output's own unit.

    own: of the reference at the problem's precision. floor: of rounding the exact output to its dtype. base: the
    largest of these and of what one rounding of the inputs does to the output, which any sound algorithm may show.
    lowered: of the reference on inputs rounded to the format below `level`, the format it computes in. limit: what a
    candidate may show; `limits` the same for each allowed format. reference: the reference's own errors in the units
    of `expected`.
    """

    numel: int
    scale: Scale
    own: float
    floor: float
    base: float
    lowered: float | None
    level: Format
    limit: float
    limits: dict[str, float]
    expected: Expected
    reference: Errors
    signature: Signature | None

    @property
    def unit(self) -> float:
        """The reference's error that a candidate's is compared with in `error_ratio`."""
        return max(self.own, self.floor)

    @property
    def meaningful(self) -> bool:
        """Whether the reference, at its own precision, tells one output from another: its error is small against how
        much the true output varies."""
        if self.scale.constant:
            return self.scale.size > 0 and self.own <= rule.MEANINGFUL * self.scale.size
        return self.reference.broken == 0 and self.own <= rule.MEANINGFUL * self.scale.spread


@dataclass(frozen=True)
class Runs:
    """One floating leaf of the reference's outputs in several runs: `exact` widened, the others in their own dtype.

    `lowered` and `strict` run the reference when they are asked, and answer None where it cannot run that way.
    """

    exact: torch.Tensor
    native: torch.Tensor
    lowered: Callable[[Format], torch.Tensor | None]
    strict: Callable[[], torch.Tensor | None]
    composed: torch.Tensor | None = None
    jittered: tuple[torch.Tensor, ...] = ()


def yardstick(runs: Runs, shrink: float, allow: tuple[str, ...]) -> Yardstick:
    """The yardstick of one leaf. `shrink` is how many input elements there are for each output element."""
    exact, native = runs.exact, runs.native
    scale = scale_of(exact)
    at = sample(exact.numel(), native.device)
    format = format_of(native.dtype)
    # The rounding of a few elements may be anything up to the roundoff; that of many is known.
    share = 1.0 if exact.numel() < SHORTEST_ROW else ROUNDING_RMS
    floor = format.roundoff * scale.size * share + smallest(native.dtype)
    own = _distance(native, exact, at)

    level, lower = format, next_lower(format)
    downgraded = _lowered(runs, lower, at)
    coarse = _is_coarse(runs, own, floor, downgraded, at)
    condition = 0.0
    if coarse and lower is not None:
        level, lower = lower, next_lower(lower)
        downgraded = _lowered(runs, lower, at)
    elif downgraded is not None and lower is not None:
        # Errors are linear in a small perturbation, so a coarse rounding of the inputs tells what a fine one does.
        condition = downgraded * level.roundoff / lower.roundoff
    base = max(own, floor, condition, *(_distance(output, exact, at) for output in runs.jittered))

    facts = rule.Facts(
        base=base,
        lowered=downgraded,
        composed=0.0 if runs.composed is None else _distance(runs.composed, exact, at),
        serial=_serial(format, shrink, scale.size, condition),
        size=scale.size,
        axis=scale.axis,
        tight=coarse or format.bits < FLOAT32.bits,
    )
    expected = expected_errors(native.dtype, base / (2 * scale.level) if scale.level else 0.0)
    reference = measure(native, exact, scale, expected, native)
    return Yardstick(
        numel=exact.numel(),
        scale=scale,
        own=reference.norm,
        floor=floor,
        base=base,
        lowered=downgraded,
        level=level,
        limit=rule.limit(facts),
        limits=_limits(runs, facts, allow, at),
        expected=expected,
        reference=reference,
        signature=_signature(runs, lower, base),
    )


def _lowered(runs: Runs, lower: Format | None, at: torch.Tensor) -> float | None:
    output = runs.lowered(lower) if lower else None
    return None if output is None else _distance(output, runs.exact, at)


def _is_coarse(runs: Runs, own: float, floor: float, downgraded: float | None, at: torch.Tensor) -> bool:
    """Whether the reference computes in a lower precision than its output's dtype, as convolutions do under TF32.

    Suspected where rounding its inputs hardly hurts it; shown where it does far better in plain float32.
    """
    if downgraded is None or own <= rule.COARSE * floor or 2 * own <= downgraded:
        return False
    strict = runs.strict()
    return strict is not None and own > rule.COARSE * max(floor, _distance(strict, runs.exact, at))


def _serial(format: Format, shrink: float, size: float, condition: float) -> float:
    """The error of adding up one by one, in float32 whatever narrower dtype the result has."""
    unit = min(format.roundoff, FLOAT32.roundoff)
    return rule.serial_error(shrink, max(size * unit, condition * unit / format.roundoff))


def _limits(runs: Runs, facts: rule.Facts, allow: tuple[str, ...], at: torch.Tensor) -> dict[str, float]:
    limits = {}
    for name in allow:
        error = _lowered(runs, BY_NAME[name], at)
        if error is not None:
            # A kernel in that format rounds its result to it as well, before it is cast to the output's dtype.
            limits[name] = rule.limit_allowed(facts, max(error, ROUNDING_RMS * BY_NAME[name].roundoff * facts.size))
    return limits


def _distance(output: torch.Tensor, exact: torch.Tensor, at: torch.Tensor) -> float:
    """Root mean square distance at sampled positions, over those where both are finite."""
    difference = _take(widened(output), at) - _take(exact, at)
    finite = torch.isfinite(difference)
    return rms(difference[finite]) if bool(finite.any()) else math.inf


def _take(tensor: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1)[at.to(tensor.device)].to(at.device).double()


def _signature(runs: Runs, lower: Format | None, base: float) -> Signature | None:
    """Kept where rounding moves the output enough to be seen above the errors to expect anyway."""
    output = runs.lowered(lower) if lower else None
    if output is None or lower is None or runs.exact.numel() < rule.SIGNATURE_LEAST:
        return None
    at = sample(runs.exact.numel(), runs.native.device, SIGNATURE_SAMPLES)
    moved = _take(widened(output), at) - _take(widened(runs.native), at)
    moved = torch.nan_to_num(moved, nan=0.0, posinf=0.0, neginf=0.0)
    return Signature(lower, at, _take(runs.exact, at), moved) if rms(moved) >= rule.SIGNATURE_ABOVE * base else None
