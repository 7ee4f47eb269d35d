"""Weights that begin with a structure which no training would keep: copies of others, identities, equal rows or
columns.

A kernel could use it unseen: compute one of several experts, leave out a product by an identity, take powers of one
exponential. So such parameters are changed: copies are moved along themselves, all others are scaled and scattered
element by element.
"""

from __future__ import annotations

import zlib

import torch

# Elements, or rows, that are looked at first: nearly all matrices have no structure there.
FIRST = 8
# What is left of an element, times 0.5 to 1.5, and what is added, as a share of all elements' size: a matrix that is an
# identity to begin with has eigenvalues near 1 and below, so that a state that goes through it again and again stays.
KEPT, SCATTERED = 0.6, 0.3


class Begun:
    """Parameters as they were met, one after the other; what is drawn depends on the seed and a parameter's name."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._met: dict[tuple[torch.Size, torch.dtype], list[torch.Tensor]] = {}

    def changed(self, tensor: torch.Tensor, name: str) -> torch.Tensor | None:
        """What a parameter is to be in place of what it began as; None where nothing tells it from drawn numbers."""
        before = self._met.setdefault((tensor.shape, tensor.dtype), [])
        own = tensor.detach()
        # Eight-bit floats cannot be compared.
        if own.numel() < 2 or own.element_size() < 2 or _is_constant(own):
            return None
        generator = torch.Generator("cpu").manual_seed(self._seed ^ zlib.crc32(f"begun {name}".encode()))
        if any(_same(own, other) for other in before):
            places = 1 + int(torch.randint(own.numel() - 1, (), generator=generator, device="cpu"))
            return own.reshape(-1).roll(places).view_as(own)
        if not _has_structure(own):
            before.append(own)
            return None
        # As it was, whatever becomes of it.
        before.append(own.clone())
        return _scattered(own, generator)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.reshape(-1)[:FIRST], other.reshape(-1)[:FIRST]) and torch.equal(one, other)


def _is_constant(tensor: torch.Tensor) -> bool:
    flat = tensor.reshape(-1)
    return _same(flat, flat[:1].expand_as(flat))


def _has_structure(tensor: torch.Tensor) -> bool:
    """Whether all rows of a matrix are equal, or all its columns, or each row has one number at the most beside zeros,
    as an identity has, or a convolution that hands its input on (`dirac_`)."""
    if tensor.dim() < 2 or min(tensor.shape[0], tensor[0].numel()) < 2:
        return False
    rows = tensor.reshape(len(tensor), -1)
    # All rows only where the first ones have it.
    return any(holds(rows[:FIRST]) and holds(rows) for holds in (_equal_rows, _equal_columns, _one_each))


def _equal_rows(rows: torch.Tensor) -> bool:
    return bool((rows == rows[:1]).all())


def _equal_columns(rows: torch.Tensor) -> bool:
    return bool((rows == rows[:, :1]).all())


def _one_each(rows: torch.Tensor) -> bool:
    return bool(((rows != 0).sum(1) <= 1).all())


def _scattered(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    share = torch.rand(tensor.shape, generator=generator, device="cpu") + 0.5
    added = torch.randn(tensor.shape, generator=generator, device="cpu")
    own = tensor.float().cpu()
    size = own.square().mean().sqrt()
    return (KEPT * own * share + SCATTERED * size * added).to(tensor)
