"""A reference without its ReLUs: what comes of layers that are merged because a range, which nobody has promised, keeps
each of them from acting."""

from __future__ import annotations

from typing import Any

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
