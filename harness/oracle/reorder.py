"""A reference with its sums, or equal numbers, taken in another order: an honest kernel made from any reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.oracle.choices import dimension
from harness.oracle.modes import Mode


class Reordered(Mode):
    """Within it, products, convolutions, sums and means add up their terms in a shuffled order."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        change = _CHANGES.get(func._schema.name)
        if change is not None:
            args = change(tuple(args))
        return func(*args, **(kwargs or {}))


class LastFirst(Mode):
    """Within it, what chooses among numbers sees them the other way round: of equal ones it takes others, the last one
    where it was the first, unless a stable order was asked for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = func._schema.name, kwargs or {}
        x = args[0] if args else None
        alone = name in _OF_ALL and func._overloadname != "dim"
        if name not in _CHOOSING or alone or given.get("stable") or not isinstance(x, torch.Tensor) or not x.dim():
            return func(*args, **given)
        dim = dimension(name, args, given)
        dims = tuple(range(x.dim())) if dim is None else (dim,)
        found = func(x.flip(dims), *args[1:], **given)
        last = (x.numel() if dim is None else x.shape[dim]) - 1
        return last - found if isinstance(found, torch.Tensor) else (found[0], last - found[1])


# What chooses one of all numbers where no dimension is named.
_OF_ALL = ("aten::max", "aten::min", "aten::median", "aten::nanmedian")
_CHOOSING = ("aten::sort", "aten::topk", "aten::argmax", "aten::argmin", "aten::kthvalue", "aten::mode", *_OF_ALL)


def _shuffled(length: int, device: torch.device) -> torch.Tensor:
    generator = torch.Generator().manual_seed(length)
    return torch.randperm(length, generator=generator).to(device)


def _product(left: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """For an operator whose matrices are arguments `left` and the next: the inner dimension shuffled in both.

    What it adds, before `left`, is given in full: handed a bias of one row beside a contiguous matrix of 32768 x 32768,
    PyTorch 2.11 is suspected of leaving it out on an H200 (docs/audit.md).
    """

    def change(args: tuple[Any, ...]) -> tuple[Any, ...]:
        a, b = args[left], args[left + 1]
        order = _shuffled(a.shape[-1], a.device)
        added = [bias.expand(*a.shape[:-1], b.shape[-1]).contiguous() for bias in args[:left]]
        return (*added, a.index_select(-1, order), b.index_select(b.dim() - 2, order), *args[left + 2 :])

    return change


def _convolution(args: tuple[Any, ...]) -> tuple[Any, ...]:
    data, weight, *rest = args
    transposed, groups = rest[4], rest[6]
    if groups != 1 or transposed or data.dim() != weight.dim():
        return args
    order = _shuffled(weight.shape[1], data.device)
    return (data.index_select(1, order), weight.index_select(1, order), *rest)


def _reduction(args: tuple[Any, ...]) -> tuple[Any, ...]:
    data = args[0]
    dims = args[1] if len(args) > 1 and args[1] else range(data.dim())
    for dim in dims if isinstance(dims, (list, tuple, range)) else [dims]:
        if isinstance(dim, int) and data.dim():
            data = data.index_select(dim, _shuffled(data.shape[dim], data.device))
    return (data, *args[1:])


_CHANGES: dict[str, Callable[[tuple[Any, ...]], tuple[Any, ...]]] = {
    "aten::mm": _product(0),
    "aten::bmm": _product(0),
    "aten::addmm": _product(1),
    "aten::baddbmm": _product(1),
    "aten::convolution": _convolution,
    "aten::sum": _reduction,
    "aten::mean": _reduction,
}
