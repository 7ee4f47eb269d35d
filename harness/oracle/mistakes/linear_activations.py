"""A reference whose activations are taken for linear: what layers are that are merged into one product, since for small
numbers tanh(x) is nearly x."""

from __future__ import annotations

import math
from typing import Any

import torch

from harness.oracle.mistakes.simpler import Call, Simpler


class LinearActivations(Simpler):
    """Within it, activations are taken to first order about 0."""

    def of(self, func: Any, args: Any, kwargs: Any) -> Call | None:
        name = func.overloadpacket.__name__
        value, slope = _about_zero(name.removesuffix("_"), args)
        if not slope or not args[0].is_floating_point() or "out" in kwargs:
            return None

        def linear() -> Any:
            made = torch.add(torch.mul(args[0], slope), value)
            return args[0].copy_(made) if name.endswith("_") else made

        return linear


# Of torch's operators, what each is at 0, and how steep.
FIRST_ORDER = {
    "tanh": (0.0, 1.0),
    "sin": (0.0, 1.0),
    "sigmoid": (0.5, 0.25),
    "erf": (0.0, 2 / math.sqrt(math.pi)),
    "gelu": (0.0, 0.5),
    "silu": (0.0, 0.5),
    "mish": (0.0, 0.6),
    "atan": (0.0, 1.0),
    "asinh": (0.0, 1.0),
    "elu": (0.0, 1.0),
    "softplus": (math.log(2), 0.5),
    "hardsigmoid": (0.5, 1 / 6),
    "hardswish": (0.0, 0.5),
    "celu": (0.0, 1.0),
}
# Those with bounds, each with its usual ones, which are nothing to numbers between them.
BOUNDED: dict[str, tuple[float | None, float | None]] = {
    "hardtanh": (-1.0, 1.0),
    "clamp": (None, None),
    "clamp_min": (None, None),
    "clamp_max": (None, None),
}


def _about_zero(name: str, args: Any) -> tuple[float, float]:
    """What an operator is at 0, and how steep; nothing of one that is no such function."""
    if name not in BOUNDED:
        return FIRST_ORDER.get(name, (0.0, 0.0))
    given = (None, *args[1:]) if name == "clamp_max" else args[1:]
    low, high = (*given, *BOUNDED[name][len(given) :])[:2]
    within = all(
        bound is None or (isinstance(bound, int | float) and sign * bound > 0) for bound, sign in ((low, -1), (high, 1))
    )
    return (0.0, 1.0) if within else (0.0, 0.0)
