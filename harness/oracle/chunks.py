"""Whether a function works on each batch entry by itself, and how to cut its inputs if so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle.formats import format_of
from harness.oracle.structure import flatten

# A slice computed alone may differ from the same slice of the whole by another kernel's rounding: this many unit
# roundoffs of the output's size. Accumulation adds to that in float32, but shows less than one in 16 bits.
ROUNDOFFS = {"fp64": 256, "fp32": 256, "fp16": 4, "bf16": 4, "fp8": 2}


@dataclass(frozen=True)
class Split:
    """Which positional arguments are cut along dimension 0, all of them `size` long."""

    positions: tuple[int, ...]
    size: int

    def parts(self, inputs: list[Any], share: float) -> Iterator[list[Any]]:
        """Inputs cut into slices of about `share` (0..1) of the batch, one entry at the least."""
        step = max(1, math.floor(self.size * min(1.0, share)))
        return (self.part(inputs, start, start + step) for start in range(0, self.size, step))

    def part(self, inputs: list[Any], start: int, stop: int) -> list[Any]:
        return [x[start:stop] if i in self.positions else x for i, x in enumerate(inputs)]


def find_split(run: Callable[[list[Any]], Any], inputs: list[Any], output: Any) -> Split | None:
    """A way to cut `inputs` such that `run` on a part gives that part of `output`, or None.

    Shown on single entries, the first and the last, where a dependence on the other entries is at its largest.
    """
    tensors = {i: x for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.dim() > 0}
    if not tensors:
        return None
    first = min(tensors)
    size = tensors[first].shape[0]
    alike = tuple(i for i, x in tensors.items() if x.shape[0] == size)
    if size < 2:
        return None
    # A weight that happens to be as long as the batch is not to be cut: try without the others too.
    for positions in dict.fromkeys([alike, (first,)]):
        split = Split(positions, size)
        if all(_holds(run, split, inputs, output, entry) for entry in (0, size - 1)):
            return split
    return None


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
    if not one.is_floating_point():
        return torch.equal(one, expected)
    difference = (one.double() - expected.double()).square().mean().sqrt()
    allowed = ROUNDOFFS[format_of(one.dtype).name] * format_of(one.dtype).roundoff
    return bool(difference <= allowed * expected.double().square().mean().sqrt())
