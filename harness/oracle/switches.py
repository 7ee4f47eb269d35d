"""What PyTorch's switches allow: TF32 in products of float32, for convolutions and recurrent layers by default.

Which of its kernels a library takes, and so whether it makes use of the permission, depends on layout and shape. What
is allowed to the reference's call is allowed to a candidate that makes the same call in another layout.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.errors import AssayError, door
from harness.oracle.formats import TF32, round_to
from harness.oracle.modes import Mode
from harness.roofline.flops import tf32_allowed

# By operator, the operands that tensor cores round; of recurrent layers all, weights in one buffer among them.
_CONVOLUTIONS: dict[str, slice] = {"aten::convolution": slice(0, 2), "aten::_cudnn_rnn": slice(None)}
_PRODUCTS: dict[str, slice] = {
    "aten::mm": slice(0, 2),
    "aten::bmm": slice(0, 2),
    "aten::addmm": slice(1, 3),
    "aten::baddbmm": slice(1, 3),
    "aten::addbmm": slice(1, 3),
}


class NotPermitted(AssayError):
    """The switches allow nothing to the operators that were called."""


class Permitted(Mode):
    """Within it, float32 operands are rounded to TF32 wherever the switches allow that on a `device_type`.

    `met` tells afterwards whether any were. Sums stay in float32.
    """

    def __init__(self, device_type: str = "cuda") -> None:
        super().__init__()
        self.met = False
        self._device_type = device_type

    @door
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        table = _CONVOLUTIONS if name in _CONVOLUTIONS else _PRODUCTS
        if name in table and tf32_allowed(convolves=table is _CONVOLUTIONS):
            which = table[name]
            rounded = [self._rounded(operand) for operand in args[which]]
            args = (*args[: which.start or 0], *rounded, *(args[which.stop :] if which.stop else ()))
        return func(*args, **(kwargs or {}))

    def _rounded(self, operand: Any) -> Any:
        if isinstance(operand, (list, tuple)):
            return [self._rounded(one) for one in operand]
        is_it = isinstance(operand, torch.Tensor) and operand.dtype is torch.float32
        if not is_it or operand.device.type != self._device_type:
            return operand
        self.met = True
        return round_to(operand, TF32)
