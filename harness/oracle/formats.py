"""Number formats: how finely each one rounds, and rounding a tensor to a coarser one without changing its dtype."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from harness.machine.pauses import pause


@dataclass(frozen=True)
class Format:
    """`bits` explicit mantissa bits; `name` is the word used in `allow` and in findings."""

    name: str
    bits: int

    @property
    def roundoff(self) -> float:
        """Largest relative error of one rounding to nearest, the unit roundoff u = 2^-(bits+1)."""
        return 2.0 ** -(self.bits + 1)


FLOAT64 = Format("fp64", 52)
FLOAT32 = Format("fp32", 23)
TF32 = Format("tf32", 10)
FLOAT16 = Format("fp16", 10)
BFLOAT16 = Format("bf16", 7)
FLOAT8 = Format("fp8", 3)
BY_NAME = {format.name: format for format in (FLOAT64, FLOAT32, TF32, FLOAT16, BFLOAT16, FLOAT8)}
# What a run may allow candidates to compute in.
ALLOWABLE = ("tf32", "bf16", "fp16")

_BY_DTYPE = {
    torch.float64: FLOAT64,
    torch.float32: FLOAT32,
    torch.float16: FLOAT16,
    torch.bfloat16: BFLOAT16,
    torch.complex128: FLOAT64,
    torch.complex64: FLOAT32,
    torch.complex32: FLOAT16,
}

# What a candidate gains speed by, one step down: the format whose use the rule has to notice.
_LOWER = {FLOAT64: FLOAT32, FLOAT32: TF32, TF32: BFLOAT16, FLOAT16: BFLOAT16, BFLOAT16: FLOAT8}

_BITS_VIEW = {
    torch.float64: (torch.int64, 52),
    torch.float32: (torch.int32, 23),
    torch.float16: (torch.int16, 10),
    torch.bfloat16: (torch.int16, 7),
}

# Numbers have a common step by chance with a probability of at most one in two to this power.
GRID_BITS = 20
# Numbers that are looked at before all.
HEAD = 1 << 14
AT_ONCE = 1 << 22

# RMS of round-to-nearest's relative error in units of u, for mantissas that fall anywhere in a binade: the error is
# uniform in half a unit of the last place either way (1/sqrt 3), and that unit shrinks against the value by up to 2.
ROUNDING_RMS = 0.42


def format_of(dtype: torch.dtype) -> Format:
    """The format of a floating or complex dtype; 8-bit floats all count as `fp8`."""
    return _BY_DTYPE.get(dtype, FLOAT8)


def calculable(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in a dtype that PyTorch calculates in: 8-bit floats, which it only stores, as float32, and
    complex ones of two halves, of which a CPU compares none, as those of two float32."""
    if tensor.dtype is torch.complex32:
        return tensor.to(torch.complex64)
    return tensor.float() if is_of_eight_bits(tensor) else tensor


def is_eight_bits(dtype: Any) -> bool:
    """Whether it is a dtype of 8-bit floats, a cast to which is a step of the function and no internal precision."""
    return isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize == 1


def is_of_eight_bits(leaf: Any) -> bool:
    """Whether it is a tensor of 8-bit floats."""
    return isinstance(leaf, torch.Tensor) and is_eight_bits(leaf.dtype)


def next_lower(format: Format) -> Format | None:
    """The coarser format that hardware offers at a higher speed, if there is one."""
    return _LOWER.get(format)


def smallest(dtype: torch.dtype) -> float:
    """The absolute error that is never held against a kernel.

    Half the spacing of subnormals for float16, whose range is short; the smallest normal number elsewhere, since
    compilers flush subnormals to zero under fast-math.
    """
    halves = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}
    real = halves.get(dtype, dtype)
    info = torch.finfo(real)
    return 2.0**-25 if real is torch.float16 else float(info.smallest_normal)


