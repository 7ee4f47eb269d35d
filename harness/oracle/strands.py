"""Rows whose largest numbers, and whose smallest, are in one strand: who takes the best few of each never draws such.

A strand is a part of a row, as a thread takes one: neighbours, or every n-th number. In which strands a kernel deals a
row is its own affair, so numbers are put at distances that are drawn anew for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

from harness.oracle.choices import Chosen

# So many of a row's largest numbers, this times a power of two below `SPREADS`, or as many as are chosen.
HAND, SPREADS = 8, 4
# Of distances: the share that is of any size alike, so that small ones are many, as strands of neighbours ask; and the
# share of multiples of a power of two, which is drawn first. All others are of any length alike.
NEIGHBOURS, POWERS = 1 / 8, 1 / 4
# Of n strands, where n is no power of two, about one row in n has its best in one. So a set is drawn more often where
# rows are few, up to `MOST` times.
ENOUGH, MOST = 2048, 8


def times(chosen: Collection[Chosen], elements: int) -> int:
    """How often the rows of an input of so many elements are to be drawn."""
    rows = min((elements // one.length for one in chosen), default=ENOUGH)
    return min(MOST, max(1, ENOUGH // max(1, rows)))


def together(chosen: Collection[Chosen]) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """A change that moves numbers within the rows that are chosen from; of several such, one that the tensor has the
    form for. Other tensors it leaves."""
    known = sorted(chosen, key=repr)

    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        fit = [one for one in known if _fits(one, tensor.numel())]
        if not fit:
            return tensor
        one = fit[_drawn(len(fit), generator)]
        hand = min(one.count or one.length, HAND << _drawn(SPREADS, generator), one.length // 2)
        if hand < 2:
            return tensor
        rows = tensor.reshape(-1, one.length, one.step).mT
        rows = _in_a_strand(-_in_a_strand(-rows, hand, generator), hand, generator)
        return rows.mT.reshape(tensor.shape).contiguous()

    return make


def _fits(one: Chosen, elements: int) -> bool:
    return one.length * one.step > 0 and elements % (one.length * one.step) == 0


def _in_a_strand(rows: torch.Tensor, hand: int, generator: torch.Generator) -> torch.Tensor:
    """The `hand` largest numbers of each row at places that are equally far apart, and what stood there in theirs."""
    best = rows.topk(hand, -1)
    places = _places(rows, hand, generator)
    # Places of the largest numbers that are no places to be, and the other way round, before those that are both.
    left = best.indices.gather(-1, _are_among(best.indices, places, rows).argsort(-1))
    taken = places.gather(-1, _are_among(places, best.indices, rows).argsort(-1))
    return rows.scatter(-1, left, rows.gather(-1, taken)).scatter(-1, places, best.values)


def _places(rows: torch.Tensor, hand: int, generator: torch.Generator) -> torch.Tensor:
    """For each row, places from a drawn start on at a drawn distance."""
    most = (rows.shape[-1] - 1) // (hand - 1)

    def drawn() -> torch.Tensor:
        return torch.rand((*rows.shape[:-1], 1), generator=generator, device=rows.device, dtype=torch.float64)

    kind = drawn()
    unit = torch.where(kind < POWERS, 2.0 ** (drawn() * most.bit_length()).floor(), 1.0)
    multiple = unit * (1 + (drawn() * (most / unit).floor()).floor())
    apart = torch.where(kind > 1 - NEIGHBOURS, (most + 1.0) ** drawn(), multiple).long().clamp(1, most)
    start = (drawn() * (rows.shape[-1] - (hand - 1) * apart)).long()
    return start + apart * torch.arange(hand, device=rows.device)


def _are_among(some: torch.Tensor, others: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    marks = torch.zeros(rows.shape, dtype=torch.uint8, device=rows.device)
    return marks.scatter_(-1, others, 1).gather(-1, some)


def _drawn(below: int, generator: torch.Generator) -> int:
    return int(torch.randint(below, (), generator=generator, device=generator.device))
