"""What `topk(sorted=False)` gives in no order that anybody has promised: a candidate's may be any.

Which parts of the output follow that order is seen by running the reference with every such operator's result turned
round. A candidate's are put into the reference's order, row by row, before they are compared: only moved, and all of
them alike, so that an index still has to belong to its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle.choices import dimension, is_unsorted
from harness.oracle.exact import ExactReference
from harness.oracle.modes import Mode
from harness.oracle.structure import flatten, rebuild

# Of the largest number's last digit: what is calculated behind the operator is so much the same in either order.
ROUNDING = 4.0


class _TurnedRound(Mode):
    """Within it, what a top-k gives that need not be sorted comes in reverse."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        found = func(*args, **given)
        if not is_unsorted(func._schema.name, args, given) or not found[0].dim():
            return found
        dim = dimension(func._schema.name, args, given)
        assert dim is not None
        return tuple(one.flip(dim) for one in found)


@dataclass(frozen=True)
class Unsorted:
    """Leaves of an output, by path, that are in the same order along a dimension; the order is told by `key`."""

    key: str
    dim: int
    following: frozenset[str]

    def in_order(self, outputs: Any, right: dict[str, Any]) -> Any:
        """The outputs with these leaves in the order of the `right` ones; as they are where these have no order."""
        leaves = dict(flatten(outputs))
        own, given = (of[self.key].movedim(self.dim, -1) for of in (right, leaves))
        slots = _slots(given, own.to(given.device))
        moved = {path: _moved(leaf, slots, self.dim) for path, leaf in leaves.items() if path in self.following}
        return rebuild(outputs, [moved.get(path, leaf) for path, leaf in flatten(outputs)])


def unsorted(reference: ExactReference, inputs: list[Any], seed: int, native: Any) -> Unsorted | None:
    """What of the reference's output is in no promised order; None where nothing is, or what is cannot be told. One run
    of the reference."""
    turned = dict(flatten(reference.native(inputs, seed, mode=_TurnedRound())))
    leaves = {path: leaf for path, leaf in flatten(native) if isinstance(leaf, torch.Tensor)}
    changed = {path for path, leaf in leaves.items() if not torch.equal(turned[path], leaf)}

    def follows(path: str, dim: int) -> bool:
        """Whether a leaf came the other way round along a dimension."""
        if path not in changed or dim >= leaves[path].dim():
            return False
        other = leaves[path].flip(dim)
        # Nearly equal numbers in another order may be nearly the same, too.
        exactly = torch.equal(turned[path], other)
        return exactly or (_same(turned[path], other) and not _same(turned[path], leaves[path]))

    # Indices first: no two are equal.
    for key in sorted(changed, key=lambda path: leaves[path].is_floating_point()):
        for dim in range(leaves[key].dim()):
            following = {path for path in changed if follows(path, dim)}
            shapes = {leaves[path].shape for path in following}
            # A leaf with more dimensions has rows of numbers where the key has one.
            upto = leaves[key].shape[: dim + 1]
            alike = len(shapes) == 1 or (dim == leaves[key].dim() - 1 and {one[: dim + 1] for one in shapes} == {upto})
            others = all(_same(turned[path], leaves[path]) for path in changed - following)
            if key in following and alike and others:
                return Unsorted(key, dim, frozenset(following))
    return None


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two leaves are the same, but for the rounding of what is calculated behind the operator."""
    if not one.is_floating_point():
        return torch.equal(one, other)
    off, size = ((one - other).abs(), other.abs()) if one.numel() else (one, one)
    return not one.numel() or bool(off.nan_to_num(0.0).max() <= ROUNDING * torch.finfo(one.dtype).eps * size.max())


def _slots(given: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Where each number of a row belongs, so that equal ones stand at the same place in both; the others in the places
    that are left. Of numbers that are not whole, by their order."""
    if given.is_floating_point():
        return torch.empty_like(given, dtype=torch.int64).scatter_(-1, given.argsort(-1), own.argsort(-1))
    length = own.shape[-1]
    ordered, order = own.contiguous().sort(-1)
    at = torch.searchsorted(ordered, given.to(ordered.dtype).contiguous()).clamp_(max=length - 1)
    known = ordered.gather(-1, at) == given
    slots = order.gather(-1, at)
    taken = torch.zeros_like(known).scatter(-1, slots, known)
    left, free = known.to(torch.uint8).argsort(dim=-1, stable=True), taken.to(torch.uint8).argsort(dim=-1, stable=True)
    among = torch.arange(length, device=own.device) < (~known).sum(-1, keepdim=True)
    slots = slots.scatter(-1, left, torch.where(among, free, slots.gather(-1, left)))
    # Of an index that comes twice, nothing is moved: no answer is made of parts of another.
    places = torch.arange(length, device=own.device).expand_as(slots)
    return torch.where((slots.sort(-1).values == places).all(-1, keepdim=True), slots, places)


def _moved(leaf: torch.Tensor, slots: torch.Tensor, dim: int) -> torch.Tensor:
    to = slots.movedim(-1, dim)
    for _ in range(leaf.dim() - to.dim()):
        to = to.unsqueeze(-1)
    return torch.empty_like(leaf).scatter_(dim, to.expand_as(leaf), leaf)
