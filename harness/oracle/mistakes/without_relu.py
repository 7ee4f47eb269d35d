"""A reference without its ReLUs, or with what they do to a batch's first entry done to all: what comes of layers that
are merged because a range, which nobody has promised, or the biases alone say where each of them acts."""

from __future__ import annotations

from typing import Any

import torch

from harness.oracle.mistakes.simpler import Call, Simpler

# What does nothing above 0.
BENT = frozenset(("relu", "leaky_relu", "_prelu_kernel", "rrelu_with_noise", "threshold"))


class WithoutRelu(Simpler):
    """Within it, a ReLU hands its input on."""

    def of(self, func: Any, args: Any, kwargs: Any) -> Call | None:
        name = func.overloadpacket.__name__
        if not self._is_one(name.removesuffix("_"), args):
            return None
        return lambda: args[0] if name.endswith("_") else args[0].clone()

    def _is_one(self, name: str, args: Any) -> bool:
        if name in ("clamp", "clamp_min", "hardtanh"):
            # With a bound at 0, as ReLU6.
            return len(args) > 1 and isinstance(args[1], int | float) and args[1] == 0
        return name in BENT


class FrozenRelu(WithoutRelu):
    """Within it, a ReLU acts on each entry of a batch where it acts on the first, and goes on in a straight line."""

    def of(self, func: Any, args: Any, kwargs: Any) -> Call | None:
        if super().of(func, args, kwargs) is None or not args[0].dim() or len(args[0]) < 2:
            return None
        return lambda: _frozen(func, *args, **kwargs)


def _frozen(func: Any, data: torch.Tensor, *others: Any, **kwargs: Any) -> torch.Tensor:
    below = func(-data.abs(), *others, **kwargs)
    made = torch.where(data[:1] > 0, data, torch.where(data > 0, -below, below))
    return data.copy_(made) if func.overloadpacket.__name__.endswith("_") else made
