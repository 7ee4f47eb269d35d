"""What the oracle's torch modes have in common, and one that several runs need."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    """A mode whose operations are never compiled."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asked by torch; yes would load all of torch's compiler, seconds, with the first operation."""
        return False


class Unseen(TorchFunctionMode):
    """Notes in `met` whether code takes hold of a tensor's memory in a way in which it can write without the tensor
    counting that: through `.data`, NumPy, an address."""

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met |= func in _UNCOUNTED
        return func(*args, **(kwargs or {}))


_UNCOUNTED = (
    torch.Tensor.data.__get__,  # type: ignore[attr-defined]
    torch.Tensor.data.__set__,  # type: ignore[attr-defined]
    torch.Tensor.numpy,
    torch.Tensor.__array__,
    torch.Tensor.__dlpack__,
    torch.Tensor.data_ptr,
    torch.Tensor.untyped_storage,
    torch.Tensor.storage,
)
