"""Tensors in shared blocks: where to place them, and views of what a peer claims to have placed there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import torch
from torch.nn.parameter import is_lazy

from harness.errors import AssayError
from harness.wire.nodes import TensorRef
from harness.wire.values import dtype_name, dtype_named

# What CUDA's own allocator aligns to, so that vector loads of a shared input are as legal as of any other tensor.
ALIGNMENT_BYTES = 512


# A stride of 0 lets a small block claim any number of elements, and torch counts them in 64 bits.
MAX_ELEMENTS = 1 << 48
# Places from a tensor's first element to its last, over its elements, that are worth moving as they are.
MOST_SPREAD = 4


class BadReference(AssayError, ValueError):
    """A peer described a tensor that does not lie within its block."""


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether its elements lie in memory as shape and strides say: not where it is sparse, opaque or nested, where a
    class of its own computes them, or where it has no shape yet."""
    if is_lazy(tensor) or tensor.layout is not torch.strided or tensor.is_nested:
        return False
    return type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def place(tensors: Iterable[torch.Tensor], block: int, start: int = 0) -> tuple[list[TensorRef], int]:
    """References for `tensors`, one behind the other from byte `start` of `block`, and the byte after the last.

    Strides are kept where every element has a place of its own; an expanded tensor is laid out contiguously.
    """
    refs = []
    for tensor in tensors:
        offset = aligned(start)
        stride = tensor.stride() if apart(tensor.shape, tensor.stride()) else contiguous_strides(tensor.shape)
        refs.append(
            TensorRef(
                block=block,
                offset=offset,
                dtype=dtype_name(tensor.dtype),
                shape=tuple(tensor.shape),
                stride=tuple(stride),
                device=tensor.device.type,
            )
        )
        start = offset + span(tensor.shape, stride) * tensor.element_size()
    return refs, aligned(start)


def view(block: torch.Tensor, ref: TensorRef) -> torch.Tensor:
    """The tensor that `ref` describes in `block` (uint8, one-dimensional). Raises BadReference for one outside it."""
    dtype = checked_dtype(ref)
    nbytes = span(ref.shape, ref.stride) * dtype.itemsize
    if ref.offset % dtype.itemsize or ref.offset + nbytes > block.numel():
        raise BadReference(f"bytes {ref.offset} to {ref.offset + nbytes} of a block of {block.numel()}")
    if nbytes == 0:
        try:
            return torch.empty(ref.shape, dtype=dtype, device=block.device)
        except RuntimeError as error:
            # Sizes that no tensor can have, beside one that is zero.
            raise BadReference(str(error)) from error
    return block[ref.offset : ref.offset + nbytes].view(dtype).as_strided(ref.shape, ref.stride)


def checked_dtype(ref: TensorRef) -> torch.dtype:
    """The dtype of a description that makes sense by itself. Raises BadReference."""
    try:
        dtype = dtype_named(ref.dtype)
    except ValueError as error:
        raise BadReference(str(error)) from error
    if len(ref.shape) != len(ref.stride) or min((0, *ref.shape, *ref.stride)) < 0 or ref.offset < 0:
        raise BadReference("shape, stride and offset must be non-negative and of one length")
    if math.prod(ref.shape) >= MAX_ELEMENTS:
        raise BadReference(f"a tensor of {math.prod(ref.shape)} elements")
    return dtype


def check_apart(ref: TensorRef) -> None:
    """Raises BadReference for a tensor whose elements share memory: who writes to one of them changes another."""
    if not apart(ref.shape, ref.stride):
        raise BadReference("its elements share memory")


def check_disjoint(places: Iterable[tuple[int, int]]) -> None:
    """Raises BadReference where two of these, each from a byte to another of one memory, have bytes in common."""
    end = 0
    for first, last in sorted(places):
        if first < end:
            raise BadReference("two outputs, or two parts of one, share memory; return a .clone()")
        end = max(end, last)


def nbytes(ref: TensorRef) -> int:
    """From a tensor's first byte to behind its last."""
    return span(ref.shape, ref.stride) * dtype_named(ref.dtype).itemsize


def moved(ref: TensorRef, by: int) -> TensorRef:
    """The same tensor `by` bytes further on."""
    return msgspec.structs.replace(ref, offset=ref.offset + by)


def aligned(offset: int) -> int:
    """The next byte where a tensor may begin."""
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def span(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Places from the first to the last, both included."""
    if math.prod(shape) == 0:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a tensor in row-major order without gaps."""
    stride, steps = 1, []
    for size in reversed(shape):
        steps.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(steps))


def apart(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether no two indices share a place: sorted by stride, each dimension steps over all inner ones."""
    reach = 1
    for step, size in sorted((step, size) for size, step in zip(shape, stride, strict=True) if size > 1):
        if step < reach:
            return False
        reach += (size - 1) * step
    return True
