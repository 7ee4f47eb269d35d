"""Weights that begin with a structure which no training would keep: copies of others, identities, equal rows or
columns, a part that is repeated, rows at right angles, numbers in order, and whatever else was not drawn number by
number, as whoever watches a module's construction says (judge.origins).

A kernel could use it unseen: compute one of several experts, leave out a product by an identity, take powers of one
exponential, distances without the rotation before them, a rounded number in place of the nearest level. So such
parameters are changed: copies are moved along themselves, numbers in order keep that and their ends, what is at right
angles is stretched both ways and scattered a little, what has none of these structures is scaled element by element,
as copies are, too, and all others are scattered besides.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import torch
from torch.nn.parameter import is_lazy

from harness.machine.pauses import pause
from harness.wire import layout

# Elements, or rows, that are looked at first: nearly all matrices have no structure there.
FIRST = 8
# What is left of an element, times 0.5 to 1.5, and what is added, as a share of all elements' size: a matrix that is an
# identity to begin with has eigenvalues near 1 and below, so that a state that goes through it again and again stays.
KEPT, SCATTERED = 0.6, 0.3
# Of pairs of rows that begin alike, so many are looked at; and a product of two random rows of n elements is
# about 1 / sqrt(n) of their sizes, hardly ever less than this share of that for all of the first ones.
MOST_ALIKE, RIGHT_ANGLE = 64, 0.1
# Two of n random rows are equal with a chance of n squared in two to the power of their bits, and once in two to this.
SURE_BITS = 10
# A matrix of which more than this share is next to nothing, beside its usual size, would keep that.
MANY, NOTHING = 1 / 8, 1e-3
# As far as so many elements tell.
LOOKED_AT = 1 << 16
# What is added to numbers that are stretched, as a share of their size: rows and columns alone would leave a block, or
# a transform that there is a fast way for, as it is.
ADDED = 0.15


class Begun:
    """Parameters as they were met, one after the other; what is drawn depends on the seed and a parameter's name."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._met: dict[tuple[torch.Size, torch.dtype], list[torch.Tensor]] = {}

    def meet(self, tensor: torch.Tensor) -> None:
        """Others may be copies of it, as it will be."""
        own = tensor.detach()
        if _can_tell(own):
            self._met.setdefault((tensor.shape, tensor.dtype), []).append(own)

    def changed(
        self, tensor: torch.Tensor, name: str, *, frozen: bool = False, structured: bool = False
    ) -> tuple[torch.Tensor, bool] | None:
        """What a parameter is to be in place of what it began as, and whether only because it is a copy; None where
        nothing tells it from drawn numbers. `frozen`: it may be meant to have a structure, but not to be a copy.
        `structured`: it has one, of whatever kind."""
        pause()
        before = self._met.setdefault((tensor.shape, tensor.dtype), [])
        own = tensor.detach()
        if own.numel() < 2 or own.element_size() == 1:
            return None
        can_tell, change = _can_tell(own), None
        if not frozen:
            change = (_change(own) if can_tell else None) or (_otherwise if structured else None)
        is_copy = change is None and can_tell and any(_same(own, other) for other in before if not _is(own, other))
        if can_tell:
            # As it was, and as it is from then on.
            before += [own.clone(), own] if change else [own]
        generator = torch.Generator("cpu").manual_seed(self._seed ^ zlib.crc32(f"begun {name}".encode()))
        made = (along_itself if is_copy else change or _as_it_is)(own, generator)
        return None if made is None else (made, is_copy)


def _as_it_is(tensor: torch.Tensor, generator: torch.Generator) -> None:
    return None


def has_numbers(tensor: torch.Tensor) -> bool:
    """Whether it is one of floating or complex numbers that can be looked at."""
    if is_lazy(tensor) or tensor.is_meta or not layout.is_strided(tensor):
        return False
    # Nor is anything written to what is spread out over itself.
    if not layout.apart(tensor.shape, tensor.stride()):
        return False
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.numel() > 0


