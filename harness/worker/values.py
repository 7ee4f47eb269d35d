"""Nested Python values as data: what may cross between processes, and nothing that could run code on arrival.

A value is a tensor, a scalar (None, bool, int, float, str), a torch dtype, or a list, tuple or dict of values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.worker.nodes import (
    DType,
    Mapping,
    Node,
    NonFinite,
    Opaque,
    Scalar,
    Sequence,
    TensorRef,
)

MAX_DEPTH = 16
# What a message has room for, with some to spare.
MAX_ITEMS = 1 << 15
SCALARS = (type(None), bool, int, float, str)


def encode(value: Any, tensor: Callable[[torch.Tensor], TensorRef], depth: int = 0) -> Node:
    """`value` as a tree of nodes; `tensor` says where each tensor's elements lie."""
    if depth > MAX_DEPTH:
        return Opaque(python_type="a nesting deeper than 16")
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if type(value) is float and (value != value or value in (float("inf"), float("-inf"))):
        return NonFinite(value=str(value))
    if type(value) in SCALARS:
        # Beyond 64 bits there is no agreed wire form.
        return Scalar(value=value) if type(value) is not int or value.bit_length() < 64 else Opaque(python_type="int")
    if isinstance(value, torch.dtype):
        return DType(name=dtype_name(value))
    if isinstance(value, list | tuple | dict) and len(value) > MAX_ITEMS:
        return Opaque(python_type=f"{type(value).__name__} of more than {MAX_ITEMS} values")
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return Sequence(kind=kind, items=tuple(encode(item, tensor, depth + 1) for item in value))
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        return Mapping(items=tuple((key, encode(item, tensor, depth + 1)) for key, item in value.items()))
    return Opaque(python_type=f"{type(value).__module__}.{type(value).__qualname__}"[:200])


def decode(node: Node, tensor: Callable[[TensorRef], Any]) -> Any:
    """The value of a tree; an `Opaque` stays as it is, so that whoever judges it can name its type."""
    match node:
        case TensorRef():
            return tensor(node)
        case Scalar():
            return node.value
        case NonFinite():
            return float(node.value) if node.value in ("nan", "inf", "-inf") else node
        case DType():
            return dtype_named(node.name)
        case Sequence():
            items = [decode(item, tensor) for item in node.items]
            return items if node.kind == "list" else tuple(items)
        case Mapping():
            return {key: decode(item, tensor) for key, item in node.items}
        case Opaque():
            return node


def dtype_name(dtype: torch.dtype) -> str:
    """`float16` for torch.float16."""
    return str(dtype).removeprefix("torch.")


def dtype_named(name: str) -> torch.dtype:
    """Raises ValueError for a name that torch has no dtype of."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"'{name[:40]}' is no dtype")
    return dtype


def cast_floating(value: Any, dtype: torch.dtype) -> Any:
    """`value` with its floating tensors cast to `dtype`; integer, bool and complex tensors and everything else kept."""
    return mapped(value, lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """`value` with `change` of each tensor in its place, in the order of `tensors`; everything else kept."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        items = [mapped(item, change) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of a nested value, in the order of encode."""
    found: list[torch.Tensor] = []

    def remember(tensor: torch.Tensor) -> TensorRef:
        found.append(tensor)
        return TensorRef(block=-1, offset=0, dtype="", shape=(), stride=(), device="")

    encode(value, remember)
    return found
