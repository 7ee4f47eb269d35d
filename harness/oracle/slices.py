"""Outputs of any shape and kind as matrices of real numbers, looked at a slice at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from harness.machine.pauses import pause
from harness.oracle.formats import format_of

# Elements looked at together: temporaries are three times this, and launches stay few enough. A card takes more, since
# it is done with a small slice before the host has launched the next operation.
SLICE = {"cpu": 1 << 22, "cuda": 1 << 26}
# A row must be this long, and rows this many, for their mean to say how large an element is there.
SHORTEST_ROW = 64


def real(output: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones, in a last dimension of two."""
    return torch.view_as_real(output.resolve_conj()) if output.is_complex() else output


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """What to compare in: float64, or float32 for a 16-bit or narrower output, which it resolves well enough (2^-24
    against 2^-11) at half the memory."""
    return torch.float64 if format_of(dtype).bits > 10 else torch.float32


def widened(output: torch.Tensor) -> torch.Tensor:
    """The output as real numbers of `wide_dtype`."""
    return real(output).to(wide_dtype(output.dtype))


def matrix(tensor: torch.Tensor) -> torch.Tensor:
    """A 2-d view: trailing dimensions are joined until rows are `SHORTEST_ROW` long, leading ones into the rest.

    A copy is made only of a tensor that is not contiguous.
    """
    tensor = real(tensor).contiguous()
    columns = 1
    for length in reversed(tensor.shape):
        if columns >= SHORTEST_ROW:
            break
        columns *= length
    return tensor.reshape(-1, max(1, columns))


def tiles(of: torch.Tensor) -> Iterator[tuple[slice, slice]]:
    """Blocks of at most `SLICE` elements, of that device, that cover a matrix, row-major."""
    rows, columns = of.shape
    most = SLICE[of.device.type]
    width = max(1, min(columns, most))
    height = max(1, most // width)
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            pause()
            yield slice(top, top + height), slice(left, left + width)


def coordinates(places: torch.Tensor, shape: Sequence[int]) -> tuple[torch.Tensor, ...]:
    """As torch.unravel_index, which loads sympy to check its arguments: a third of a second in every process."""
    index: list[torch.Tensor] = []
    for size in reversed(shape):
        index.insert(0, places % size)
        places = places // size
    return tuple(index)


def picked(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """A tensor's elements at flat places; without a copy of one that is not contiguous."""
    return tensor[coordinates(places.to(tensor.device), tensor.shape)]


def sample(numel: int, device: torch.device, count: int) -> torch.Tensor:
    """`count` flat positions, random but the same each time; all of them where there are no more."""
    if numel <= count:
        return torch.arange(numel, device=device)
    generator = torch.Generator(device).manual_seed(numel)
    return torch.randint(numel, (count,), generator=generator, device=device)


def counted(mask: torch.Tensor) -> int:
    """How many elements of a mask are true. torch makes eight bytes of each of its bytes before it adds them up."""
    return sum(int(part.sum()) for part in mask.reshape(-1).split(SLICE[mask.device.type]))


def places_in(mask: torch.Tensor) -> torch.Tensor:
    """The flat positions of a mask's true elements."""
    most = SLICE[mask.device.type]
    parts = mask.reshape(-1).split(most)
    return torch.cat([part.nonzero()[:, 0] + number * most for number, part in enumerate(parts)])


def rms(tensor: torch.Tensor) -> float:
    """Root mean square; 0 for an empty tensor."""
    return float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) / math.sqrt(max(1, tensor.numel()))


def blocks(shape: Sequence[int], most: int, whole: int = 0) -> Iterator[tuple[slice, ...]]:
    """Where to index a tensor of that shape for blocks of at most `most` elements, which cover it; its last `whole`
    dimensions are never split."""
    if math.prod(shape) <= most or len(shape) <= whole:
        pause()
        yield tuple(slice(0, length) for length in shape)
        return
    behind = math.prod(shape[1:])
    step = max(1, most // behind)
    for start in range(0, shape[0], step):
        here = slice(start, min(start + step, shape[0]))
        for rest in blocks(shape[1:], most, whole):
            yield (here, *rest)
