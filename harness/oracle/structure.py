"""Output trees: taking them apart, and the checks that come before any number is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from harness import wording
from harness.nesting import DEEPEST, TOO_DEEP
from harness.oracle.formats import calculable


@dataclass(frozen=True)
class Fault:
    """Why a tree is not of the reference's form: a reason word, the place, and a clause."""

    reason: str
    leaf: str
    message: str


def flatten(tree: Any, path: str = "output", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Leaves with their paths (`output[1].mask`), depth first; a leaf is whatever is no list, tuple or mapping, or is
    deeper than values may be."""
    # First of all, since to ask whether a thing is a Mapping takes long.
    if isinstance(tree, torch.Tensor) or depth > DEEPEST:
        yield path, tree
    elif isinstance(tree, (list, tuple)):
        for index, value in enumerate(tree):
            yield from flatten(value, f"{path}[{index}]", depth + 1)
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from flatten(value, f"{path}[{key!r}]", depth + 1)
    else:
        yield path, tree


def places(tree: Any) -> list[str]:
    """The paths of all leaves. Sorted, since the order of a mapping's keys is free."""
    return sorted(path for path, _ in flatten(tree))


def tensors(tree: Any) -> list[torch.Tensor]:
    """The leaves that are tensors, in the order of `flatten`."""
    return [leaf for _, leaf in flatten(tree) if isinstance(leaf, torch.Tensor)]


def convert(tree: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int = 0) -> Any:
    """The same tree with `change` applied to each tensor; plain containers come back as list, tuple or dict."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if depth > DEEPEST:
        return tree
    if isinstance(tree, Mapping):
        return {key: convert(value, change, depth + 1) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(convert(value, change, depth + 1) for value in tree)
    if isinstance(tree, list):
        return [convert(value, change, depth + 1) for value in tree]
    return tree


def rebuild(tree: Any, leaves: list[Any]) -> Any:
    """`tree` with its leaves replaced, in the order of `flatten`."""
    return _built(tree, iter(leaves))


def _built(node: Any, remaining: Iterator[Any], depth: int = 0) -> Any:
    # No function within another, which would keep itself and the leaves alive until the garbage is collected.
    if depth > DEEPEST:
        return next(remaining)
    if isinstance(node, Mapping):
        return {key: _built(value, remaining, depth + 1) for key, value in node.items()}
    if isinstance(node, tuple):
        return tuple(_built(value, remaining, depth + 1) for value in node)
    if isinstance(node, list):
        return [_built(value, remaining, depth + 1) for value in node]
    return next(remaining)


def compare(expected: Any, got: Any, path: str = "output") -> Fault | None:
    """The first difference in form between two trees, or None.

    Lists, tuples and named tuples count as one kind: a C++ extension can only return a list where torch returns a
    tuple, and both unpack alike. Everything else is exact: keys, lengths, scalar types, and of tensors the class,
    layout, device, dtype and shape. Strides are free.
    """
    if isinstance(expected, Mapping):
        if not isinstance(got, Mapping) or set(expected) != set(got):
            return Fault(
                "wrong_structure", path, f"expected a dict with keys {sorted(map(str, expected))}, got {_kind(got)}"
            )
        return _first(compare(expected[key], got[key], f"{path}[{key!r}]") for key in expected)
    if isinstance(expected, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(expected) != len(got):
            return Fault("wrong_structure", path, f"expected {_kind(expected)}, got {_kind(got)}")
        return _first(compare(e, g, f"{path}[{i}]") for i, (e, g) in enumerate(zip(expected, got, strict=True)))
    if isinstance(got, (list, tuple, Mapping)):
        return Fault("wrong_structure", path, f"expected {_kind(expected)}, got {_kind(got)}")
    if isinstance(expected, torch.Tensor):
        return _compare_tensors(expected, got, path)
    if type(expected) is not type(got):
        return Fault("wrong_type", path, f"expected {_kind(expected)}, got {_kind(got)}")
    return None


def _compare_tensors(expected: torch.Tensor, got: Any, path: str) -> Fault | None:
    if not isinstance(got, torch.Tensor):
        return Fault("not_a_tensor", path, f"expected a tensor, got {_kind(got)}")
    if type(got) not in (torch.Tensor, torch.nn.Parameter):
        # A subclass can compute its values when somebody looks at them.
        return Fault("tensor_subclass", path, f"expected a plain tensor, got the subclass {type(got).__name__}")
    for reason, name in (("wrong_layout", "layout"), ("wrong_device", "device"), ("wrong_dtype", "dtype")):
        if getattr(expected, name) != getattr(got, name):
            return Fault(reason, path, f"expected {name} {getattr(expected, name)}, got {getattr(got, name)}")
    if expected.shape != got.shape:
        return Fault("wrong_shape", path, f"expected shape {tuple(expected.shape)}, got {tuple(got.shape)}")
    if got.dtype is torch.bool and got.numel() and int(got.view(torch.uint8).max()) > 1:
        # Equal as truth values, and another number to whoever adds them up.
        return Fault("mismatch:not_a_bool", path, "a truth value is the byte 0 or 1, and some elements are other bytes")
    return None


def address(tensor: torch.Tensor) -> int | None:
    """The address of the memory behind a tensor; None of one that has no elements, or is not dense."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided and tensor.numel() else None


def same(one: Any, other: Any) -> bool:
    """Whether two leaves are equal, tensors element by element."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(calculable(one), calculable(other))
    return bool(one == other)


def all_same(one: Any, other: Any) -> bool:
    """Whether the leaves of two trees of the same form are equal, tensors element by element."""
    leaves = dict(flatten(other))
    return all(same(leaf, leaves[path]) for path, leaf in flatten(one))


def unsupported(tree: Any) -> str:
    """A clause about the first leaf of a kind that cannot be compared; empty where there is none."""
    for path, leaf in flatten(tree):
        if isinstance(leaf, (list, tuple, Mapping)):
            return f"{path} is a {TOO_DEEP}"
        if not isinstance(leaf, torch.Tensor):
            continue
        kind = str(leaf.layout).removeprefix("torch.").removeprefix("_")
        if leaf.is_nested or leaf.is_quantized:
            kind = "nested" if leaf.is_nested else "quantized"
        if kind != "strided":
            return f"{path} is a {kind} tensor: this kind of output is not supported; return plain, dense tensors"
    return ""


def _first(faults: Iterator[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault is not None), None)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"a dict with keys {sorted(map(str, value))[:8]}"
    if isinstance(value, (list, tuple)):
        return f"a {'list' if isinstance(value, list) else 'tuple'} of {len(value)}"
    return "None" if value is None else wording.a(type(value).__name__)
