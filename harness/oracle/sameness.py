"""Whether the reference in another dtype is the same function: code may ask for the dtype, and go by the answer.

`torch.finfo(x.dtype).eps` is another constant in float64, `x.view(torch.int32)` takes bits that mean something else,
and `if x.dtype == torch.float16` goes another way. What the reference is compared with then says nothing about
rounding, and whatever is allowed by it is no limit. So what code asks is answered as in a run as it is, and what
operators are given is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

from harness.oracle.formats import is_eight_bits

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
    """Whether a view with a dtype (`x.view(torch.int32)`) takes floating numbers for others, or the reverse. Not of
    8-bit floats, which are the same in every run."""
    into = args[1] if len(args) > 1 else None
    if not isinstance(into, torch.dtype) or into == args[0].dtype:
        return False
    return any(dtype.is_floating_point and not is_eight_bits(dtype) for dtype in (into, args[0].dtype))


def _near(one: float, other: float) -> bool:
    # Also of infinities and NaN, which are constants like any other.
    return str(one) == str(other) or math.isclose(one, other, rel_tol=NEAR)


class Answers(TorchFunctionMode):
    """Within it, what code asks of dtypes is noted in `given`; and answered as in an earlier run, if there are `known`
    answers, one question after the other.

    Asked are a tensor's dtype, the size of its elements, `torch.finfo`, and by norms without an `eps` what that is.
    """

    def __init__(self, known: list[Any] | None = None) -> None:
        super().__init__()
        self.given: list[Any] = []
        self._known = known
        self._finfo = torch.finfo

    @property
    def as_often(self) -> bool:
        """Whether the newest run asked as often as the one before."""
        return self._known is None or len(self.given) == len(self._known)

    def __enter__(self) -> Self:
        self.given = []
        torch.finfo = self._limits  # type: ignore[misc, assignment]
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.finfo = self._finfo  # type: ignore[misc]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _NORMS:
            named = dict(zip(("input", "normalized_shape", "weight", "eps"), args, strict=False)) | (kwargs or {})
            if named.get("eps") is None:
                eps = self._finfo(torch.promote_types(named["input"].dtype, torch.float32)).eps
                return func(**(named | {"eps": self._answer(eps)}))
        result = func(*args, **(kwargs or {}))
        return self._answer(result) if func in _QUESTIONS else result

    def _answer(self, own: Any) -> Any:
        self.given.append(own)
        number = len(self.given)
        return own if self._known is None or number > len(self._known) else self._known[number - 1]

    def _limits(self, *dtype: torch.dtype) -> torch.finfo:
        found: torch.finfo = self._answer(self._finfo(*dtype))
        return found


_NORMS = (torch.rms_norm, torch.nn.functional.rms_norm)
_QUESTIONS = (torch.Tensor.dtype.__get__, torch.Tensor.itemsize.__get__, torch.Tensor.element_size)  # type: ignore[attr-defined]
