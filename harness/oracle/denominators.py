"""What honest kernels add to a denominator for safety, and whether it matters.

The reference runs with that in all of its own divisions. Where it then gives another answer, because its denominators
are as small, nothing is asked of a kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# As a rule. Who adds as much as 1e-8 gets another answer on inputs that are less small, too.
SAFETY = 1e-12
# Calls with a denominator, by its place among the arguments.
_PLACES = {
    **dict.fromkeys(("div", "divide", "true_divide", "__truediv__", "__itruediv__", "__div__", "__idiv__"), 1),
    **dict.fromkeys(("__rtruediv__", "__rdiv__", "reciprocal", "rsqrt"), 0),
}


class Safe(TorchFunctionMode):
    """Within it, `SAFETY` is added to the size of every denominator. What torch divides by inside of an operator stays,
    since that has an eps of its own."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(getattr(func, "__name__", ""))
        place = _PLACES.get(name if name.startswith("__") else name.rstrip("_"))
        if place is not None and place < len(args) and _is_floating(args[place]):
            below = args[place] + torch.where(args[place] < 0, -SAFETY, SAFETY).to(args[place].dtype)
            # In place it would be something else that changes.
            if place == 1 or not name.endswith("_") or name.startswith("__"):
                args = (*args[:place], below, *args[place + 1 :])
        return func(*args, **(kwargs or {}))


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
