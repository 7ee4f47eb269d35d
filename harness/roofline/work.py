"""What a reference must do at least: matrix FLOPs by dtype class and compulsory bytes, seen by watching one call.

A dispatch mode writes down each operation of the call; from the outputs backwards, only what they need is counted.
Counted are FLOPs of matrix products, convolutions, attention and recurrent layers (torch.utils.flop_counter's formulas
and flops.py's). Not counted: elementwise operations, reductions, FFTs, factorisations, sparse products, and whatever
depends on no input, since a program may compute that once. A sum over a product written elementwise is elementwise.

Where it errs it errs low, since `light.faster_than_light` builds on it. What a program might leave unread (what a
mask hides, weights, tables) is in `resident_bytes`, and in `streamed_bytes` only what no right program can avoid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from harness.roofline.flops import flops_of
from harness.roofline.ledger import Read, RecordedOperation, Storage, work_behind
from harness.roofline.light import Work
from harness.roofline.modes import Layers, Operations
from harness.roofline.operations import (
    GATHERS,
    OVERWRITING,
    PARTLY_READ,
    RECURRENT,
    STEERING,
    UNCOUNTED,
    written_arguments,
)
from harness.roofline.parts import narrow
from harness.roofline.views import storage_number, tensors, view_of

# A loop written in Python may run for ever under a mode that costs microseconds an operation.
MAX_OPERATIONS = 50_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """The work, what was not seen or not counted, in words, and how many operators did it; views are none."""

    work: Work
    notes: tuple[str, ...] = ()
    operators: int = 1


def uncached(work: Work, cache_bytes: float, calls: int) -> Work:
    """`work` of one call among `calls`, less what the last-level cache may save: inputs that were in it before the
    first call, and outputs that are still in it, not in memory, after the last. For `faster_than_light`."""
    return Work(work.flops, max(0.0, work.streamed_bytes - 2 * cache_bytes / max(1, calls)), work.resident_bytes)


class Observer:
    """Watches one call under `no_grad`: `with Observer(inputs) as seen: outputs = model(*inputs)`, then `estimate`.

    It keeps no tensor alive. Whatever goes wrong in here becomes a note, not an exception of the call. Storages that
    are neither of `inputs` nor written during the call are the model's own.
    """

    def __init__(self, inputs: Any) -> None:
        self._storages: dict[int, Storage] = {}
        self._operations: list[RecordedOperation] = []
        self._notes: dict[str, None] = {}
        self._modes = (Operations(self), Layers(self))
        self._paused = False
        for tensor in tensors(inputs):
            key = self._key(tensor, "input")
            if key is not None:
                self._storages[key].fresh = True

    def __enter__(self) -> Observer:
        for mode in self._modes:
            mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*error)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let operations pass unseen."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def note(self, func: Any, name: str, call: dict[str, Any], args: Any, kwargs: Any, result: Any) -> None:
        """Write down an operation that was carried out. Never raises."""
        if self._paused:
            return
        try:
            if len(self._operations) < MAX_OPERATIONS:
                self._note(func, name, call, args, kwargs, result)
            else:
                self._say(f"only the first {MAX_OPERATIONS} operations are counted")
        except Exception as error:
            self._say(f"{name} is not understood: {_brief(error)}")

    def estimate(self, outputs: Any) -> Estimate:
        """The work behind `outputs`. Never raises."""
        try:
            returned = [
                (key, view_of(tensor)) for tensor in tensors(outputs) if (key := self._key(tensor, "model")) is not None
            ]
            work = work_behind(returned, self._operations, self._storages)
            return Estimate(work, tuple(self._notes), max(1, len(self._operations)))
        except Exception as error:
            return Estimate(Work({}, 0.0), (*self._notes, f"nothing is known: {_brief(error)}"))

    def _note(self, func: Any, name: str, call: dict[str, Any], args: Any, kwargs: Any, result: Any) -> None:
        results = tensors(result)
        written = written_arguments(func)
        if name.endswith("_like") or name.startswith("new_"):
            call = {}
        reads, known = [], set()
        for argument, value in call.items():
            # What a foreign operation needs of its arguments is its own affair.
            doubtful = name in PARTLY_READ.get(argument, ()) or argument == GATHERS.get(name, ("",))[0] or "::" in name
            for tensor in tensors(value):
                key = self._key(tensor, "model")
                if key is None:
                    continue
                known.add(key)
                if argument == "out" or (argument in written and name in OVERWRITING):
                    self._storages[key].overwritten = True
                else:
                    reads.append(Read(key, view_of(tensor), sure=not (doubtful or self._is_new(key))))
        if not written and results and all(storage_number(tensor) in known for tensor in results):
            return  # A view: nothing was read or written.
        targets = [tensor for argument in written for tensor in tensors(call.get(argument))]
        writes = {
            (key, view_of(tensor)) for tensor in (*results, *targets) if (key := self._key(tensor, "call")) is not None
        }
        if unknown := narrow(name, call, results, reads):
            self._say(unknown)
        fresh = any(self._storages[read.storage].fresh for read in reads)
        fresh = fresh or torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())
        for key, _ in writes:
            self._storages[key].fresh |= fresh
            self._storages[key].written = True
        flops = flops_of(func, name, call, args, kwargs, result)
        if not flops and name.startswith(UNCOUNTED) and "norm" not in name:
            self._say(f"{name}: FLOPs are not counted")
        self._operations.append(RecordedOperation(reads, writes, flops, fresh, name in STEERING, name in RECURRENT))

    def _key(self, tensor: torch.Tensor, origin: str) -> int | None:
        """The storage's number; None where a tensor has none (sparse)."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            self._say(f"tensors of layout {tensor.layout} are not counted")
            return None
        if storage._cdata not in self._storages:
            # The weak reference keeps the number from being given to another storage, not the memory from being freed.
            self._storages[storage._cdata] = Storage(
                nbytes=storage.nbytes(), reference=StorageWeakRef(storage), origin=origin, fresh=False
            )
        return storage._cdata

    def _is_new(self, key: int) -> bool:
        """Whether an input holds other values by now than it came with."""
        return self._storages[key].origin == "input" and self._storages[key].overwritten

    def _say(self, note: str) -> None:
        if len(self._notes) < 20:
            self._notes[note] = None


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"
