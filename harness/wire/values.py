"""Nested Python values as data: what may cross between processes, and nothing that could run code on arrival.

A value is a tensor, a scalar (None, bool, int, float, str), a torch dtype, or a list, tuple or dict of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from harness import wording
from harness.nesting import DEEPEST, TOO_DEEP
from harness.wire.nodes import (
    LONGEST_TEXT,
    LONGEST_WORD,
    DType,
    Mapping,
    Node,
    NonFinite,
    Opaque,
    Scalar,
    Sequence,
    TensorRef,
)

# What may cross, in words.
SENDABLE = (
    "tensors, numbers of 64 bits, text, dtypes, None, and lists, tuples and dicts of them "
    "with texts or integers as keys"
)
TOO_LARGE = "int of more than 64 bits"
# What a message has room for, with some to spare.
MAX_ITEMS = 1 << 15
# Integers of eight bytes that are compared together.
WORDS_AT_ONCE = 1 << 24
SCALARS = (type(None), bool, int, float, str)
# Where all that matters is that a tensor is there.
SOME_TENSOR = TensorRef(block=0, offset=0, dtype="", shape=(), stride=(), device="")
# Looked up here, because some attributes of torch import a package.
DTYPES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}


def encode(value: Any, tensor: Callable[[torch.Tensor], TensorRef], depth: int = 0) -> Node:
    """`value` as a tree of nodes; `tensor` says where each tensor's elements lie."""
    if depth > DEEPEST:
        return Opaque(python_type=TOO_DEEP)
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if type(value) is float and (value != value or value in (float("inf"), float("-inf"))):
        return NonFinite(value="nan" if value != value else "inf" if value > 0 else "-inf")
    if type(value) is str and len(value) > LONGEST_TEXT:
        return Opaque(python_type=f"str of more than {LONGEST_TEXT} characters")
    if type(value) in SCALARS:
        # Beyond 64 bits there is no agreed wire form.
        return Opaque(python_type=TOO_LARGE) if _is_too_large(value) else Scalar(value=value)
    if isinstance(value, torch.dtype):
        return DType(name=dtype_name(value))
    if isinstance(value, list | tuple | dict) and len(value) > MAX_ITEMS:
        return Opaque(python_type=f"{type(value).__name__} of more than {MAX_ITEMS} values")
    if isinstance(value, list | tuple):
        items = tuple(encode(item, tensor, depth + 1) for item in value)
        return Sequence(kind="list" if isinstance(value, list) else "tuple", items=items)
    if isinstance(value, dict):
        if fault := next(filter(None, map(_key_fault, value)), ""):
            return Opaque(python_type=f"dict with {fault}"[:LONGEST_WORD])
        return Mapping(items=tuple((key, encode(item, tensor, depth + 1)) for key, item in value.items()))
    return Opaque(python_type=_type_name(value)[:LONGEST_WORD])


def beside_tensors(values: Iterable[Any]) -> Node | None:
    """All of these values that is no tensor; None where that is nothing."""
    if all(isinstance(value, torch.Tensor) for value in values):
        return None
    return encode(list(values), lambda _: SOME_TENSOR)


def _is_too_large(value: Any) -> bool:
    return type(value) is int and value.bit_length() >= 64


def _key_fault(key: Any) -> str:
    """Why a dict with this key may not cross; nothing if it may."""
    if type(key) not in (str, int):
        return f"a key that is {wording.a(_type_name(key))}"
    if _is_too_large(key):
        return f"{wording.a(TOO_LARGE)} as a key"
    too_long = type(key) is str and len(key) > LONGEST_WORD
    return f"a text of more than {LONGEST_WORD} characters as a key" if too_long else ""


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def decode(node: Node, tensor: Callable[[TensorRef], Any]) -> Any:
    """The value of a tree; an `Opaque` stays as it is, so that whoever judges it can name its type.

    Raises ValueError for a dtype that torch has not, for a nesting that `encode` does not make, and for a key twice.
    """
    return decode_at(node, lambda _, ref: tensor(ref))