def round_to(tensor: torch.Tensor, format: Format) -> torch.Tensor:
    """A copy with mantissas rounded to nearest in `format`; dtype, exponent range, NaN and infinities stay."""
    if tensor.is_complex():
        return torch.view_as_complex(round_to(torch.view_as_real(tensor.resolve_conj()), format))
    integer, bits = _BITS_VIEW.get(tensor.dtype, (None, 0))
    drop = bits - format.bits
    if integer is None or drop <= 0:
        return tensor.clone()
    # Half a step is added to the magnitude and the low bits cleared; a carry into the exponent is the right answer.
    rounded = (tensor.contiguous().view(integer) + (1 << (drop - 1))).bitwise_and_(-(1 << drop)).view(tensor.dtype)
    # Infinities come through; the carry of a NaN might not.
    return rounded if all_finite(tensor) else torch.where(torch.isnan(tensor), tensor, rounded)


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether no element of a floating tensor is NaN or infinite; reads it once if so, without a temporary."""
    # Half-precision sums are taken in float32 anyway, and may overflow only when they are rounded back.
    wide = torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else None
    return bool(torch.isfinite(tensor.sum(dtype=wide))) or bool(torch.isfinite(tensor).all())


def on_grid(tensor: torch.Tensor) -> bool:
    """Whether all finite numbers are multiples of a step so coarse that chance does not make it: labels, masks, counts.

    Chance would with a probability of at most 2**-GRID_BITS. Zeros alone are on a grid.
    """
    integer, bits = _BITS_VIEW.get(tensor.dtype, (None, 0))
    if integer is None:
        return False
    pause()
    flat = tensor.contiguous().view(-1)
    largest, last, count = -math.inf, math.inf, 0
    start, length = 0, HEAD
    while start < flat.numel():
        part = flat[start : start + length]
        counts = torch.isfinite(part) & (part != 0)
        mantissa, exponent = torch.frexp(part.double().masked_fill(~counts, 1.0))
        digits = (mantissa.abs() * 2.0**53).long()
        lowest = torch.log2((digits & -digits).double()) + exponent - 53
        # Read together: on a card each reading waits for the device.
        top = torch.where(counts, exponent.double(), -math.inf).max()
        bottom = torch.where(counts, lowest, math.inf).min()
        here = torch.stack([top, bottom, counts.sum().double()]).tolist()
        largest, last, count = max(largest, here[0]), min(last, here[1]), count + int(here[2])
        # Digits that the largest number has no use for, in units of the step; each is zero by chance with one in two.
        spare = bits + 1 - (largest - last) if count else math.inf
        if spare < (bits + 1) / 3:
            return False
        # What random numbers lack is missed in the first of them.
        start, length = start + length, AT_ONCE
    return not count or spare * count >= GRID_BITS


# A prime number: numbers that are so many steps from each other, and no others, are moved alike with equal ones.
STEPS = 65521


def jitter(tensor: torch.Tensor, ulps: int, generator: torch.Generator, alike: bool = False) -> torch.Tensor:
    """A copy with each element moved by up to `ulps` units in the last place either way, at random; equal ones `alike`.

    Zero, infinities and NaN stay, as do dtypes other than 16 to 64 bits.
    """
    integer, _ = _BITS_VIEW.get(tensor.dtype, (None, 0))
    if integer is None:
        return tensor.clone()
    moved = tensor.clone()

    def steps(*shape: int) -> torch.Tensor:
        return torch.randint(-ulps, ulps + 1, shape, generator=generator, device=moved.device, dtype=integer)

    by_value = steps(STEPS) if alike else None
    # Part by part, in the order of memory, since a copy lies densely: what is needed beside it may be large.
    flat = moved.as_strided((moved.numel(),), (1,))
    for part in flat.split(AT_ONCE):
        step = steps(*part.shape) if by_value is None else by_value[part.view(integer).long() % STEPS]
        # Below this size, and only there, a step could pass through zero, whose bits are far from those of -0.
        still = (part.abs() < torch.finfo(part.dtype).smallest_normal) | ~torch.isfinite(part)
        part.view(integer).add_(step.masked_fill_(still, 0))
    return moved


def nudge(dtype: torch.dtype) -> Format:
    """Two bits coarser than a dtype: a disturbance of `NUDGE` roundings, small but well above the native error."""
    return Format("nudged", format_of(dtype).bits - 2)


NUDGE = 4.0
