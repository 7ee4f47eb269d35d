"""The runner: one source, one process, then gone. It enforces nothing; whatever it says is a claim.

The baseline runs in one too, by the same code. It holds no reference outputs, no seeds of inputs and no tolerances; it
gets inputs in shared memory, calls `forward`, and says where the outputs lie.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import torch
from torch.nn.parameter import is_lazy

from harness.catalog import modules
from harness.compile import extensions
from harness.errors import door
from harness.runner.baselines import as_baseline
from harness.runner.cuda_runner import CudaRunner
from harness.runner.devices import RunnerDevice, come_up
from harness.runner.host_runner import HostRunner
from harness.runner.profiling import Profiler
from harness.sandbox.syscalls import PR_SET_DUMPABLE, prctl
from harness.wire import faults, generators, host_memory, layout, values, weights
from harness.wire.channel import Channel, PeerGone
from harness.wire.messages import (
    LONGEST_SAID,
    MOST_NAMES,
    Armed,
    Burst,
    Call,
    ComeUp,
    Enqueued,
    Failed,
    Finished,
    Hello,
    Prepare,
    Ready,
    ToRunner,
)
from harness.wire.nodes import LONGEST_WORD, TensorRef

# Without these nobody can move a module to its device or give it its weights. Others may well be numbers (`half`).
WALKING = frozenset(
    (
        *("to", "_apply", "children", "named_children", "modules", "named_modules"),
        *("parameters", "named_parameters", "buffers", "named_buffers", "_named_members"),
    )
)


def greet(channel_fd: int) -> None:
    """Give the judge this process's memory to read, which no permission of its own would be sure to let it.

    Before any limit: once a process may have no more descriptors than a candidate, one that has as many under way, in
    sockets, keeps every other of its user from passing one on.
    """
    prctl(PR_SET_DUMPABLE, 1)
    memory = host_memory.opened()
    channel = Channel.from_fd(os.dup(channel_fd), ToRunner)
    # A judge that is gone is noticed soon enough.
    with contextlib.suppress(PeerGone):
        channel.send(Hello(), tuple(memory))
    channel.close()
    for descriptor in memory:
        os.close(descriptor)


def main(channel_fd: int) -> None:
    """Serve the judge, which was greeted, until it hangs up."""
    with contextlib.suppress(PeerGone):
        _serve(Channel.from_fd(channel_fd, ToRunner))


def _serve(channel: Channel) -> None:
    request, fds = channel.receive(None)
    if isinstance(request, ComeUp):
        come_up(request.device)
        request, fds = channel.receive(None)
    phase: Literal["load", "call"] = "load"
    path = Path(request.source.path)
    try:
        runner = Runner(request, fds)
        channel.send(runner.ready)
        phase = "call"
        while True:
            message, fds = channel.receive(None)
            runner.burst(message, fds, channel)
    except PeerGone:
        raise
    except SystemExit:
        raise
    except BaseException as error:
        trace = faults.printed(traceback.format_exc)
        print(trace, file=sys.stderr, flush=True)
        channel.send(
            Failed(
                phase=phase,
                exception=faults.exception_name(error)[:LONGEST_WORD],
                text=faults.printed(partial(str, error))[:LONGEST_SAID],
                line=faults.candidate_line(error, path),
                outside=faults.outside(error, path)[:LONGEST_WORD],
            )
        )


class Taken(NamedTuple):
    """Of a candidate's parameters and buffers, the names of those that did not take the reference's values; whether any
    of the others had been constructed as something else, and whether as what the reference's begin with."""

    unmatched: list[str]
    lacks: list[str]
    changed: bool
    as_begun: bool


