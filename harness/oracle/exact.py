"""The reference run in several ways: as it is, in float64, on coarser numbers. The module itself is never touched."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from harness.environment import available_memory_bytes
from harness.errors import door
from harness.machine.pauses import pause
from harness.oracle.added_up import AddedUp
from harness.oracle.chunks import Cut, Few, Split, few, find_split, independent
from harness.oracle.float64 import Operation, Widened
from harness.oracle.formats import Format, is_of_eight_bits, round_to
from harness.oracle.jitter import Everywhere, Mover, Stepwise
from harness.oracle.lengths import Longest
from harness.oracle.modes import Unseen
from harness.oracle.promises import NOTHING, Promises
from harness.oracle.replica import Reused, Unknown, batch_statistics, replica
from harness.oracle.slices import wide_dtype
from harness.oracle.structure import address, convert, flatten, rebuild, tensors
from harness.oracle.switches import NotPermitted, Permitted, Products

# Float64 copies of inputs, parameters and outputs, times this for what lies between them, must fit the memory:
# attention, the worst usual case, holds scaled copies of Q and K beside them.
WORKING_SET = 2.0
# Bytes of a float64 run that is made at once. A larger one goes over slices of the batch, wherever it can be cut. A
# card takes more, since it is done with a small slice before the host has launched the next operation.
AT_ONCE = {"cpu": 1 << 28, "cuda": 1 << 31}
# Bytes of one from which on a few entries of the batch stand for all of it.
MUCH = {"cpu": 1 << 26, "cuda": 1 << 31}


@dataclass(frozen=True)
class Exact:
    """The most exact output there is.

    `where` is device, chunked or host; `precision` float64, float32, or native where the code runs no other way;
    `attention` whether fused attention was called, `longest` how long sums are. `cut` is the way that inputs were cut
    into slices, where they were; floating leaves then are of `slices.wide_dtype`.
    """

    output: Any
    where: str
    precision: str
    attention: bool = False
    longest: Longest = field(default_factory=Longest)
    cut: Cut | None = None


# What the reference is run in: the first one that its code takes, and in which it is the same function.
_WIDE = (torch.float64, torch.float32)


class ExactReference:
    """A reference module and the ways to run it; every run starts from the same module state and generator state.

    `memory_limit` in bytes replaces the free memory of the inputs' device, and what a float64 run may take at once.
    `strict_float32` asks for float32 where PyTorch's switches allow TF32. Jittered inputs keep their `promises`.
    """

    def __init__(
        self,
        module: nn.Module,
        memory_limit: int | None = None,
        strict_float32: bool = False,
        promises: Promises = NOTHING,
    ) -> None:
        self.module = module
        self.promises = promises
        # Whether it matters to the reference which numbers are equal: those that are stay so when inputs move.
        self.compares = False
        # Whether the switches allow TF32 to an operator that the reference calls; None until it is known.
        self.permits = False if strict_float32 else None
        # Whether the reference has products whose operands can be rounded; None until a run `lowered` tells.
        self.multiplies: bool | None = None
        self.memory_limit = memory_limit
        floating = [t for t in (*module.parameters(), *module.buffers()) if t.is_floating_point()]
        self.dtype = floating[0].dtype if floating else None
        # Whether a run writes to these; known after the first one. They are cloned for each run until it is.
        self.writes_inputs: bool | None = None
        self.writes_parameters: bool | None = None
        # Paths of the output's tensors that share memory with an input, and its number: a candidate's may, too.
        self.returned: set[tuple[str, int]] = set()
        # Ways to cut that were shown in float64 to leave entries independent.
        self._independent: set[Split] = set()
        # Dtypes in which the reference was seen to be the same function, and those in which it is another one.
        self._same: set[torch.dtype] = set()
        self._other: set[torch.dtype] = set()
        # A run as it is, for what its code was told and its operators were given; None before `exact`.
        self._known: Widened | None = None
        # Run as it is, once it is known not to write to parameters, as long as each run leaves it as it was.
        self._reused: Reused | None = None
        self._reusable = True

    def precision(self, inputs: list[Any]) -> torch.dtype:
        """The dtype that the problem is computed in: that of the first floating input, or of the parameters."""
        tensors = [t for _, t in flatten(inputs) if isinstance(t, torch.Tensor) and t.is_floating_point()]
        return tensors[0].dtype if tensors else self.dtype or torch.float32

    def native(
        self,
        inputs: list[Any],
        seed: int,
        training: bool | None = None,
        mode: contextlib.AbstractContextManager[Any] | None = None,
        wrap: Callable[[nn.Module], Any] | None = None,
    ) -> Any:
        """The output at the problem's precision, under whatever switches are on.

        `training` overrides the module's mode, `mode` is entered around the forward, `wrap` replaces the module.
        """
        return self._run(inputs, seed, _as_it_is, mode, training, wrap)

    def composed(self, inputs: list[Any], seed: int, mode: contextlib.AbstractContextManager[Any] | None = None) -> Any:
        """The same with fused attention taken apart into product, softmax, product, in the problem's precision."""
        allowed = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
        try:
            with sdpa_kernel(SDPBackend.MATH):
                return self.native(inputs, seed, mode=mode)
        finally:
            torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(allowed)

    def lowered(self, inputs: list[Any], format: Format, seed: int) -> Any:
        """The output with products in `format`: their operands are rounded to it, as tensor cores do, and nothing else.

        Where nothing is multiplied so, as `coarsened`: then what is read and written is all that can be coarser.
        """
        if self.multiplies is not False:
            mode = Products(format)
            output = self._run(inputs, seed, _as_it_is, mode)
            self.multiplies = mode.met
        return output if self.multiplies else self.coarsened(inputs, format, seed)

    def coarsened(self, inputs: list[Any], format: Format, seed: int) -> Any:
        """The output at the problem's precision from inputs and parameters rounded to `format`."""
        return self._run(inputs, seed, lambda t: round_to(t, format) if _is_floating(t) else t)

    def permitted(self, inputs: list[Any], seed: int) -> Any:
        """The output with TF32 wherever PyTorch's switches allow that to an operator that the reference calls.

        Raises NotPermitted where they allow it to none.
        """
        if self.permits is not False:
            mode = Permitted()
            output = self._run(inputs, seed, _as_it_is, mode)
            self.permits = mode.met
        if not self.permits:
            raise NotPermitted("no operator of the reference may use TF32")
        return output

    def jittered(self, inputs: list[Any], ulps: int, seed: int, draw: int) -> Any:
        """The native output for inputs moved by up to `ulps` units in the last place, in a new way for each `draw`.

        They keep what they promise, and numbers on a grid stay. Equal ones stay equal where that matters (`compares`).
        """
        return self._run(self.promises.changed(inputs, Mover(ulps, draw, self.compares)), seed, _as_it_is)

    def jittered_throughout(self, inputs: list[Any], ulps: int, seed: int, draw: int) -> Any:
        """The same with parameters moved, too, and what is rounded to integers on the way."""
        move = Mover(ulps, draw, self.compares)
        moved = self.promises.changed(inputs, move)
        return self._run(moved, seed, _as_it_is, Stepwise(move), weights=move)

    def jittered_steps(self, inputs: list[Any], ulps: int, seed: int, draw: int) -> Any:
        """The same with nothing moved but what is rounded to integers on the way."""
        return self._run(inputs, seed, _as_it_is, Stepwise(Mover(ulps, draw)))

    def added_up(self, inputs: list[Any], seed: int) -> Any:
        """The native output where each float32 product errs by as much as adding up may lose. Raises ValueError where
        there is none."""
        mode = AddedUp()
        output = self._run(inputs, seed, _as_it_is, mode)
        if not mode.met:
            raise ValueError("no product in float32")
        return output

    def jittered_everywhere(self, inputs: list[Any], ulps: int, seed: int, draw: int) -> Any:
        """The native output where each operation's result is moved."""
        return self._run(inputs, seed, _as_it_is, Everywhere(Mover(ulps, draw)))

    def strict(self, inputs: list[Any], seed: int) -> Any:
        """The output in float32 throughout, without TF32 and whatever narrower dtype the code asks for."""
        with _tf32_off():
            return self._run(inputs, seed, _to(torch.float32), self._mode(torch.float32, inputs))

    def smooth(self, inputs: list[Any], seed: int) -> Any:
        """The float64 output without rounding to a grid: of who leaves a quantiser out."""
        return self._run(inputs, seed, _double, self._mode(torch.float64, inputs, smooth=True))

    def recorded(self, inputs: list[Any], seed: int, wide: bool, keep: frozenset[str]) -> tuple[Any, list[Operation]]:
        """The output, in float64 if `wide` (or what `exact` ran in), and the calls of the operators named in `keep`."""
        for dtype in (dtype for dtype in _WIDE if wide and dtype in self._same):
            mode = self._mode(dtype, inputs, keep)
            try:
                return self._run(inputs, seed, _to(dtype), mode), mode.seen
            except torch.OutOfMemoryError:
                raise
            except Exception:
                # As in `exact`.
                continue
        mode = self._mode(None, inputs, keep)
        return self._run(inputs, seed, _as_it_is, mode), mode.seen

    def _mode(
        self,
        dtype: torch.dtype | None,
        inputs: list[Any],
        keep: frozenset[str] = frozenset(),
        smooth: bool = False,
    ) -> Widened:
        """What the reference is run in; without a dtype, as it is."""
        known = self._known.answers.given if self._known and dtype else None
        return Widened(self.precision(inputs), dtype, keep, known, smooth)

    def exact(self, inputs: list[Any], seed: int, native: Any) -> Exact:
        """The float64 output for `inputs`, given the native one (whose size tells how much memory it takes).

        On the device: at once if that is little, else a slice of the batch at a time where entries are shown to be
        independent, else at once if it fits; else on the host. Code that cannot run in float64, or is another function
        there, runs in float32 without TF32, or as it is at worst.
        """
        if self._known is None:
            known = self._mode(None, inputs)
            self._run(inputs, seed, _as_it_is, known)
            self._known = known
        for dtype in (dtype for dtype in _WIDE if dtype not in self._other):
            mode = self._mode(dtype, inputs)
            try:
                found = self._exact(dtype, mode, inputs, seed, native)
            except torch.OutOfMemoryError:
                raise
            except Exception:
                # Foreign code has its own reasons to insist on a dtype, and any of them may surface as any exception.
                continue
            if self._is_the_same(dtype, mode, inputs):
                return found
        mode = self._mode(None, inputs)
        with _tf32_off():
            output = self._run(inputs, seed, _as_it_is, mode)
            return Exact(output, "device", "native", mode.attention, mode.longest)

    def _is_the_same(self, dtype: torch.dtype, mode: Widened, inputs: list[Any]) -> bool:
        """Whether the reference, run in `mode`, is the function that it is natively; found out once for each dtype."""
        assert self._known is not None
        if dtype not in self._same | self._other:
            asked, met = mode.answers.as_often, self._known.constants.are_repeated_by(mode.constants)
            is_it = dtype is self.precision(inputs) or (asked and met)
            (self._same if is_it else self._other).add(dtype)
        return dtype in self._same

    def _exact(self, dtype: torch.dtype, mode: Widened, inputs: list[Any], seed: int, native: Any) -> Exact:
        if dtype is torch.float64:
            return self._exact_float64(mode, inputs, seed, native)
        with _tf32_off():
            output = _alike(self._run(inputs, seed, _to(dtype), mode), native)
        return Exact(output, "device", "float32", mode.attention, mode.longest)

    def few(self, inputs: list[Any], seed: int, native: Any) -> Few | None:
        """Some entries of the batch that stand for all of it, where a float64 run of it all would be much; None where
        it would not, or where entries are not shown to be independent. `native` is the output for the inputs."""
        if self._needed(inputs, native)[0] <= MUCH["cpu" if _cuda(inputs) is None else "cuda"]:
            return None
        if torch.float64 in self._other:
            return None
        try:
            split = self._split(inputs, seed, native, self._mode(torch.float64, inputs))
            return None if split is None else few(split, inputs, native)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            # Foreign code may raise anything in float64.
            return None

    def _exact_float64(self, mode: Widened, inputs: list[Any], seed: int, native: Any) -> Exact:
        need, kept, fixed = self._needed(inputs, native)
        free = self._free(inputs) - fixed
        # Beside the result as a whole.
        at_once = min(free - kept, AT_ONCE["cpu" if _cuda(inputs) is None else "cuda"])
        share = max(1e-9, at_once / need) if need else 1.0
        if need <= at_once:
            with contextlib.suppress(torch.OutOfMemoryError):
                return self._whole(mode, inputs, seed, native, "device")
        with contextlib.suppress(torch.OutOfMemoryError):
            chunked = self._chunked(mode, inputs, seed, native, share)
            if chunked is not None:
                return chunked
        if at_once < need <= free:
            with contextlib.suppress(torch.OutOfMemoryError):
                return self._whole(mode, inputs, seed, native, "device")
        return self._whole(mode, convert(inputs, lambda t: t.cpu()), seed, native, "host")

    def _whole(self, mode: Widened, inputs: list[Any], seed: int, native: Any, where: str) -> Exact:
        host = where == "host"
        output = self._run(inputs, seed, lambda t: _double(t.cpu() if host else t), mode)
        return Exact(_alike(output, native), where, "float64", mode.attention, mode.longest)

    def _chunked(self, mode: Widened, inputs: list[Any], seed: int, native: Any, share: float) -> Exact | None:
        """Float64 over slices of the first dimension, each taking about `share` of the whole; None where invalid."""
        split = self._split(inputs, seed, native, mode)
        if split is None:
            return None
        cut = Cut(split, max(1, math.floor(split.size * min(1.0, share))))
        whole: list[torch.Tensor] = []
        own = [leaf for _, leaf in flatten(native)]
        for start, part in cut.parts(inputs):
            wide = self._run(part, seed, _double, mode)
            found = [leaf for _, leaf in flatten(_alike_but_length(wide, native))]
            whole = whole or [_room(leaf, like) for leaf, like in zip(found, own, strict=True)]
            for leaf, into in zip(found, whole, strict=True):
                into[start : start + cut.step].copy_(leaf)
        return Exact(rebuild(native, whole), "chunked", "float64", mode.attention, mode.longest, cut)

    def _split(self, inputs: list[Any], seed: int, native: Any, mode: Widened) -> Split | None:
        """A way to cut the inputs into entries that do not depend on each other; None where none is shown."""
        if batch_statistics(self.module):
            return None
        split = find_split(lambda part: self.native(part, seed), inputs, native)
        if split is None or split in self._independent:
            return split
        if not independent(lambda part: self._run(part, seed, _double, mode), split, inputs):
            return None
        self._independent.add(split)
        return split

    @door
    def _run(
        self,
        inputs: list[Any],
        seed: int,
        change: Callable[[torch.Tensor], torch.Tensor],
        mode: contextlib.AbstractContextManager[Any] | None = None,
        training: bool | None = None,
        wrap: Callable[[nn.Module], Any] | None = None,
        weights: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> Any:
        """One forward of a replica, as good as fresh, whose tensors went through `weights` or `change`, as did the
        inputs through that."""

        made: dict[int, torch.Tensor] = {}

        def argument(tensor: torch.Tensor) -> torch.Tensor:
            # An input that is given twice stays one: code may ask that, too.
            if id(tensor) not in made:
                changed = change(tensor)
                again = changed is tensor and self.writes_inputs is not False
                made[id(tensor)] = changed.clone() if again else changed
            return made[id(tensor)]

        def parameter(tensor: torch.Tensor) -> torch.Tensor:
            changed = (weights or change)(tensor)
            return changed.clone() if changed is tensor and self.writes_parameters is not False else changed

        pause()
        # Every run is on copies, then.
        unseen = Unseen() if self.writes_inputs is None else None
        with torch.no_grad():
            plain = change is _as_it_is and weights is None
            again = plain and training is None and wrap is None and self.writes_parameters is False
            reused = self._taken_again(parameter) if again else None
            module = replica(self.module, parameter) if reused is None else reused.module
            if training is not None:
                module.train(training)
            arguments = convert(inputs, argument)
            parameters = list(module.parameters()) if reused is None else reused.parameters
            own = tensors(arguments)
            given, held = _versions(own), _versions(parameters)
            with _seeded(seed, arguments), mode or contextlib.nullcontext(), unseen or contextlib.nullcontext():
                output = (wrap(module) if wrap else module)(*arguments)
                output = convert(output, lambda t: t.detach())
            self.returned |= _shared(output, own)
            uncounted = unseen is not None and unseen.met
            self.writes_inputs = bool(self.writes_inputs) or uncounted or given != _versions(own)
            self.writes_parameters = bool(self.writes_parameters) or uncounted or held != _versions(parameters)
            if reused is not None:
                self._reusable = reused.restore(output)
                self._reused = reused if self._reusable else None
            return output

    def _taken_again(self, parameter: Callable[[torch.Tensor], torch.Tensor]) -> Reused | None:
        """The replica of the last such run, or the first one, to be put back after the run; None where each run needs
        its own."""
        # Gone with a run that raises.
        reused, self._reused = self._reused, None
        if reused is None and self._reusable:
            try:
                reused = Reused(self.module, parameter)
            except Unknown:
                self._reusable = False
        return reused

    def _needed(self, inputs: list[Any], native: Any) -> tuple[float, float, float]:
        """Bytes for float64: what grows with the batch, what is kept of that, and what does not grow."""
        given, made = (
            sum(t.numel() for _, t in flatten(tree) if isinstance(t, torch.Tensor)) for tree in (inputs, native)
        )
        return WORKING_SET * 8 * (given + made), 8 * made, 8 * sum(t.numel() for t in self.module.parameters())

    def _free(self, inputs: list[Any]) -> float:
        if self.memory_limit is not None:
            return self.memory_limit
        device = _cuda(inputs)
        if device is None:
            return available_memory_bytes()
        return torch.cuda.mem_get_info(device)[0] + cached_bytes(device)


def cached_bytes(device: torch.device) -> int:
    """Bytes of a card's memory that torch holds and does not use."""
    # memory_reserved and memory_allocated sort all of the allocator's figures for each of theirs: 0.4 ms.
    figures = torch.cuda.memory_stats_as_nested_dict(device)
    reserved, allocated = (figures[name]["all"]["current"] for name in ("reserved_bytes", "allocated_bytes"))
    return int(reserved - allocated)


def _alike(output: Any, native: Any) -> Any:
    """`output`, if its leaves are of the form of the native ones; code that looks at dtypes may do otherwise."""
    for (place, wide), (path, own) in zip(flatten(output), flatten(native), strict=True):
        if place != path:
            raise TypeError(f"the reference gives {place} in float64 in place of {path}")
        if _form(wide) != _form(own):
            raise TypeError(f"the reference gives {_form(wide)} in float64 in place of {_form(own)}")
    return output


def _alike_but_length(output: Any, native: Any) -> Any:
    """`output`, of a slice of the batch, if its leaves are of the form of the native ones but for their length."""
    for (place, wide), (path, own) in zip(flatten(output), flatten(native), strict=True):
        if place != path:
            raise TypeError(f"the reference gives {place} in float64 for a slice in place of {path}")
        if _form(wide[:0]) != _form(own[:0]):
            raise TypeError(f"the reference gives {_form(wide)} in float64 for a slice of {_form(own)}")
    return output


def _room(leaf: torch.Tensor, native: torch.Tensor) -> torch.Tensor:
    """A tensor for all slices of which `leaf` is one."""
    dtype = wide_dtype(native.dtype) if leaf.is_floating_point() else leaf.dtype
    return torch.empty(native.shape, dtype=dtype, device=native.device)


def _form(leaf: Any) -> tuple[Any, ...]:
    if isinstance(leaf, torch.Tensor):
        return ("tensor", tuple(leaf.shape), leaf.is_complex(), leaf.is_floating_point())
    return (type(leaf).__name__,)


def _cuda(inputs: list[Any]) -> torch.device | None:
    return next((t.device for _, t in flatten(inputs) if isinstance(t, torch.Tensor) and t.is_cuda), None)


def _shared(output: Any, inputs: list[torch.Tensor]) -> set[tuple[str, int]]:
    """Paths in an output and numbers of inputs with the same memory behind them."""
    given = list(map(address, inputs))
    leaves = ((path, address(leaf)) for path, leaf in flatten(output) if isinstance(leaf, torch.Tensor))
    made = [(path, memory) for path, memory in leaves if memory is not None]
    return {(path, other) for path, memory in made for other, its in enumerate(given) if its == memory}


def _versions(some: Iterable[torch.Tensor]) -> list[int]:
    """How often each tensor has been written in place."""
    return [tensor._version for tensor in some]


def _as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _is_floating(tensor: torch.Tensor) -> bool:
    """Whether its numbers can be rounded or moved where they lie; a sparse buffer keeps its own."""
    return tensor.layout is torch.strided and (tensor.is_floating_point() or tensor.is_complex())


def _upcast(tensor: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
    if is_of_eight_bits(tensor):
        # They are as exact as they are.
        return tensor
    if tensor.is_complex():
        return tensor.to(torch.complex128 if wide is torch.float64 else tensor.dtype)
    return tensor.to(torch.promote_types(tensor.dtype, wide)) if tensor.is_floating_point() else tensor


def _to(wide: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: _upcast(tensor, wide)


def _double(tensor: torch.Tensor) -> torch.Tensor:
    return _upcast(tensor, torch.float64)


@contextlib.contextmanager
def _seeded(seed: int, inputs: list[Any]) -> Iterator[None]:
    """The generators of the host and of the inputs' device start from `seed` inside and are put back afterwards."""
    device = _cuda(inputs)
    # Not torch.manual_seed, which on a host without a card remembers every call for the day there is one; nor
    # torch.random.fork_rng, which takes ten times as long.
    own = [torch.default_generator]
    if device is not None:
        own.append(torch.cuda.default_generators[device.index or 0])
    before = [generator.get_state() for generator in own]
    try:
        for generator in own:
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in zip(own, before, strict=True):
            generator.set_state(state)


@contextlib.contextmanager
def _tf32_off() -> Iterator[None]:
    matmul, convolution = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, convolution
