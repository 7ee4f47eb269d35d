"""Bytes of tensors that are alive at once, counted as they are made: the same on a CPU and on a card."""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Within it, `peak` is the most bytes that tensors made within were seen to hold at once, after any operation;
    `touched` counts those of all operands and results, as often as an operation has them.

    Views count once. Not counted in `peak`: what lay there before, and what a kernel takes for itself and frees. A
    gather counts as reading all of its tensor.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak = self.touched = 0
        # Weak references: the address of a storage is not used again while there is one.
        self._before: dict[int, StorageWeakRef] = {}
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in _tensors((args, kwargs)):
            storage = tensor.untyped_storage()
            if storage._cdata not in self._alive and storage._cdata not in self._before:
                self._before[storage._cdata] = StorageWeakRef(storage)
        result = func(*args, **(kwargs or {}))
        self._alive = {key: held for key, held in self._alive.items() if not held[0].expired()}
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata not in self._before:
                self._alive[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, self.now)
        if not func.is_view and "empty" not in func._schema.name:
            # What is written in place is an operand already.
            seen = _tensors((args, kwargs) if func._schema.is_mutable else (args, kwargs, result))
            self.touched += sum(min(one.nbytes, one.untyped_storage().nbytes()) for one in seen)
        return result

    @property
    def now(self) -> int:
        """Bytes alive."""
        return sum(nbytes for held, nbytes in self._alive.values() if not held.expired())


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if type(leaf) in (torch.Tensor, torch.nn.Parameter)]
