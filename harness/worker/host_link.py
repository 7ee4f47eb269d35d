"""The judge's end of a runner on the CPU: sealed shared memory, and the host clock around two messages."""

from __future__ import annotations

import time
from typing import Any

import torch

from harness.worker import host_memory, values
from harness.worker.layout import BadReference, view
from harness.worker.link import OUTPUT_BLOCK, POISON, Draw, LateOutput, Link, Reading
from harness.worker.messages import Burst, CopyOnly, Enqueued, Finished, SharedBlock
from harness.worker.nodes import Node, TensorRef


class HostLink(Link):
    """CPU: the judge's host clock around a message there and a message back."""

    def burst(
        self, draws: list[Draw], *, gated: bool = True, deadline_s: float | None = None, profiled: bool = False
    ) -> Reading:
        self._number += 1
        self._blocks[OUTPUT_BLOCK].fill_(POISON)
        request = Burst(number=self._number, calls=self._calls(draws), blocks=self._unsent, profiled=profiled)
        judge_us, enqueued, finished = self._timed(request, draws, deadline_s or self.limits.call_s)
        late = self._blocks[OUTPUT_BLOCK] != self._snapshot
        self._late_share = late.count_nonzero().item() / max(late.numel(), 1)
        self._returned = self._outputs(enqueued, len(draws))
        return Reading(
            judge_us=judge_us,
            claimed_us=finished.claimed_us,
            gated=False,
            aliased=tuple(enqueued.aliased),
            profile=finished.profile,
        )

    def output(self, call: int) -> Any:
        if self._late_share:
            raise LateOutput(self._late_share)
        return self._returned[call]

    def null_us(self, draws: list[Draw], *, gated: bool = True) -> float:
        self._number += 1
        self._blocks[OUTPUT_BLOCK].fill_(POISON)
        request = CopyOnly(number=self._number, calls=self._calls(draws), blocks=self._unsent)
        return self._timed(request, draws, self.limits.call_s)[0]

    def _timed(
        self, request: Burst | CopyOnly, draws: list[Draw], deadline_s: float
    ) -> tuple[float, Enqueued, Finished]:
        deadline = time.monotonic() + deadline_s
        started = time.perf_counter()
        # With the clock running: a thread of the runner's may be watching this memory, and begin at once.
        self._write_inputs(draws)
        self._send(request)
        enqueued = self._receive_burst(Enqueued, deadline)
        judge_us = (time.perf_counter() - started) * 1e6
        # The message is the runner's word only: what counts is what lies there now, whatever is written later.
        self._snapshot.copy_(self._blocks[OUTPUT_BLOCK])
        return judge_us, enqueued, self._receive_burst(Finished, deadline)

    def _decode(self, node: Node, call: int) -> Any:
        allowed = set(self._output_refs[call])

        def tensor(ref: TensorRef) -> Any:
            if ref.block == -1:
                return ref
            # Only this call's own places count: an output cannot be an input or another call's output.
            if ref not in allowed:
                raise BadReference("outside the places given to this call")
            return view(self._snapshot, ref)

        return values.decode(node, tensor)

    def _reserve_outputs(self, nbytes: int) -> None:
        self._add_block(OUTPUT_BLOCK, nbytes)
        self._snapshot = torch.empty_like(self._blocks[OUTPUT_BLOCK])

    def _add_block(self, number: int, nbytes: int) -> None:
        fd, block = host_memory.create(nbytes)
        self._blocks[number] = block
        self._unsent.append(SharedBlock(id=number, nbytes=block.numel(), fd=len(self._unsent_fds)))
        self._unsent_fds.append(fd)
