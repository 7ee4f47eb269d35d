"""Copies of the reference module with other tensors in it, so that the original is never run and never changes."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import torch
from torch import nn

from harness.errors import AssayError

_PLAIN = (OrderedDict, dict, list, set)
_VALUES = (int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.memory_format)
_IDENTITIES = (torch.Tensor, nn.Module, type, FunctionType, BuiltinFunctionType, ModuleType)
# What every module keeps of its own, where its tensors and parts are.
_OF_MODULES = vars(nn.Module()).keys()
Change = Callable[[torch.Tensor], torch.Tensor]


def replica(module: nn.Module, change: Change) -> nn.Module:
    """A deep copy of `module` in which each tensor `t` has become `change(t)`.

    Parameters, buffers and tensors kept as plain attributes are all covered, and tied ones stay tied. Where `change`
    returns its argument, a parameter is shared with the copy; anything else is cloned, since a forward may write it.
    What no copy can be made of (a lock, a function that was compiled) is shared, too.
    """
    memo: dict[int, Any] = {}
    for tensor in _tensors(module):
        if id(tensor) in memo:
            continue
        plain = tensor.detach()
        changed = change(plain)
        if isinstance(tensor, nn.Parameter):
            memo[id(tensor)] = nn.Parameter(changed, requires_grad=tensor.requires_grad)
        else:
            memo[id(tensor)] = changed.clone() if changed is plain else changed
    for part in module.modules():
        # A module has a dozen empty dicts of hooks, each of which deepcopy would take apart.
        memo |= {id(value): type(value)() for value in vars(part).values() if type(value) in _PLAIN and not value}
    # deepcopy looks objects up in its memo first, so it takes ours for these and copies the structure around.
    try:
        return copy.deepcopy(module, dict(memo))
    except Exception:
        # Foreign classes say in any way that they cannot be copied.
        return copy.deepcopy(module, memo | _not_to_be_copied(module, memo))


def _not_to_be_copied(module: nn.Module, memo: dict[int, Any]) -> dict[int, Any]:
    """Attributes of a module and its parts of which deepcopy makes no copy, by their addresses as in its memo."""
    found: dict[int, Any] = {}
    for part in module.modules():
        for name, value in vars(part).items():
            if name in _OF_MODULES:
                continue
            try:
                copy.deepcopy(value, dict(memo))
            except Exception:
                found[id(value)] = value
    return found


class Reused:
    """A replica that runs again and again, since to copy a module takes longer than many a forward.

    After each run its tensors are put back. Raises Unknown where a module keeps something of which nobody can say
    whether a run has changed it.
    """

    def __init__(self, module: nn.Module, change: Change) -> None:
        self.module = replica(module, change)
        self.parameters = list(self.module.parameters())
        self._state = _state(self.module)
        pairs = zip(_tensors(self.module), _tensors(module), strict=True)
        self._tensors = {id(own): (own, given.detach(), own._version) for own, given in pairs}
        self._memory = {_memory(own) for own, _, _ in self._tensors.values()}

    def restore(self, output: Any) -> bool:
        """Put all tensors back after a run; whether the replica is as new. `output` must not have memory of its own."""
        if any(_memory(tensor) in self._memory for tensor in _inside(output)) or _state(self.module) != self._state:
            return False
        for name, (own, given, version) in self._tensors.items():
            if own._version != version:
                own.copy_(given)
                self._tensors[name] = (own, given, own._version)
        return True


class Unknown(AssayError):
    """A module has an attribute that may change in ways that are not seen from outside."""


def _state(module: nn.Module) -> list[Any]:
    """All that the module and its parts keep: plain values by value, tensors, modules and functions by identity."""
    return [(id(part), _seen(vars(part))) for part in module.modules()]


def _seen(value: Any) -> Any:
    if isinstance(value, _VALUES):
        return value
    if isinstance(value, dict):
        # Most of a module's are empty.
        return tuple((key, _seen(item)) for key, item in value.items()) if value else ()
    if isinstance(value, _IDENTITIES):
        return id(value)
    if isinstance(value, (list, tuple, set)):
        return tuple(_seen(item) for item in value)
    raise Unknown(type(value).__name__)


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else id(tensor)


def batch_statistics(module: nn.Module) -> bool:
    """Whether a module in it normalises over the batch, so that batch entries are not independent."""
    norms = (nn.modules.batchnorm._BatchNorm,)
    return any(isinstance(m, norms) and (m.training or m.running_mean is None) for m in module.modules())


def _tensors(module: nn.Module) -> Iterator[torch.Tensor]:
    for part in module.modules():
        yield from _inside(vars(part))


def _inside(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _inside(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _inside(item)
