"""Copies of the reference module with other tensors in it, so that the original is never run and never changes."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

_PLAIN = (OrderedDict, dict, list, set)
Change = Callable[[torch.Tensor], torch.Tensor]


def replica(module: nn.Module, change: Change) -> nn.Module:
    """A deep copy of `module` in which each tensor `t` has become `change(t)`.

    Parameters, buffers and tensors kept as plain attributes are all covered, and tied ones stay tied. Where `change`
    returns its argument, a parameter is shared with the copy; anything else is cloned, since a forward may write it.
    """
    memo: dict[int, Any] = {}
    for tensor in _tensors(module):
        if id(tensor) in memo:
            continue
        plain = tensor.detach()
        changed = change(plain)
        if isinstance(tensor, nn.Parameter):
            memo[id(tensor)] = nn.Parameter(changed, requires_grad=False)
        else:
            memo[id(tensor)] = changed.clone() if changed is plain else changed
    for part in module.modules():
        # A module has a dozen empty dicts of hooks, each of which deepcopy would take apart.
        memo |= {id(value): type(value)() for value in vars(part).values() if type(value) in _PLAIN and not value}
    # deepcopy looks objects up in its memo first, so it takes ours for these and copies the structure around.
    return copy.deepcopy(module, memo)


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
