"""How many terms go into the longest sum of a computation, read off its operators as they run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Longest:
    """The longest sum met: of anything, and of products alone (what tensor cores add up)."""

    any: int = 1
    product: int = 0

    def meet(self, name: str, args: tuple[Any, ...]) -> None:
        """Take note of an operator about to run."""
        for table, is_product in ((_PRODUCTS, True), (_REDUCTIONS, False)):
            if name in table:
                try:
                    length = table[name](args)
                except (IndexError, TypeError, AttributeError, ZeroDivisionError):
                    # An overload with other arguments: then nothing is known of it.
                    continue
                self.any = max(self.any, length)
                if is_product:
                    self.product = max(self.product, length)


def _inner(position: int) -> Callable[[tuple[Any, ...]], int]:
    return lambda args: int(args[position].shape[-1])


def _attention(args: tuple[Any, ...]) -> int:
    return int(max(args[0].shape[-1], args[1].shape[-2]))


def _along(args: tuple[Any, ...]) -> int:
    return int(args[0].shape[args[1]])


def _over(args: tuple[Any, ...]) -> int:
    """Terms of a reduction over the dimensions in the second argument; over all, if there is none."""
    x = args[0]
    dims = args[1] if len(args) > 1 else None
    if dims is None or dims == [] or not isinstance(dims, (int, list, tuple)):
        return int(x.numel())
    return math.prod(x.shape[d] for d in ([dims] if isinstance(dims, int) else dims))


def _per_channel(args: tuple[Any, ...]) -> int:
    return int(args[0].numel() // args[0].shape[1])


def _per_group(args: tuple[Any, ...]) -> int:
    x, _, _, batch, _, _, groups = args[:7]
    return int(x.numel() // (batch * groups))


_PRODUCTS: dict[str, Callable[[tuple[Any, ...]], int]] = {
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::mv", "aten::dot"), _inner(0)),
    **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addmv", "aten::addbmm"), _inner(1)),
    "aten::convolution": lambda args: int(math.prod(args[1].shape[1:])),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_scaled_dot_product_efficient_attention": _attention,
}

_REDUCTIONS: dict[str, Callable[[tuple[Any, ...]], int]] = {
    **dict.fromkeys(("sum", "mean", "var", "std", "logsumexp", "norm", "linalg_vector_norm", "var_mean"), _over),
    **dict.fromkeys(("_softmax", "_log_softmax", "_safe_softmax", "cumsum"), _along),
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"), lambda args: int(args[0].numel())),
    "native_layer_norm": lambda args: int(math.prod(args[1])),
    "native_batch_norm": _per_channel,
    "native_group_norm": _per_group,
    "nll_loss_forward": lambda args: int(torch.as_tensor(args[1]).numel()),
}
_REDUCTIONS = {f"aten::{name}": length for name, length in _REDUCTIONS.items()}