class Runner:
    """A constructed candidate, with the device it runs on and the memory it shares with the judge."""

    def __init__(self, request: Prepare, fds: list[int]) -> None:
        self.device: RunnerDevice = HostRunner() if request.device == "cpu" else CudaRunner(request.device)
        self.device.open(request.blocks, fds)
        source = request.source
        extensions.intercept(extensions.Prebuilt(source.libraries, source.failures, source.unconstructed))
        module = modules.execute(Path(source.path), source.overrides)
        how = request.construction
        drawn = partial(
            weights.Drawn,
            how.seed,
            only=frozenset(how.drawn),
            structured=frozenset(how.structured),
            norms=frozenset(how.norms),
        )
        with weights.larger(how.larger, module):
            with weights.drawn(found := drawn(), module):
                self.model = self._made(module, request)
            if loose := found.loose_in(self.model):
                # What can be constructed but once keeps what it has.
                with contextlib.suppress(Exception), weights.drawn(drawn(loose=loose), module):
                    self.model = self._made(module, request)
            plain = not request.own_weights and self._lacks(request.plain, how.aliases)
            if plain:
                # Nobody can tell its weights what the reference's are, so both have those that modules begin with.
                self.model = self._made(module, request)
        taken = Taken([], [], False, False) if request.own_weights else self._take_over(request, plain=plain)
        self.forward = as_baseline(self.model, source.baseline, self.device.device)
        self.device.synchronize()
        self._aliased: list[int] | None = None
        self._own = self._addresses_of_state()
        self.ready = Ready(
            unmatched=[name[:LONGEST_WORD] for name in taken.unmatched[:MOST_NAMES]],
            lacks=[name[:LONGEST_WORD] for name in taken.lacks[:MOST_NAMES]],
            plain=plain,
            changed=taken.changed,
            as_begun=taken.as_begun,
        )

    def burst(self, message: Burst, fds: list[int], channel: Channel) -> None:
        """Carry out the calls of one burst behind the judge's gate, and say where their outputs are."""
        self.device.open(message.blocks, fds)
        calls, inputs = message.calls, self._inputs(message.calls)
        # Before the gate, because it waits for the device.
        profiler = Profiler(self.device.device) if message.profiled else None
        nonce = message.nonce
        with torch.no_grad():
            if self.device.synchronous:
                channel.send(Armed(number=message.number))
                go = channel.receive(None)[0]
                nonce = go.nonce
                if go.calls:
                    calls, inputs = go.calls, self._inputs(go.calls)
            self.device.begin(message.number, self._own)
            for call, given in zip(calls, inputs, strict=True):
                self._call(call.seed, given, profiler)
        self.device.end(message.number, whole_device=not message.gated)

        def finished() -> Finished:
            claimed_us = self.device.claimed_us()
            return Finished(number=message.number, claimed_us=claimed_us, profile=profiler.stop() if profiler else None)

        enqueued = Enqueued(
            number=message.number,
            nonce=nonce,
            outputs=self.device.outputs(),
            blocks=self.device.new_blocks(),
            repeat=self.device.must_repeat(),
            aliased=(self._aliased or [])[:MOST_NAMES],
            finished=finished() if self.device.synchronous else None,
        )
        channel.send(enqueued)
        # On the CPU nothing may follow: the process stands still from here on, and goes on on the next burst's clock.
        if not self.device.synchronous:
            channel.send(finished())

    def _inputs(self, calls: list[Call]) -> list[Any]:
        return [values.decode(call.inputs, self._shared) for call in calls]

    def _addresses_of_state(self) -> frozenset[int]:
        """Where parameters and buffers lie: handed over in place, they would be poisoned as other outputs are."""
        own = (*self.model.parameters(), *self.model.buffers())
        return frozenset(tensor.untyped_storage().data_ptr() for tensor in own if layout.is_strided(tensor))

    @door
    def _call(self, seed: int | None, inputs: Any, profiler: Profiler | None) -> None:
        if seed is not None:
            generators.seed(self.device.device, seed)
        output = profiler.forward(self.forward, inputs) if profiler else self.forward(*inputs)
        if self._aliased is None:
            # The first call may have made some.
            self._own = self._addresses_of_state()
            self._aliased = shared_inputs(values.tensors(output), values.tensors(inputs))
        self.device.publish(output)

    def _shared(self, ref: TensorRef) -> torch.Tensor:
        return layout.view(self.device.block(ref.block), ref)

    def _made(self, module: ModuleType, request: Prepare) -> torch.nn.Module:
        # Each time anew: a constructor may change them, or make parameters of them.
        arguments = values.decode(request.init_args, lambda ref: self._shared(ref).clone())
        torch.manual_seed(request.construction.seed)
        model = weights.constructed(module, request.source.entries, arguments)
        if lost := _lost_methods(model):
            said = f"{Path(request.source.path).name}: its module sets {lost}, which is a method of every module"
            raise modules.LoadFault("not_a_module", f"{said}: give it another name")
        _move(model, self.device.device, values.dtype_named(request.precision))
        return model

    def _lacks(self, refs: dict[str, TensorRef], aliases: dict[str, str]) -> bool:
        """Whether some of these have no counterpart in the module."""
        return not refs.keys() <= {its for _, _, its in self._counterparts(refs, aliases)}

    def _counterparts(
        self, refs: dict[str, TensorRef], aliases: dict[str, str]
    ) -> Iterator[tuple[torch.Tensor, str, str | None]]:
        """Each parameter and buffer of the module, its first name, and which of `refs` it can take by any of its names;
        None where none."""
        named = (self.model.named_parameters, self.model.named_buffers)
        own: dict[int, tuple[torch.Tensor, list[str]]] = {}
        for name, tensor in itertools.chain.from_iterable(walk(remove_duplicate=False) for walk in named):
            own.setdefault(id(tensor), (tensor, []))[1].append(name)
        for tensor, names in own.values():
            known = (aliases.get(name, name) for name in names)
            its = next((name for name in known if name in refs and _may_take(tensor, refs[name].shape)), None)
            yield tensor, names[0], its

    def _take_over(self, request: Prepare, *, plain: bool) -> Taken:
        """Copy the reference's parameters and buffers where names and shapes match.

        What has no shape yet takes the reference's; what is stored in a way of its own keeps what it has.
        """
        state = request.state | request.plain if plain else request.state
        unmatched, changed, as_begun = [], False, False
        lacks = dict.fromkeys(state)
        with torch.no_grad():
            for tensor, name, its in self._counterparts(state, request.construction.aliases):
                if its is None:
                    unmatched.append(name)
                    continue
                lacks.pop(its, None)
                known = [self._shared(refs[its]) for refs in (state, request.plain) if its in refs]
                if is_lazy(tensor):
                    tensor.materialize(known[0].shape)
                elif not _equal(tensor, known[0]):
                    is_plain = any(_equal(tensor, one) for one in known[1:])
                    as_begun, changed = as_begun or is_plain, changed or not is_plain
                # As whoever constructed it has to, too: what was made in inference mode is written to there.
                with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
                    tensor.copy_(known[0])
        return Taken(unmatched, list(lacks), changed, as_begun)


