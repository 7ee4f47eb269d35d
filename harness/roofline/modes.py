"""The torch modes that show an observer each operation of a call."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from harness.errors import door
from harness.roofline.operations import ATTENTION, RECURRENT, arguments_of, name_of


class Watcher(Protocol):
    """Who is shown the operations."""

    def paused(self) -> AbstractContextManager[None]: ...

    def note(self, func: Any, name: str, call: dict[str, Any], args: Any, kwargs: Any, result: Any) -> None: ...


class Operations(TorchDispatchMode):
    """Shows an observer each operation below autograd, carried out as it would have been."""

    supports_higher_order_operators = True

    def __init__(self, observer: Watcher) -> None:
        super().__init__()
        self._observer = observer

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asked by torch; yes would load all of torch's compiler, a second, with the first operation."""
        return False

    @door
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        # In inference mode, what is composed of other operations comes here whole.
        whole = name in ATTENTION | RECURRENT or getattr(func, "overloadpacket", func) in flop_registry
        if not whole and isinstance(func, torch._ops.OpOverload) and func.namespace == "aten":
            with torch._C.DisableTorchFunction(), self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        self._observer.note(func, name, arguments_of(func, args, kwargs), args, kwargs, result)
        return result


class Layers(TorchFunctionMode):
    """Shows an observer attention and recurrent layers as one operation, whatever they are composed of here: attention
    in half precision may multiply in float32, which no program needs to; a GRU may be thousands of operations."""

    def __init__(self, observer: Watcher) -> None:
        super().__init__()
        self._observer = observer

    @door
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is torch.nn.functional.scaled_dot_product_attention:
            names: tuple[str, ...] = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        elif name in RECURRENT:
            names = ("input", "weight0", "weight1", "weight2", "weight3")
        else:
            return func(*args, **kwargs)
        with self._observer.paused():
            result = func(*args, **kwargs)
        self._observer.note(func, name, dict(zip(names, args, strict=False)) | kwargs, args, kwargs, result)
        return result
