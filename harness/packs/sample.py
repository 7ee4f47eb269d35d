"""What every format of a pack gives: samples, and what it left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec

from harness.catalog.claims import Claim, Left, Origin
from harness.catalog.facts import ReadsTexts
from harness.config import PackConfig
from harness.packs.files import File


class Identity(NamedTuple):
    """Which problem a sample solves, as its source says it: KernelBench's level, and a number or name."""

    level: int | None = None
    problem: str = ""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate of a pack. `name` is not safe as a file's name, and may be empty.

    `number` is which of its problem's samples it is, as the source says it.
    `reference` is the problem's own source, if the pack has it; if not, `no_reference` says why.
    """

    origin: Origin
    identity: Identity
    name: str
    number: int | None = None
    code: bytes
    reference: bytes | None = None
    no_reference: str = ""
    claim: Claim = Claim()


class Format(Protocol):
    """Reads one file of a pack."""

    def __call__(self, file: File, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]: ...
