"""The wire form of nested Python values (no torch here: the session reads these too)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

# What the judge shares with a runner: the words of a card's gate, state and arguments, and a burst's inputs.
GATE_BLOCK, STATE_BLOCK, INPUT_BLOCK = 0, 1, 2
# In place of a shared block's number: only described, or in the sender's own memory, where the offset is an address.
NOWHERE, OWN_MEMORY = -1, -2
# An untrusted process sends some of these, so that all are bounded.
LONGEST_WORD, LONGEST_TEXT, MOST_DIMENSIONS = 200, 1 << 16, 64
Word = Annotated[str, msgspec.Meta(max_length=LONGEST_WORD)]
Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Sizes = Annotated[tuple[Size, ...], msgspec.Meta(max_length=MOST_DIMENSIONS)]


class TensorRef(msgspec.Struct, frozen=True, tag="tensor"):
    """Where a tensor's elements lie: `offset` in bytes into shared block `block`, `stride` in elements.

    `block` is NOWHERE where the sender could only describe the tensor (`kind` then tells what it is), OWN_MEMORY where
    it lies in the sender's memory at address `offset`.
    """

    block: Annotated[int, msgspec.Meta(ge=OWN_MEMORY, le=(1 << 31) - 1)]
    offset: Size
    dtype: Word
    shape: Sizes
    stride: Sizes
    device: Word
    kind: Word = "Tensor"


class Scalar(msgspec.Struct, frozen=True, tag="scalar"):
    value: bool | Integer | float | Text | None


class NonFinite(msgspec.Struct, frozen=True, tag="nonfinite"):
    """A float that JSON has no word for."""

    value: Literal["nan", "inf", "-inf"]


class DType(msgspec.Struct, frozen=True, tag="dtype"):
    name: Word


class Sequence(msgspec.Struct, frozen=True, tag="sequence"):
    kind: Literal["list", "tuple"]  # a named tuple travels as a tuple
    items: tuple[Node, ...]


class Mapping(msgspec.Struct, frozen=True, tag="mapping"):
    items: tuple[tuple[Word | Integer, Node], ...]


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """A value that may not cross; only the name of its type does."""

    python_type: Word


Node = TensorRef | Scalar | NonFinite | DType | Sequence | Mapping | Opaque
