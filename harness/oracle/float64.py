"""Running foreign code in float64 whatever dtypes it names: every operation is caught just before its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch

from harness.errors import door
from harness.oracle.formats import is_eight_bits
from harness.oracle.lengths import Longest, grid_of
from harness.oracle.modes import Mode
from harness.oracle.sameness import Answers, Constants

# Draws from the generator, which give other numbers in another dtype. Fused attention carries the same tag as these
# for its dropout, so the tag alone does not do.
_DRAWS = (
    "aten::rand", "aten::rand_like", "aten::randn", "aten::randn_like", "aten::normal", "aten::normal_",
    "aten::uniform", "aten::uniform_", "aten::bernoulli", "aten::bernoulli_", "aten::exponential",
    "aten::exponential_", "aten::log_normal_", "aten::cauchy_", "aten::geometric_", "aten::multinomial",
    "aten::poisson",
)  # fmt: skip

# What code asks of this in a run is answered as in another one.
_limits = torch.finfo


@dataclass(frozen=True)
class Operation:
    """One call of an operator, as it reached its kernel."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


class Widened(Mode):
    """Within it, floating tensors are made and computed in `wide`, even by code that asks for less.

    `x.half()` becomes a copy, `torch.zeros(n, dtype=torch.float32)` is made in float64, mixed operands meet in
    float64. What is cast to 8-bit floats is rounded to them all the same, unless `smooth`: so few numbers are a grid
    that the code asks for, as `round` is, and not how exactly it calculates. Random draws are made in `native`, the
    dtype that the reference runs in, and widened afterwards, so that a dropout drops the same elements. Code that asks
    for its dtype gets the `answers` of a run without `wide`, which has them afterwards. `keep` names operators whose
    calls are to be recorded in `seen`; afterwards `attention` tells whether fused attention was called, `longest` how
    long the longest sum was, and `constants` what `sameness` goes by. Without a `wide` dtype it only records.
    """

    def __init__(
        self,
        native: torch.dtype,
        wide: torch.dtype | None = torch.float64,
        keep: frozenset[str] = frozenset(),
        answers: list[Any] | None = None,
        smooth: bool = False,
    ) -> None:
        super().__init__()
        self.native = native
        self.wide = wide
        self.keep = keep
        self.smooth = smooth
        self.constants = Constants()
        self.answers = Answers(answers)
        self.seen: list[Operation] = []
        self.attention = False
        self.longest = Longest()

    def __enter__(self) -> Self:
        self.longest.begin()
        self.answers.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.answers.__exit__(*error)

    @door
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # What is asked here is no question of the code's.
        with torch._C.DisableTorchFunction():
            return self._dispatched(func, args, dict(kwargs or {}))

    def _dispatched(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        name = func._schema.name
        # The second is how the composed form of attention shows.
        self.attention |= "scaled_dot_product" in name or name.endswith(("_safe_softmax", "_multi_head_attention"))
        self.longest.meet(name, args, kwargs)
        self.constants.meet(name, args, kwargs)
        if self.wide is not None:
            if name in _DRAWS:
                return self._draw(func, name, args, kwargs)
            if name == "aten::native_dropout":
                # The mask comes from ones of the native dtype; the data then keeps its digits.
                x, probability, train = args
                ones, mask = func(torch.ones_like(x, dtype=self.native), probability, train)
                return (x * mask / (1 - probability) if probability < 1 else x * ones), mask
            if self.smooth and (left := self._left_as_it_is(name, args, kwargs)) is not None:
                return left
            if _is_floating(kwargs.get("dtype")):
                kwargs["dtype"] = self._wide(kwargs["dtype"])
            args, kwargs = self._meet(name, args, kwargs)
        result = func(*args, **kwargs)
        if name in self.keep:
            self.seen.append(Operation(name, args, kwargs, result))
        return result

    def _left_as_it_is(self, name: str, args: Any, kwargs: dict[str, Any]) -> torch.Tensor | None:
        """What comes of an operator that rounds to a grid, if it only keeps to the grid's range; None of any other."""
        into = grid_of(name, args, kwargs)
        if into is None:
            return None
        taken = args[1] if name == "aten::copy_" else args[0]
        kept = taken.to(self.wide, copy=True)
        if is_eight_bits(into):
            limits = _limits(into)
            kept = kept.clamp_(limits.min, limits.max)
        return args[0].copy_(kept) if name.endswith("_") else kept

    def _wide(self, dtype: torch.dtype) -> torch.dtype | None:
        if dtype.is_complex:
            return torch.complex128 if self.wide is torch.float64 else torch.complex64
        return dtype if is_eight_bits(dtype) and not self.smooth else self.wide

    def _meet(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """All floating operands in the wide dtype, if one of them is; in-place targets are left as they are."""
        tensors = [t for t in _flat((args, kwargs)) if _is_floating(t.dtype) and not is_eight_bits(t.dtype)]
        if name == "aten::copy_" or not any(t.dtype != self._wide(t.dtype) for t in tensors):
            return args, kwargs
        if not any(t.dtype == self._wide(t.dtype) for t in tensors):
            return args, kwargs
        target = args[0] if name.endswith("_") else None

        def widen(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and _is_floating(value.dtype) and value is not target:
                return value.to(self._wide(value.dtype))
            if isinstance(value, (list, tuple)):
                return type(value)(widen(item) for item in value)
            return value

        return tuple(widen(value) for value in args), {key: widen(value) for key, value in kwargs.items()}

    def _draw(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        def narrow(value: Any) -> Any:
            wide = isinstance(value, torch.Tensor) and value.dtype == self.wide
            return value.to(self.native) if wide else value

        if kwargs.get("dtype") == self.wide:
            kwargs["dtype"] = self.native
        result = func(*(narrow(value) for value in args), **kwargs)
        if name.endswith("_"):
            return args[0].copy_(result) if result is not args[0] else result
        return result.to(self.wide) if isinstance(result, torch.Tensor) and result.is_floating_point() else result


def _is_floating(dtype: Any) -> bool:
    return isinstance(dtype, torch.dtype) and (dtype.is_floating_point or dtype.is_complex)


def _flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _flat(item)]
    return []
