"""Moving numbers by a few units in the last place, to see which decisions are made by rounding alone."""

from __future__ import annotations

from typing import Any

import torch

from harness.errors import door
from harness.oracle.formats import is_eight_bits, is_of_eight_bits, jitter, on_grid
from harness.oracle.modes import Mode

# What rounds its first operand, a number, to an integer.
_STEPS = frozenset({"aten::floor", "aten::ceil", "aten::round", "aten::trunc", "aten::floor_divide"})
_COPIES = frozenset({"aten::_to_copy", "aten::copy_"})
# What makes no numbers that there were not before, or those of the other sign.
_MOVES = "clone contiguous _to_copy cat stack flip roll repeat repeat_interleave constant_pad_nd tril triu where"
_PLACES = "index index_select index_put index_copy gather scatter take masked_fill masked_select select_scatter"
_CHOICES = "slice_scatter amax amin max min maximum minimum clamp clamp_min clamp_max relu abs neg sign"
_CARRYING = frozenset(f"{_MOVES} {_PLACES} {_CHOICES}".split())


class Mover:
    """Moves each tensor that it is called with by up to `ulps` units in the last place, in one way for each `draw`.

    Numbers on a grid are known exactly, and stay, as does what is no dense floating tensor. Equal ones move `alike`, in
    whichever tensors they are.
    """

    def __init__(self, ulps: int, draw: int, alike: bool = False) -> None:
        self._ulps, self._draw, self._alike = ulps, draw, alike
        self._generators: dict[torch.device, torch.Generator] = {}

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided or not tensor.is_floating_point() or on_grid(tensor):
            return tensor
        device = tensor.device
        generator = self._generators.setdefault(device, torch.Generator(device).manual_seed(self._draw))
        if self._alike:
            generator.manual_seed(self._draw)
        return jitter(tensor, self._ulps, generator, self._alike)


class Stepwise(Mode):
    """Within it, what the code has computed is moved before it is rounded to integers, or to 8-bit floats.

    Another formula for it rounds otherwise, whether or not the inputs move it. What was given is left as it is.
    """

    def __init__(self, move: Mover) -> None:
        super().__init__()
        self._move = move
        # Addresses of what operators have made. What was given lives as long, so it has none of these.
        self._made: set[int] = set()

    @door
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        taken = _rounded(func._schema.name, args, kwargs)
        if taken is not None and taken.untyped_storage().data_ptr() in self._made and not _are_integers(taken):
            moved = self._move(taken)
            args = tuple(moved if one is taken else one for one in args)
            if args[0] is moved and func._schema.name.endswith("_"):
                args = (taken.copy_(moved), *args[1:])
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.is_floating_point() and result.layout is torch.strided:
            given = {t.untyped_storage().data_ptr() for t in args if isinstance(t, torch.Tensor)}
            if (made := result.untyped_storage().data_ptr()) not in given:
                self._made.add(made)
        return result


class Everywhere(Mode):
    """Within it, all that operators calculate is moved: another order, or a fused product and sum, rounds otherwise."""

    def __init__(self, move: Mover) -> None:
        super().__init__()
        self._move = move

    @door
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        # What is written in place, or is a view, has others' memory.
        if not isinstance(result, torch.Tensor) or func.is_view or func._schema.is_mutable:
            return result
        return self._move(result)


class Calculated(Everywhere):
    """The same but for what only carries numbers from place to place, or chooses among them: copies of an input equal
    it still, and two results that were equal by their rounding no longer are."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name.removeprefix("aten::").removesuffix("_") in _CARRYING:
            return func(*args, **(kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs)


def _are_integers(tensor: torch.Tensor) -> bool:
    """Whether a step before has made integers of all, which another formula gets as they are."""
    return torch.equal(tensor, tensor.round())


def _rounded(name: str, args: Any, kwargs: Any) -> torch.Tensor | None:
    """The floating operand that an operator makes integers of, or 8-bit floats."""
    if name in _COPIES:
        into = args[0].dtype if name == "aten::copy_" else kwargs.get("dtype")
        taken = args[1] if name == "aten::copy_" else args[0]
        whole = into is not None and not (into.is_floating_point or into.is_complex or into is torch.bool)
        whole = whole or is_eight_bits(into)
    else:
        taken = args[0] if args else None
        whole = name.removesuffix("_") in _STEPS or bool(name.startswith("aten::div") and kwargs.get("rounding_mode"))
    dense = isinstance(taken, torch.Tensor) and taken.layout is torch.strided and taken.is_floating_point()
    return taken if whole and dense and not is_of_eight_bits(taken) else None
