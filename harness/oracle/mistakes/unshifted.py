"""A reference whose exponentials overflow: what a kernel is that forgets to subtract the maximum first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.errors import AssayError
from harness.oracle.mistakes.lookups import PLACES
from harness.oracle.modes import Mode

# Operators that look up places or check ranges. What they are given may now be no number, and on a card that is the end
# of the process.
PARTICULAR = (
    *PLACES,
    *("multinomial", "bernoulli", "binary_cross_entropy", "grid_sampler", "max_unpool"),
)


class Unsafe(AssayError):
    """The reference goes on to an operator that takes no such numbers."""


class Unshifted(Mode):
    """Within it, softmax, log-softmax, logsumexp and softplus take exponentials of numbers as they are. Raises Unsafe
    from the reference's forward."""

    def __init__(self) -> None:
        super().__init__()
        self._exchanged = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = _PLAIN.get(func)
        if plain is None and self._exchanged and any(word in func._schema.name for word in PARTICULAR):
            raise Unsafe(func._schema.name)
        self._exchanged |= plain is not None
        return (plain or func)(*args, **(kwargs or {}))


def _softmax(data: torch.Tensor, dim: int, *_: Any, **__: Any) -> torch.Tensor:
    powers = data.exp()
    return powers / powers.sum(dim, keepdim=True)


def _log_softmax(data: torch.Tensor, dim: int, *_: Any) -> torch.Tensor:
    return data - data.exp().sum(dim, keepdim=True).log()


def _logsumexp(data: torch.Tensor, dim: list[int], keepdim: bool = False) -> torch.Tensor:
    return data.exp().sum(dim, keepdim=keepdim).log()


def _softplus(data: torch.Tensor, beta: float = 1.0, threshold: float = 20.0) -> torch.Tensor:
    return (1 + (beta * data).exp()).log() / beta


# By overload: others write to what they are given.
_PLAIN: dict[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten._softmax.default: _softmax,
    torch.ops.aten._safe_softmax.default: _softmax,
    torch.ops.aten._log_softmax.default: _log_softmax,
    torch.ops.aten.logsumexp.default: _logsumexp,
    torch.ops.aten.softplus.default: _softplus,
}
