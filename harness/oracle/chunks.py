"""Whether a function works on each batch entry by itself, and how to cut its inputs if so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle import rule
from harness.oracle.formats import format_of, is_of_eight_bits
from harness.oracle.slices import matrix, sample, tiles
from harness.oracle.structure import convert, flatten

# A slice computed alone may differ from the same slice of the whole by another kernel's rounding: this many unit
# roundoffs of the output's size. Accumulation adds to that in float32, but shows less than one in 16 bits.
ROUNDOFFS = {"fp64": 256, "fp32": 256, "fp16": 4, "bf16": 4, "fp8": 2}
# Of entries that stand for a batch: so many at the least, with so many elements in all (a card is no faster with
# fewer), and in each output. More than one in WORTH is not worth it.
FEWEST, LEAST, WORTH = 3, rule.SIGNATURE_LEAST, 2
ENOUGH = {"cpu": 1 << 20, "cuda": 1 << 22}
# Entries beside the first, the middle and the last one on which it is shown that none depends on another.
INNER = 2
# What another kernel's rounding may do in float64, of the largest element: far above 2^-53, and far below what a mean
# over as many elements as a card holds differs by.
SAME = 2.0**-36


@dataclass(frozen=True)
class Split:
    """Which positional arguments are cut along dimension 0, all of them `size` long."""

    positions: tuple[int, ...]
    size: int

    def part(self, inputs: list[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        return [x[start:stop:step] if i in self.positions else x for i, x in enumerate(inputs)]


@dataclass(frozen=True)
class Cut:
    """A split into slices of `step` entries of the batch; the last one may have fewer."""

    split: Split
    step: int

    def parts(self, inputs: list[Any]) -> Iterator[tuple[int, list[Any]]]:
        """Each slice's first entry, and the inputs for it."""
        for start in range(0, self.split.size, self.step):
            yield start, self.split.part(inputs, start, start + self.step)


@dataclass(frozen=True)
class Few:
    """Some entries of a batch that stand for all of it, where a split shows that none depends on another."""

    split: Split
    entries: torch.Tensor

    def inputs(self, inputs: list[Any]) -> list[Any]:
        """Those of a call with these entries alone."""
        return [self._of(x) if i in self.split.positions else x for i, x in enumerate(inputs)]

    def outputs(self, tree: Any) -> Any:
        """What an output has of them."""
        return convert(tree, self._of)

    def _of(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor[self.entries.to(tensor.device)]


def few(split: Split, inputs: list[Any], native: Any) -> Few | None:
    """Entries enough to estimate from, the first and the last among them; None where that is much of the batch."""
    leaves = [leaf.numel() // split.size for _, leaf in flatten(native)]
    given = sum(inputs[position].numel() // split.size for position in split.positions)
    if not leaves or not min(leaves):
        return None
    device = inputs[split.positions[0]].device
    count = max(FEWEST, -(-ENOUGH[device.type] // (given + sum(leaves))), -(-LEAST // min(leaves)))
    if count * WORTH > split.size:
        return None
    ends = torch.tensor([0, split.size - 1], device=device)
    return Few(split, torch.cat([sample(split.size, device, count - len(ends)), ends]).unique())


def find_split(run: Callable[[list[Any]], Any], inputs: list[Any], output: Any) -> Split | None:
    """A way to cut `inputs` such that `run` on a part gives that part of `output`, or None.

    Shown on single entries: the first and the last, where a dependence on all others is at its largest, some
    between, since a stencil leaves the borders of its grid as they are, and any grid that has no others; and two that
    are equal, of which one may be left out for the other's sake.
    """
    tensors = {i: x for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.dim() > 0}
    if not tensors:
        return None
    first = min(tensors)
    size = tensors[first].shape[0]
    alike = tuple(i for i, x in tensors.items() if x.shape[0] == size)
    if size < 2:
        return None
    inner = sample(size, torch.device("cpu"), INNER).tolist() if size > INNER else []
    # A weight that happens to be as long as the batch is not to be cut: try without the others too.
    for positions in dict.fromkeys([alike, (first,)]):
        split = Split(positions, size)
        equal = [entry for i in positions for entry in _equal(inputs[i])]
        if all(_holds(run, split, inputs, output, entry) for entry in {0, size // 2, size - 1, *inner, *equal}):
            return split
    return None


def _equal(tensor: torch.Tensor) -> list[int]:
    """Two entries of floating numbers that are equal, by the sums over them; none where all differ."""
    if not tensor.is_floating_point() or is_of_eight_bits(tensor) or not tensor.numel():
        return []
    sums = tensor.flatten(1).sum(1, dtype=torch.float64) if tensor.dim() > 1 else tensor
    order = sums.argsort(stable=True)
    again = (sums[order].diff() == 0).nonzero()[:1, 0]
    return [int(order[at + step]) for at in again for step in (0, 1)]


def independent(wide: Callable[[list[Any]], Any], split: Split, inputs: list[Any]) -> bool:
    """Whether the first and the last entry give the same together and alone, to all digits of float64 but a few.

    In the precision of `find_split`, a dependence on a mean over millions of elements would not show.
    """
    last = split.size - 1
    together = [leaf for _, leaf in flatten(wide(split.part(inputs, 0, split.size, last)))]
    for place, entry in enumerate((0, last)):
        alone = [leaf for _, leaf in flatten(wide(split.part(inputs, entry, entry + 1)))]
        if not all(_same(one, both[place : place + 1]) for one, both in zip(alone, together, strict=True)):
            return False
    return True


def _same(one: torch.Tensor, both: torch.Tensor) -> bool:
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, both)
    difference = torch.nan_to_num((one - both).abs(), nan=0.0, posinf=0.0)
    size = torch.nan_to_num(both.abs(), nan=0.0, posinf=0.0)
    return bool(difference.max() <= SAME * size.max()) if one.numel() else True


def _holds(run: Callable[[list[Any]], Any], split: Split, inputs: list[Any], output: Any, entry: int) -> bool:
    try:
        part = run(split.part(inputs, entry, entry + 1))
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return False
    pairs = zip(flatten(part), flatten(output), strict=False)
    return all(_matches(one, whole, split.size, entry) for (_, one), (_, whole) in pairs)


def _matches(one: Any, whole: Any, size: int, entry: int) -> bool:
    if not (isinstance(one, torch.Tensor) and isinstance(whole, torch.Tensor)):
        return False
    if whole.dim() == 0 or whole.shape[0] != size or one.shape != (1, *whole.shape[1:]):
        return False
    expected = whole[entry : entry + 1]
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, expected)
    allowed = ROUNDOFFS[format_of(one.dtype).name] * format_of(one.dtype).roundoff
    error, most = 0.0, 0.0
    given, right = matrix(one), matrix(expected)
    for tile in tiles(given):
        a, b = given[tile].double(), right[tile].double()
        finite = torch.isfinite(b)
        if not torch.equal(finite, torch.isfinite(a)):
            return False
        error += float((a - b).masked_fill_(~finite, 0.0).square_().sum())
        most += float(b.masked_fill_(~finite, 0.0).square_().sum())
    return error <= allowed**2 * most
