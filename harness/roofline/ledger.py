"""What was written down of a call, and, from its outputs backwards, what they need of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.roofline.light import Work
from harness.roofline.views import Cover, View

# Of something so nearly all needed, all is called needed: a pool that leaves a last row out. Well within light.MARGIN.
NEARLY = 0.95


@dataclass(slots=True)
class Read:
    """One argument. `sure` unless only part of it may be needed; then, where known, at least and at most how much."""

    storage: int
    view: View
    sure: bool = True
    least_bytes: float = 0.0
    most_bytes: float = 0.0


@dataclass(slots=True)
class RecordedOperation:
    reads: list[Read]
    writes: set[tuple[int, View]]
    flops: dict[str, float]
    # Depends on an input (or on the generator), so it must be done for each call.
    fresh: bool
    steers: bool
    # Any part of the result takes all of the work: the last of many steps.
    indivisible: bool


@dataclass(slots=True)
class Storage:
    nbytes: int
    reference: Any
    origin: str
    fresh: bool
    written: bool = False
    overwritten: bool = False
    # Found on the way back: what is surely read of it, what may be, and what later operations and outputs need.
    sure: Cover = field(default_factory=Cover)
    possible: Cover = field(default_factory=Cover)
    needed: Cover = field(default_factory=Cover)
    # At least so many bytes of it are read, or may be, though not which.
    least_bytes: float = 0.0
    most_bytes: float = 0.0

    def wholly_needed(self, view: View) -> bool:
        """Whether all that was written through a view is needed later."""
        return view in self.needed or max(self.needed.nbytes, self.least_bytes) >= NEARLY * self.nbytes > 0

    @property
    def needed_share(self) -> float:
        """Share of it that may be needed later."""
        nbytes = max(self.needed.nbytes, self.possible.nbytes, self.most_bytes)
        return min(1.0, nbytes / max(1, self.nbytes))


def work_behind(
    outputs: Sequence[tuple[int, View]], operations: Sequence[RecordedOperation], storages: Mapping[int, Storage]
) -> Work:
    """The work that a call's outputs need, by the operations it carried out, in their order. `storages` note what is
    needed of them."""
    streamed = resident = 0.0
    returned: dict[int, Cover] = defaultdict(Cover)
    for key, view in outputs:
        returned[key].add(view)
        storages[key].needed.add(view)
    for key, cover in returned.items():
        # An input may be handed back as it is; what depends on none can be written once and returned for ever.
        if storages[key].written and storages[key].fresh:
            streamed += cover.nbytes
        elif storages[key].written:
            resident += cover.nbytes
    flops: dict[str, float] = defaultdict(float)
    for operation in reversed(operations):
        sure = any(storages[key].wholly_needed(view) for key, view in operation.writes)
        share = max((storages[key].needed_share for key, _ in operation.writes), default=0.0)
        if sure or operation.steers or (operation.indivisible and share > 0):
            share = 1.0
        if share == 0.0:
            continue
        for read in operation.reads:
            _want(read, storages[read.storage], sure=sure)
        for kind, count in operation.flops.items() if operation.fresh else ():
            flops[kind] += count * share
    for storage in storages.values():
        if storage.origin == "call":
            continue
        certain = max(storage.sure.nbytes, storage.least_bytes)
        possible = max(storage.possible.nbytes, storage.most_bytes, certain)
        streamed += certain if storage.origin == "input" else 0
        resident += possible - (certain if storage.origin == "input" else 0)
    return Work(dict(flops), float(streamed), float(resident))


def _want(read: Read, storage: Storage, *, sure: bool) -> None:
    if read.most_bytes:
        storage.most_bytes = max(storage.most_bytes, read.most_bytes)
        storage.least_bytes = max(storage.least_bytes, read.least_bytes if sure else 0.0)
    else:
        storage.possible.add(read.view)
        if sure and read.sure:
            storage.sure.add(read.view)
            storage.needed.add(read.view)