def decode_at(node: Node, tensor: Callable[[str, TensorRef], Any], path: str = "output", depth: int = 0) -> Any:
    """The same, where `tensor` is also given the tensor's path (`output['a'][1]`): keys come in any order."""
    if depth > DEEPEST + 1:
        raise ValueError(f"a {TOO_DEEP}")
    match node:
        case TensorRef():
            return tensor(path, node)
        case Scalar():
            return node.value
        case NonFinite():
            return float(node.value)
        case DType():
            return dtype_named(node.name)
        case Sequence():
            items = enumerate(node.items)
            decoded = [decode_at(item, tensor, f"{path}[{index}]", depth + 1) for index, item in items]
            return decoded if node.kind == "list" else tuple(decoded)
        case Mapping():
            _check_once([key for key, _ in node.items])
            return {key: decode_at(item, tensor, f"{path}[{key!r}]", depth + 1) for key, item in node.items}
        case Opaque():
            return node


def not_sendable(value: Any, path: str = "output") -> tuple[str, Opaque] | None:
    """The first part of `value` that may not cross, and its path; None where all of it may."""
    anything = TensorRef(block=-1, offset=0, dtype="", shape=(), stride=(), device="")
    return next(_opaque(encode(value, lambda _: anything), path), None)


def _opaque(node: Node, path: str) -> Iterator[tuple[str, Opaque]]:
    match node:
        case Opaque():
            yield path, node
        case Sequence():
            for index, item in enumerate(node.items):
                yield from _opaque(item, f"{path}[{index}]")
        case Mapping():
            for key, item in node.items:
                yield from _opaque(item, f"{path}[{key!r}]")


def _check_once(keys: list[str | int]) -> None:
    seen = set[str | int]()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {key!r} twice")
        seen.add(key)


def dtype_name(dtype: torch.dtype) -> str:
    """`float16` for torch.float16."""
    return str(dtype).removeprefix("torch.")


def dtype_named(name: str) -> torch.dtype:
    """Raises ValueError for a name that torch has no dtype of."""
    if name not in DTYPES:
        raise ValueError(f"'{name[:40]}' is not a dtype")
    return DTYPES[name]


def cast_floating(value: Any, dtype: torch.dtype) -> Any:
    """`value` with its floating tensors cast to `dtype`; integer, bool and complex tensors and everything else kept."""
    return mapped(value, lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int = 0) -> Any:
    """`value` with `change` of each tensor in its place, in the order of `tensors`; everything else kept.

    So is what lies deeper than `encode` goes.
    """
    if isinstance(value, torch.Tensor):
        return change(value)
    if depth > DEEPEST:
        return value
    if isinstance(value, list | tuple):
        items = [mapped(item, change, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: mapped(item, change, depth + 1) for key, item in value.items()}
    return value


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit, NaN included; without a mask as large as they are."""
    if one.nbytes != other.nbytes:
        return False
    pairs = zip(_words(one).split(WORDS_AT_ONCE), _words(other).split(WORDS_AT_ONCE), strict=True)
    return all(torch.equal(mine, theirs) for mine, theirs in pairs)


def differ(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Whether two tensors with elements differ in any bit, as a 0-d tensor where they are: nobody waits for it."""
    return (_words(one) != _words(other)).any()


def _words(tensor: torch.Tensor) -> torch.Tensor:
    """Its bytes as few integers: a card takes as long for one of a byte as for one of eight. As many for each tensor
    of that size, wherever it lies."""
    flat = tensor.contiguous().view(-1).view(torch.uint8)
    if flat.numel() % 8:
        return flat
    aligned = flat if not (flat.data_ptr() % 8 or flat.storage_offset() % 8) else flat.clone()
    return aligned.view(torch.int64)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of a nested value, in the order of encode."""
    found: list[torch.Tensor] = []

    def remember(tensor: torch.Tensor) -> TensorRef:
        found.append(tensor)
        return TensorRef(block=-1, offset=0, dtype="", shape=(), stride=(), device="")

    encode(value, remember)
    return found
