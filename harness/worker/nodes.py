"""The wire form of nested Python values (no torch here: the session reads these too)."""

from __future__ import annotations

import msgspec

# In place of a shared block's number: only described, or in the sender's own memory, where the offset is an address.
NOWHERE, OWN_MEMORY = -1, -2


class TensorRef(msgspec.Struct, frozen=True, tag="tensor"):
    """Where a tensor's elements lie: `offset` in bytes into shared block `block`, `stride` in elements.

    `block` is NOWHERE where the sender could only describe the tensor (`kind` then tells what it is), OWN_MEMORY where
    it lies in the sender's memory at address `offset`.
    """

    block: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    kind: str = "Tensor"


class Scalar(msgspec.Struct, frozen=True, tag="scalar"):
    value: bool | int | float | str | None


class NonFinite(msgspec.Struct, frozen=True, tag="nonfinite"):
    """A float that JSON has no word for: "nan", "inf" or "-inf"."""

    value: str


class DType(msgspec.Struct, frozen=True, tag="dtype"):
    name: str


class Sequence(msgspec.Struct, frozen=True, tag="sequence"):
    kind: str  # "list" or "tuple"; a named tuple travels as a tuple
    items: tuple[Node, ...]


class Mapping(msgspec.Struct, frozen=True, tag="mapping"):
    items: tuple[tuple[str | int, Node], ...]


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """A value that may not cross; only the name of its type does."""

    python_type: str


Node = TensorRef | Scalar | NonFinite | DType | Sequence | Mapping | Opaque
