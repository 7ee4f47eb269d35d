"""Parameters that are changed while a module is constructed: copies, and what begins with a structure (begun.py)."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass

import torch
from torch import nn

from harness.wire.begun import Begun, along_itself, has_numbers

# As modules begin, a gate is about half open, so that each step halves what is left of a state. Of one unit in so many
# the gate by which it keeps its state is as far open as these numbers make it, for some fifty to three thousand steps.
HOLDS_ON, LEAST_OPEN, MOST_OPEN = 4, 4.0, 8.0


@dataclass(frozen=True)
class _Changed:
    """A parameter by the name that it was registered by, what it was, and what it was changed to."""

    name: str
    own: nn.Parameter
    began_as: torch.Tensor
    now: torch.Tensor
    is_copy: bool

    def is_there(self) -> bool:
        """Whether it is still that, cast maybe."""
        return self.own.shape == self.now.shape and torch.equal(self.own.detach(), self.now.to(self.own))


class Turns:
    """How many tensors of a name and size came before one. It keeps its turn, however often it is given numbers: an
    empty one that is filled is as one that was full."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, int]]()
        self._known: dict[tuple[int, str], tuple[torch.Tensor, int]] = {}

    def of(self, tensor: torch.Tensor, name: str) -> int:
        """Its turn, by `id`, as long as this lives."""
        which = id(tensor), name
        if which not in self._known:
            self._known[which] = tensor, self._counts[name, tensor.numel()]
            self._counts[name, tensor.numel()] += 1
        return self._known[which][1]


class Moved:
    """What was changed of the parameters of the modules that are constructed, by `id`, as long as this lives.

    What becomes of one depends on the seed, its name and size, and how many of these came before. `structured` are the
    names and sizes of those that have a structure, whichever it is.
    """

    def __init__(self, seed: int, structured: frozenset[tuple[str, int]] = frozenset()) -> None:
        self.structured = structured
        self._seed = seed
        self._begun = Begun(seed)
        self._turns = Turns()
        self._changed: dict[int, _Changed] = {}

    @property
    def parameters(self) -> frozenset[tuple[str, int]]:
        """Their names and sizes."""
        return frozenset((one.name, one.own.numel()) for one in self._changed.values())

    @property
    def undone(self) -> frozenset[tuple[str, int]]:
        """Names and sizes of those that are something else by now, or were frozen: who does not learn may be meant to
        have a structure, though not to be a copy."""
        return frozenset(
            (one.name, one.own.numel())
            for one in self._changed.values()
            if not one.is_there() or not (one.is_copy or one.own.requires_grad)
        )

    def began_as(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """What a parameter was by construction alone; None if it is none of these, or another by now."""
        found = self._changed.get(id(tensor))
        return found.began_as.to(tensor) if found is not None and found.is_there() else None

    def meet(self, parameter: nn.Parameter, name: str) -> None:
        """Others may be copies of it, and come behind it."""
        self._turns.of(parameter, name)
        if has_numbers(parameter):
            self._begun.meet(parameter)

    def register(self, parameter: nn.Parameter, name: str, *, constant: bool = False) -> None:
        """A parameter gets its numbers: they are changed where they have a structure, or are another's. Not where it
        has no gradient, unless it may be a `constant`."""
        turn = self._turns.of(parameter, name)
        # A shared one is registered again.
        if self.began_as(parameter) is not None or not has_numbers(parameter):
            return
        if not (parameter.requires_grad or constant):
            return
        structured = (name, parameter.numel()) in self.structured
        found = self._begun.changed(parameter, f"{name} {parameter.numel()} {turn}", structured=structured)
        if found is not None:
            self._change(parameter, name, *found)

    def forget(self, parameter: torch.Tensor) -> None:
        """All of a parameter's numbers are new: what it was changed from before is nobody's."""
        self._changed.pop(id(parameter), None)

    def hold_on(self, bias: nn.Parameter, name: str, units: int) -> None:
        """The biases of a recurrence's gates, of so many units each, the second of which keeps the state (LSTM: forget;
        GRU: update): some units hold on, so that nobody can leave out what lies far back."""
        now = bias.detach().clone()
        kept = now[units : 2 * units][::HOLDS_ON]
        kept += torch.linspace(LEAST_OPEN, MOST_OPEN, len(kept), dtype=now.dtype, device=now.device)
        self._change(bias, name, now, is_copy=False)

    def copied(self, parameter: nn.Parameter, source: torch.Tensor, path: str) -> None:
        """A parameter of a copied module: it is moved along itself, each copy's by another number of places, where
        anybody could tell by that."""
        turn = self._turns.of(parameter, f"copy {path}")
        seed = self._seed ^ zlib.crc32(f"copy {path} {turn}".encode())
        now = along_itself(parameter.detach(), torch.Generator("cpu").manual_seed(seed))
        if now is not None:
            before = self.began_as(source)
            self._change(parameter, path, now, is_copy=True, began_as=before)

    def _change(
        self,
        parameter: nn.Parameter,
        name: str,
        now: torch.Tensor,
        is_copy: bool,
        began_as: torch.Tensor | None = None,
    ) -> None:
        began_as = parameter.detach().clone() if began_as is None else began_as
        with torch.no_grad():
            parameter.copy_(now)
        self._changed[id(parameter)] = _Changed(name, parameter, began_as, now, is_copy)
