"""A reference whose exponentials overflow: what a kernel is that forgets to subtract the maximum first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.oracle.modes import Mode


class Unshifted(Mode):
    """Within it, softmax, log-softmax, logsumexp and softplus take exponentials of numbers as they are."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _PLAIN.get(func._schema.name, func)(*args, **(kwargs or {}))


def _softmax(data: torch.Tensor, dim: int, *_: Any) -> torch.Tensor:
    powers = data.exp()
    return powers / powers.sum(dim, keepdim=True)


def _log_softmax(data: torch.Tensor, dim: int, *_: Any) -> torch.Tensor:
    return data - data.exp().sum(dim, keepdim=True).log()


def _logsumexp(data: torch.Tensor, dim: list[int], keepdim: bool = False) -> torch.Tensor:
    return data.exp().sum(dim, keepdim=keepdim).log()


def _softplus(data: torch.Tensor, beta: float = 1.0, threshold: float = 20.0) -> torch.Tensor:
    return (1 + (beta * data).exp()).log() / beta


_PLAIN: dict[str, Callable[..., torch.Tensor]] = {
    "aten::_softmax": _softmax,
    "aten::_safe_softmax": _softmax,
    "aten::_log_softmax": _log_softmax,
    "aten::logsumexp": _logsumexp,
    "aten::softplus": _softplus,
}
