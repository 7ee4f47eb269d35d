"""Operators that choose among the numbers along a dimension: where they say which one, and how many they choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Of operators that give an index, alone or behind the value: the dimension's position among the arguments, its default.
CHOOSERS: dict[str, tuple[int, int | None]] = {
    "aten::argmax": (1, None),
    "aten::argmin": (1, None),
    "aten::max": (1, None),
    "aten::min": (1, None),
    "aten::topk": (2, -1),
    "aten::sort": (1, -1),
    "aten::argsort": (1, -1),
    "aten::kthvalue": (2, -1),
    "aten::median": (1, -1),
    "aten::nanmedian": (1, -1),
    "aten::mode": (1, -1),
    "aten::cummax": (1, None),
    "aten::cummin": (1, None),
}
# Those that look at several numbers by their order. What follows a sort, or a median, does not tell how many.
_SEVERAL = ("topk", "sort", "argsort", "kthvalue", "median", "nanmedian")
_COUNTED = ("aten::topk", "aten::kthvalue")


@dataclass(frozen=True)
class Chosen:
    """That several of `length` numbers are chosen, each `step` elements behind the one before; `count` of them, or 0
    where that is not known. `unsorted`: in no order."""

    length: int
    step: int
    count: int
    unsorted: bool = False


def dimension(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    """Along which an operator of `CHOOSERS` chooses; None: among all numbers."""
    position, default = CHOOSERS[name]
    found: int | None = args[position] if len(args) > position else kwargs.get("dim", default)
    return found


def chosen(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Chosen | None:
    """What a call chooses; None of any other operator, of one number alone and of numbers that are not floating."""
    if name.removeprefix("aten::") not in _SEVERAL or not args[0].is_floating_point() or not args[0].dim():
        return None
    along = dimension(name, args, kwargs)
    shape = args[0].shape if along is not None else (args[0].numel(),)
    at = (along or 0) % len(shape)
    count = min(args[1], shape[at] - args[1] + 1) if name == "aten::kthvalue" else args[1] if name in _COUNTED else 0
    step = args[0].stride(at) if along is not None else 1
    return None if count == 1 else Chosen(shape[at], step, count, is_unsorted(name, args, kwargs))


def is_unsorted(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operator is a top-k that need not be sorted."""
    return name == "aten::topk" and not (args[4] if len(args) > 4 else kwargs.get("sorted", True))