def _is(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both lie in one place, as what is shared."""
    return one.data_ptr() == other.data_ptr()


def _can_tell(tensor: torch.Tensor) -> bool:
    """Whether it can be told from another one of its numbers. Eight-bit floats cannot be compared."""
    return tensor.numel() > 1 and tensor.element_size() > 1 and not _is_constant(tensor)


def along_itself(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor | None:
    """The numbers of a tensor, each some places further on, and half to one and a half times as large; None where that
    is no other tensor."""
    if not _can_tell(tensor):
        return None
    places = 1 + int(torch.randint(tensor.numel() - 1, (), generator=generator, device="cpu"))
    return _scaled(tensor.reshape(-1).roll(places).view_as(tensor), generator)


Change = Callable[[torch.Tensor, torch.Generator], torch.Tensor | None]


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.reshape(-1)[:FIRST], other.reshape(-1)[:FIRST]) and torch.equal(one, other)


def _is_constant(tensor: torch.Tensor) -> bool:
    flat = tensor.reshape(-1)
    return _same(flat, flat[:1].expand_as(flat))


def _change(tensor: torch.Tensor) -> Change | None:
    """What becomes of a tensor with a structure; None where it has none."""
    own = tensor.squeeze()
    if own.dim() < 2:
        return _in_order_otherwise if own.numel() >= FIRST and _in_order(own) else None
    rows = own.reshape(len(own), -1)
    # All rows only where the first ones have it.
    if any(holds(rows[:FIRST]) and holds(rows) for holds in (_equal_rows, _equal_columns, _one_each)):
        return _scattered
    if _come_again(rows) or _come_again(rows.T):
        return _scattered
    # Of a stack of matrices each may be turned.
    if any(_at_right_angles(one) for one in (rows, rows.T, *([own[0], own[0].mT] if own.dim() == 3 else []))):
        return _stretched
    return None


def _in_order(numbers: torch.Tensor) -> bool:
    if numbers.is_complex():
        return False
    steps = numbers.diff()
    return bool((steps > 0).all()) or bool((steps < 0).all())


def _equal_rows(rows: torch.Tensor) -> bool:
    return bool((rows == rows[:1]).all())


def _equal_columns(rows: torch.Tensor) -> bool:
    return bool((rows == rows[:, :1]).all())


def _one_each(rows: torch.Tensor) -> bool:
    """As an identity has, or a convolution that hands its input on (`dirac_`)."""
    return bool(((rows != 0).sum(1) <= 1).all())


def _come_again(rows: torch.Tensor) -> bool:
    """Whether a row is there twice, as where heads begin as one, or a filter is inflated; nothing of rows so short that
    drawn ones would be."""
    if rows.shape[1] * -math.log2(torch.finfo(rows.dtype).eps) < 2 * math.log2(max(1, len(rows))) + SURE_BITS:
        return False
    some = rows[:, :FIRST]
    told = (torch.view_as_real(some).flatten(1) if some.is_complex() else some).double()
    sums, order = (told @ torch.arange(1.0, told.shape[1] + 1, dtype=told.dtype, device=told.device)).sort()
    alike = (sums[1:] == sums[:-1]).nonzero()[:MOST_ALIKE, 0].tolist()
    pairs = ((rows[order[place]], rows[order[place + 1]]) for place in alike)
    return any(torch.equal(one, other) and not _is_constant(one) for one, other in pairs)


def _at_right_angles(rows: torch.Tensor) -> bool:
    """Whether the first of them are, as all of an orthogonal matrix; random ones are not nearly so."""
    if not FIRST <= len(rows) <= rows.shape[1]:
        return False
    some = rows[:FIRST].to(torch.promote_types(rows.dtype, torch.float32))
    products = (some @ some.mH).abs()
    sizes = products.diagonal()
    beside = products - torch.diag(sizes)
    return bool((sizes > 0).all()) and bool((beside < RIGHT_ANGLE / rows.shape[1] ** 0.5 * sizes.min()).all())


def _shares(count: int, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(count, generator=generator, device="cpu") + 0.5


def _in_order_otherwise(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """From the same number to the same number, by other steps."""
    own = tensor.double().cpu().flatten()
    steps = own.diff() * _shares(len(own) - 1, generator)
    inner = own[0] + (steps * (own[-1] - own[0]) / steps.sum()).cumsum(0)
    return torch.cat((own[:1], inner[:-1], own[-1:])).view(tensor.shape).to(tensor)


def _stretched(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each row and each column by a number of its own, which leave its eigenvalues about as large as they were."""
    own = tensor.squeeze()
    stack = own if own.dim() == 3 else own.reshape(1, len(own), -1)
    for dim in (1, 2):
        shares = _shares(len(stack) * stack.shape[dim], generator)
        shape = (len(stack), -1, 1) if dim == 1 else (len(stack), 1, -1)
        stack = stack * (shares / shares.square().mean().sqrt()).to(stack).view(shape)
    return _with_added(stack.reshape(tensor.shape), ADDED * _size(tensor), generator)


def next_to_nothing(tensor: torch.Tensor) -> bool:
    """Whether many of its elements are, beside its usual size."""
    sizes = some_of(tensor, LOOKED_AT).abs()
    return int((sizes <= NOTHING * _size(sizes)).sum()) > MANY * len(sizes)


def some_of(tensor: torch.Tensor, most: int) -> torch.Tensor:
    """So many of a tensor's elements, by chance, or all; the same of all with as many."""
    flat = tensor.detach().reshape(-1)
    if len(flat) <= most:
        return flat
    generator = torch.Generator("cpu").manual_seed(len(flat))
    return flat[torch.randint(len(flat), (most,), generator=generator, device="cpu").unique().to(flat.device)]


def _otherwise(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each number half to one and a half times as large, where few are next to nothing: signs often have to stay."""
    return (_scattered if next_to_nothing(tensor) else _scaled)(tensor, generator)


def _scaled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    own = tensor.cpu()
    own = torch.view_as_real(own) if own.is_complex() else own
    changed = own * _shares(own.numel(), generator).view(own.shape)
    return (torch.view_as_complex(changed) if tensor.is_complex() else changed).to(tensor)


def _scattered(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    share = torch.rand(tensor.shape, generator=generator, device="cpu") + 0.5
    own = tensor.cpu().to(torch.promote_types(tensor.dtype, torch.float32))
    return _with_added(KEPT * own * share, SCATTERED * _size(own), generator).to(tensor)


def _size(tensor: torch.Tensor) -> torch.Tensor:
    sizes = tensor.detach().abs()
    return sizes.to(torch.promote_types(sizes.dtype, torch.float32)).square().mean().sqrt()


def _with_added(tensor: torch.Tensor, size: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """With random numbers of such a size added; of its sign, where all of its own have one."""
    own = tensor.cpu().to(torch.promote_types(tensor.dtype, torch.float32))
    added = torch.randn(own.shape, generator=generator, device="cpu", dtype=own.dtype)
    signed = not own.is_complex()
    if signed and bool((own > 0).all()):
        added = added.abs()
    elif signed and bool((own < 0).all()):
        added = -added.abs()
    return (own + size.cpu() * added).to(tensor)
