"""A reference that is given a part of its inputs, and may be told to look up places that are no longer there.

On the CPU that raises an exception. On a card it ends the process, so the places are looked at first.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.errors import AssayError
from harness.oracle.modes import Mode

# Words in the names of operators that look up places by integers, and those of losses over classes.
PLACES = ("index", "gather", "scatter", "embedding", "take", "put", "one_hot", "bincount")
LOSSES = ("nll_loss", "ctc_loss")


class OutOfPlace(AssayError):
    """An operator is to look up a place that is not there, or that may not be."""


class Lookups(Mode):
    """Within it, operators look up only places that are there. Raises OutOfPlace from the reference's forward."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if any(word in name for word in (*PLACES, *LOSSES)) and not _are_there(name, args, kwargs or {}):
            raise OutOfPlace(name)
        return func(*args, **(kwargs or {}))


def _are_there(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    if name == "embedding":
        return _within(args[1], args[0].shape[0])
    if name in ("gather", "index_select"):
        return _within(args[2], args[0].shape[args[1]])
    if name in ("nll_loss_forward", "nll_loss2d_forward"):
        target, left_out = args[1], args[4] if len(args) > 4 else kwargs.get("ignore_index", -100)
        return _within(target[target != left_out], args[0].shape[1 if args[0].dim() > 1 else 0])
    given = [one for arg in (*args, *kwargs.values()) for one in (arg if isinstance(arg, list | tuple) else [arg])]
    # Masks tell by their own shape, which is checked before anything is looked up.
    return not any(_is_integer(one) for one in given)


def _within(places: torch.Tensor, count: int) -> bool:
    return not places.numel() or (int(places.min()) >= 0 and int(places.max()) < count)


def _is_integer(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and not (
        given.is_floating_point() or given.is_complex() or given.dtype is torch.bool
    )
