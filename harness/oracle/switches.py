"""Lower precision as tensor cores have it: the operands of products are rounded, and nothing else.

What PyTorch's switches allow of that: TF32 in products of float32, for convolutions and recurrent layers by default.
Which of its kernels a library takes, and so whether it makes use of the permission, depends on layout and shape. What
is allowed to the reference's call is allowed to a candidate that makes the same call in another layout.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.errors import AssayError, door
from harness.oracle.formats import TF32, Format, round_to
from harness.oracle.modes import Mode
from harness.roofline.flops import tf32_allowed

_ALL = slice(None)
# By operator, the operands that tensor cores round; of recurrent layers all, weights in one buffer among them.
_CONVOLUTIONS: dict[str, slice] = {
    "aten::convolution": slice(0, 2),
    "aten::_cudnn_rnn": _ALL,
    "aten::mkldnn_rnn_layer": _ALL,
}
_PRODUCTS: dict[str, slice] = {
    "aten::mm": slice(0, 2),
    "aten::bmm": slice(0, 2),
    "aten::addmm": slice(1, 3),
    "aten::baddbmm": slice(1, 3),
    "aten::addbmm": slice(1, 3),
}
# No switch of PyTorch's is about these. Within the last ones are products of what is computed there.
_OTHERS: dict[str, slice] = {
    **dict.fromkeys(("aten::mv", "aten::dot", "aten::vdot", "aten::_euclidean_dist"), slice(0, 2)),
    "aten::addmv": slice(1, 3),
    "aten::addr": slice(1, 3),
    "aten::_trilinear": slice(0, 3),
    **dict.fromkeys(
        (
            "aten::_scaled_dot_product_flash_attention",
            "aten::_scaled_dot_product_flash_attention_for_cpu",
            "aten::_scaled_dot_product_efficient_attention",
            "aten::_scaled_dot_product_cudnn_attention",
            "aten::_scaled_dot_product_fused_attention_overrideable",
        ),
        slice(0, 3),
    ),
    "aten::_native_multi_head_attention": _ALL,
    "aten::_transformer_encoder_layer_fwd": _ALL,
}


class NotPermitted(AssayError):
    """The switches allow nothing to the operators that were called."""


class Products(Mode):
    """Within it, floating operands of products are rounded to a format. Sums and results stay as they are.

    `met` tells afterwards whether there were any.
    """

    def __init__(self, format: Format) -> None:
        super().__init__()
        self.met = False
        self._format = format

    @door
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # In place, too.
        which = self._operands(func._schema.name.rstrip("_"))
        if which is not None:
            rounded = [self._rounded(operand) for operand in args[which]]
            args = (*args[: which.start or 0], *rounded, *(args[which.stop :] if which.stop else ()))
        return func(*args, **(kwargs or {}))

    def _operands(self, name: str) -> slice | None:
        """Which arguments of an operator are to be rounded; None where it is no product."""
        return _CONVOLUTIONS.get(name) or _PRODUCTS.get(name) or _OTHERS.get(name)

    def _takes(self, tensor: torch.Tensor) -> bool:
        return tensor.layout is torch.strided and (tensor.is_floating_point() or tensor.is_complex())

    def _rounded(self, operand: Any) -> Any:
        if isinstance(operand, (list, tuple)):
            return [self._rounded(one) for one in operand]
        if not isinstance(operand, torch.Tensor) or not self._takes(operand):
            return operand
        self.met = True
        return round_to(operand, self._format)


class Permitted(Products):
    """Within it, float32 operands are rounded to TF32 wherever the switches allow that on a `device_type`."""

    def __init__(self, device_type: str = "cuda") -> None:
        super().__init__(TF32)
        self._device_type = device_type

    def _operands(self, name: str) -> slice | None:
        table = _CONVOLUTIONS if name in _CONVOLUTIONS else _PRODUCTS
        return table.get(name) if name in table and tf32_allowed(convolves=table is _CONVOLUTIONS) else None

    def _takes(self, tensor: torch.Tensor) -> bool:
        return tensor.dtype is torch.float32 and tensor.device.type == self._device_type