@door
def _lost_methods(model: torch.nn.Module) -> str:
    """The first attribute in place of a method by which a module is walked through; nothing where there is none."""
    waiting, seen = [("self", model)], set[int]()
    while waiting:
        path, module = waiting.pop()
        seen.add(id(module))
        lost = next((name for name, value in vars(module).items() if name in WALKING and not callable(value)), "")
        if lost:
            return f"{path}.{lost}"
        own = vars(module).get("_modules")
        within = own.items() if isinstance(own, dict) else ()
        waiting += [(f"{path}.{name}", one) for name, one in within if one is not None and id(one) not in seen]
    return ""


@door
def _move(model: torch.nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    weights.cast(model, device, dtype)


def _equal(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return tensor.dtype is other.dtype and torch.equal(tensor, other)


def _may_take(tensor: torch.Tensor, shape: tuple[int, ...]) -> bool:
    """Whether values of this shape can be copied into `tensor`, one to an element; one may have no shape yet."""
    if is_lazy(tensor):
        return True
    if not layout.is_strided(tensor) or tuple(tensor.shape) != tuple(shape):
        return False
    return layout.apart(tensor.shape, tensor.stride())


def shared_inputs(outputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> list[int]:
    """Positions of the inputs that some output has memory in common with."""
    spans = [_span(tensor) for tensor in outputs]
    return [
        position
        for position, (first, last) in enumerate(_span(tensor) for tensor in inputs)
        if any(start < last and first < end for start, end in spans)
    ]


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses from a dense tensor's first byte to behind its last; of any other, none."""
    if not layout.is_strided(tensor) or not tensor.numel():
        return 0, 0
    elements = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + elements * tensor.element_size()
