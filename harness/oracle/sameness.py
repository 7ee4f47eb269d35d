"""Whether the reference in another dtype is the same function: code may ask for the dtype, and go by the answer.

`torch.finfo(x.dtype).eps` is another constant in float64, and `x.view(torch.int32)` takes bits that mean something
else. What the reference is compared with then says nothing about rounding, and whatever is allowed by it is no limit.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# A constant is the same if it is so near to another one, by a share of its size: the mean of some tensor, read by the
# host and multiplied by, differs by rounding.
NEAR = 1 / 8
# What chooses its own way by dtype, and takes its constants along.
_CHOOSES_ITS_WAY = ("scaled_dot_product", "_attention", "_rnn", "_transformer_encoder")
_OF_BITS = ("aten::nextafter",)


@dataclass
class Constants:
    """The floating constants (`values`) that a run's operators were given, and whether one looked at the `bits` of a
    floating number."""

    values: set[float] = field(default_factory=set)
    bits: bool = False

    def meet(self, name: str, args: Any, kwargs: Any) -> None:
        """Take note of a call."""
        if any(part in name for part in _CHOOSES_ITS_WAY):
            return
        self.values.update(_constants((args, kwargs)))
        self.bits = self.bits or name in _OF_BITS or (name == "aten::view" and _is_of_bits(args))

    def are_repeated_by(self, other: Constants) -> bool:
        """Whether a run in another dtype, with `other` constants, computed the same of other numbers."""
        if self.bits:
            return False
        return all(any(_near(one, again) for again in other.values) for one in self.values - other.values)


def _constants(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        yield from _constants(tuple(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _constants(item)


def _is_of_bits(args: Any) -> bool:
    """Whether a view with a dtype (`x.view(torch.int32)`) takes floating numbers for others, or the reverse."""
    into = args[1] if len(args) > 1 else None
    if not isinstance(into, torch.dtype) or into == args[0].dtype:
        return False
    return into.is_floating_point or bool(args[0].is_floating_point())


def _near(one: float, other: float) -> bool:
    # Also of infinities and NaN, which are constants like any other.
    return str(one) == str(other) or math.isclose(one, other, rel_tol=NEAR)


class _NativeEps(TorchFunctionMode):
    """Within it, norms whose `eps` is left to the dtype have that of `native`; in 16 bits that of float32."""

    def __init__(self, native: torch.dtype) -> None:
        super().__init__()
        self._eps = torch.finfo(torch.promote_types(native, torch.float32)).eps

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(zip(("input", "normalized_shape", "weight", "eps"), args, strict=False)) | (kwargs or {})
        if func in (torch.rms_norm, torch.nn.functional.rms_norm) and named.get("eps") is None:
            return func(**(named | {"eps": self._eps}))
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def limits_of(native: torch.dtype, wide: torch.dtype) -> Iterator[None]:
    """Within it, the limits of the dtype `wide` are those of `native` for code that asks torch for them."""
    its = torch.finfo

    def finfo(dtype: torch.dtype | None = None) -> torch.finfo:
        return its() if dtype is None else its(native if dtype is wide else dtype)

    with _NativeEps(native):
        torch.finfo = finfo  # type: ignore[misc, assignment]
        try:
            yield
        finally:
            torch.finfo = its  # type: ignore[misc]
