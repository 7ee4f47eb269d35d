"""What a reference must do at least: matrix FLOPs by dtype class and compulsory bytes, seen by watching one call.

A dispatch mode writes down each operation of the call; from the outputs backwards, only what they need is counted.
Counted are FLOPs of matrix products, convolutions, attention and recurrent layers (torch.utils.flop_counter's formulas
and those below). Not counted: elementwise operations, reductions, FFTs, factorisations, sparse products, and whatever
depends on no input, since a program may compute that once. A sum over a product written elementwise is elementwise.

Where it errs it errs low, since `light.faster_than_light` builds on it. What a program might leave unread (what a
mask hides, weights, tables) is in `resident_bytes`, and in `streamed_bytes` only what no right program can avoid.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from harness.timing.light import Work

# A loop written in Python may run for ever under a mode that costs microseconds an operation.
MAX_OPERATIONS = 50_000
# Distinct views of one storage that are told apart; reads beyond these are left out.
MAX_VIEWS = 512
# Of something so nearly all needed, all is called needed: a pool that leaves a last row out. Well within light.MARGIN.
NEARLY = 0.95
# Seconds that a call on fake tensors may take; a real one of thousands of small operations is faster.
PATIENCE_S = 3.0

# Operations by the arguments of which they may need but a part: what a mask hides, half of a triangle, fewer points
# than there are.
PARTLY_READ = {
    "self": """where masked_fill masked_fill_ masked_select masked_scatter index_put index_put_ index_copy scatter
        slice_scatter select_scatter diagonal_scatter constant_pad_nd im2col fractional_max_pool2d fractional_max_pool3d
        nll_loss_forward nll_loss2d_forward linalg_solve_triangular linalg_cholesky_ex upsample_nearest1d
        upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d
        upsample_trilinear3d""".split(),  # noqa: SIM905 - one a line would fill the page
    "other": ["where"],
    "source": ["masked_scatter"],
    "src": ["scatter"],
    "input": ["native_dropout", "grid_sampler_2d", "grid_sampler_3d"],
    "A": ["triangular_solve", "_linalg_eigh"],
    "sorted_sequence": ["searchsorted"],
    "boundaries": ["bucketize"],
}
# The table, and the indices into it.
GATHERS = {
    "embedding": ("weight", "indices"),
    "_embedding_bag": ("weight", "indices"),
    "_embedding_bag_forward_only": ("weight", "indices"),
    "index_select": ("self", "index"),
    "index": ("self", "indices"),
    "_unsafe_index": ("self", "indices"),
    "gather": ("self", "index"),
    "take": ("self", "index"),
}
OVERWRITING = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "exponential_", "bernoulli_", "set_"}
# Their result is a Python value, which may steer all that follows, or only be asserted.
STEERING = {"_local_scalar_dense", "equal"}
ATTENTION = {
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
}
RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu", "_cudnn_rnn", "mkldnn_rnn_layer"}
POOLS = {"avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"}
UNCOUNTED = ("_fft", "linalg_", "lu_", "cholesky", "_linalg", "_sparse", "_cdist", "_weight_int", "quantized")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The work, and what was not seen or not counted, in words."""

    work: Work
    notes: tuple[str, ...] = ()


def of(model: torch.nn.Module, inputs: Sequence[Any], *, fake: bool = True) -> Estimate:
    """The work of `model(*inputs)`. Never raises.

    First on fake tensors, which costs neither device memory nor time (the first use in a process loads sympy, about a
    second); where the model's control flow needs values, by a real call, which may write to `inputs` and to the model's
    buffers as any call of it may.
    """
    notes: list[str] = []
    if fake:
        try:
            return _of_fake(model, inputs)
        except Exception as error:
            notes.append(f"needs a real call: {_brief(error)}")
    observer = Observer(inputs)
    try:
        with torch.no_grad(), observer:
            outputs = model(*inputs)
    except Exception as error:
        return Estimate(Work({}, 0.0), (*notes, f"nothing is known: {_brief(error)}"))
    estimate = observer.estimate(outputs)
    return Estimate(estimate.work, (*notes, *estimate.notes))


def uncached(work: Work, cache_bytes: float, calls: int) -> Work:
    """`work` of one call among `calls`, less what the last-level cache may save: inputs that were in it before the
    first call, and outputs that are still in it, not in memory, after the last. For `faster_than_light`."""
    return Work(work.flops, max(0.0, work.streamed_bytes - 2 * cache_bytes / max(1, calls)), work.resident_bytes)


@dataclass(frozen=True, slots=True)
class View:
    """Which elements of a storage a tensor shows: sizes and strides in elements, broadcast dimensions left out."""

    start: int
    shape: tuple[tuple[int, int], ...]
    item_bytes: int

    @property
    def count(self) -> int:
        """Distinct elements, at most: windows that overlap are cut to what they span."""
        return min(math.prod(size for size, _ in self.shape), self.end - self.start)

    @property
    def end(self) -> int:
        return self.start + 1 + sum((size - 1) * stride for size, stride in self.shape)

    @property
    def nbytes(self) -> int:
        return self.count * self.item_bytes


class Cover:
    """Bytes of a storage that views cover at least: those of a choice of views no two of which share an element."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._seen: set[View] = set()
        self._chosen: list[View] = []
        self._apart: dict[tuple[Any, ...], bool] = {}

    def __contains__(self, view: View) -> bool:
        return view in self._seen

    def add(self, view: View) -> None:
        if view in self._seen or len(self._seen) >= MAX_VIEWS:
            return
        self._seen.add(view)
        if all(self._known_apart(view, other) for other in self._chosen):
            self._chosen.append(view)
            self.nbytes += view.nbytes
        elif view.nbytes > self.nbytes:
            self._chosen = [view]
            self.nbytes = view.nbytes

    def _known_apart(self, one: View, other: View) -> bool:
        question = (one.start - other.start, one.shape, other.shape)
        if question not in self._apart:
            self._apart[question] = disjoint(one, other)
        return self._apart[question]


@dataclass(slots=True)
class Read:
    """One argument. `sure` unless only part of it may be needed; then, where known, at least and at most how much."""

    storage: int
    view: View
    sure: bool = True
    least_bytes: float = 0.0
    most_bytes: float = 0.0


@dataclass(slots=True)
class Operation:
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


class Observer:
    """Watches one call under `no_grad`: `with Observer(inputs) as seen: outputs = model(*inputs)`, then `estimate`.

    It keeps no tensor alive. Whatever goes wrong in here becomes a note, not an exception of the call. Storages that
    are neither of `inputs` nor written during the call are the model's own. `distinct` counts the different values in
    a tensor of indices, None where they cannot be known.
    """

    def __init__(self, inputs: Any, distinct: Callable[[torch.Tensor], int | None] | None = None) -> None:
        self._storages: dict[int, Storage] = {}
        self._operations: list[Operation] = []
        self._notes: dict[str, None] = {}
        self._distinct = distinct or (lambda indices: int(torch.unique(indices).numel()))
        self._modes = (_Operations(self), _Layers(self))
        self._paused = False
        self.deadline_s = math.inf
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
            return self._estimate(outputs)
        except Exception as error:
            return Estimate(Work({}, 0.0), (*self._notes, f"nothing is known: {_brief(error)}"))

    # What happens.

    def _note(self, func: Any, name: str, call: dict[str, Any], args: Any, kwargs: Any, result: Any) -> None:
        results = tensors(result)
        written = _written(func)
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
        if not written and results and all(self._peek(tensor) in known for tensor in results):
            return  # A view: nothing was read or written.
        targets = [tensor for argument in written for tensor in tensors(call.get(argument))]
        writes = {
            (key, view_of(tensor)) for tensor in (*results, *targets) if (key := self._key(tensor, "call")) is not None
        }
        self._narrow(name, call, results, reads)
        fresh = any(self._storages[read.storage].fresh for read in reads)
        fresh = fresh or torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())
        for key, _ in writes:
            self._storages[key].fresh |= fresh
            self._storages[key].written = True
        flops = self._flops(func, name, call, args, kwargs, result)
        self._operations.append(Operation(reads, writes, flops, fresh, name in STEERING, name in RECURRENT))

    def _narrow(self, name: str, call: Mapping[str, Any], results: list[torch.Tensor], reads: list[Read]) -> None:
        """Where only a part of an argument is needed, and how large it is at least."""
        if name in GATHERS:
            table, index = (call[argument] for argument in GATHERS[name])
            elements = tensors(index)[0].numel() * table.size(1) if "embedding" in name else results[0].numel()
            reads[0].most_bytes = min(reads[0].view.nbytes, elements * table.element_size())
            reads[0].least_bytes = min(reads[0].most_bytes, self._gathered_bytes(name, table, index, call))
        elif name in ("mul", "mul_") and any(tensor.dtype == torch.bool for tensor in tensors(list(call.values()))):
            # A mask by another name.
            masked = {self._peek(tensor) for tensor in tensors(list(call.values())) if tensor.dtype != torch.bool}
            for read in reads:
                read.sure = read.sure and read.storage not in masked
        elif name in ("tril", "triu"):
            reads[0].sure = False
            reads[0].least_bytes = reads[0].most_bytes = reads[0].view.nbytes * _triangle_share(name, call)
        elif name in POOLS or (name == "convolution" and not call["transposed"]):
            source = call.get("input", call.get("self"))
            share = _covered_share(name, call, source, results[0])
            if share < 1:
                reads[0].sure = False
                reads[0].least_bytes = reads[0].most_bytes = reads[0].view.nbytes * share
        elif name in ATTENTION and (call.get("attn_mask", call.get("attn_bias")) is not None or call.get("is_causal")):
            # A mask may hide keys from every query; a causal one does where there are more keys than queries.
            hidden = not call.get("is_causal") or call["key"].size(-2) > call["query"].size(-2)
            of_keys = {self._peek(call["key"]), self._peek(call["value"])}
            for read in reads:
                read.sure = read.sure and not (hidden and read.storage in of_keys)

    def _gathered_bytes(self, name: str, table: Any, index: Any, call: Mapping[str, Any]) -> float:
        """Bytes that the distinct indices need; 0 where they are not known."""
        indices = tensors(index)
        item_bytes = table.element_size()
        if name == "gather":
            # The other dimensions' positions are all distinct.
            return item_bytes * indices[0].numel() / max(1, indices[0].size(call["dim"]))
        known = len(indices) == 1 and indices[0].dtype != torch.bool
        distinct = self._distinct(indices[0]) if known else None
        if distinct is None:
            self._say(f"{name}: what computed indices gather is not counted")
            return 0.0
        if name == "take":
            return float(item_bytes * distinct)
        dim = call["dim"] if name == "index_select" else 0
        if name in ("index", "_unsafe_index"):
            dim = next(place for place, part in enumerate(index) if part is not None)
        return item_bytes * distinct * table.numel() / max(1, table.size(dim))

    # FLOPs.

    def _flops(
        self, func: Any, name: str, call: Mapping[str, Any], args: Any, kwargs: Any, result: Any
    ) -> dict[str, float]:
        packet = getattr(func, "overloadpacket", func)
        formula = _attention if name in ATTENTION else _recurrent if name in RECURRENT else FORMULAS.get(name)
        if formula is not None:
            count = formula(call, result)
        elif packet in flop_registry:
            count = flop_registry[packet](*args, **kwargs, out_val=result)
        else:
            if name.startswith(UNCOUNTED) and "norm" not in name:
                self._say(f"{name}: FLOPs are not counted")
            return {}
        operand = next(tensor for tensor in tensors(list(call.values())) if tensor.numel() > 0)
        if operand.dtype.is_complex:
            # Three real products for a complex one (Gauss).
            count *= 3
        convolves = name in RECURRENT or "conv" in name
        return {dtype_class(operand, convolves=convolves, autocast=name in ATTENTION): float(count)}

    # On the way back.

    def _estimate(self, outputs: Any) -> Estimate:
        streamed = resident = 0.0
        returned: dict[int, Cover] = defaultdict(Cover)
        for tensor in tensors(outputs):
            key = self._key(tensor, "model")
            if key is not None:
                returned[key].add(view_of(tensor))
                self._storages[key].needed.add(view_of(tensor))
        for key, cover in returned.items():
            # An input may be handed back as it is; what depends on none can be written once and returned for ever.
            if self._storages[key].written and self._storages[key].fresh:
                streamed += cover.nbytes
            elif self._storages[key].written:
                resident += cover.nbytes
        flops: dict[str, float] = defaultdict(float)
        for operation in reversed(self._operations):
            sure = any(self._storages[key].wholly_needed(view) for key, view in operation.writes)
            share = max((self._storages[key].needed_share for key, _ in operation.writes), default=0.0)
            if sure or operation.steers or (operation.indivisible and share > 0):
                share = 1.0
            if share == 0.0:
                continue
            for read in operation.reads:
                self._want(read, sure=sure)
            for kind, count in operation.flops.items() if operation.fresh else ():
                flops[kind] += count * share
        for storage in self._storages.values():
            if storage.origin == "call":
                continue
            certain = max(storage.sure.nbytes, storage.least_bytes)
            possible = max(storage.possible.nbytes, storage.most_bytes, certain)
            streamed += certain if storage.origin == "input" else 0
            resident += possible - (certain if storage.origin == "input" else 0)
        return Estimate(Work(dict(flops), float(streamed), float(resident)), tuple(self._notes))

    def _want(self, read: Read, *, sure: bool) -> None:
        storage = self._storages[read.storage]
        if read.most_bytes:
            storage.most_bytes = max(storage.most_bytes, read.most_bytes)
            storage.least_bytes = max(storage.least_bytes, read.least_bytes if sure else 0.0)
        else:
            storage.possible.add(read.view)
            if sure and read.sure:
                storage.sure.add(read.view)
                storage.needed.add(read.view)

    # Storages.

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

    def _peek(self, tensor: torch.Tensor) -> int | None:
        try:
            return tensor.untyped_storage()._cdata
        except (NotImplementedError, RuntimeError):
            return None

    def _is_new(self, key: int) -> bool:
        """Whether an input holds other values by now than it came with."""
        return self._storages[key].origin == "input" and self._storages[key].overwritten

    def _say(self, note: str) -> None:
        if len(self._notes) < 20:
            self._notes[note] = None


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def view_of(tensor: torch.Tensor) -> View:
    """The elements that a strided tensor shows."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    shape = tuple(sorted(((n, s) for n, s in sizes if n != 1 and s != 0), key=lambda pair: -pair[1]))
    return View(int(tensor.storage_offset()), shape, tensor.element_size())


def disjoint(one: View, other: View) -> bool:
    """Whether two views surely share no element: apart in their extents, or interleaved on the same strides."""
    if one.item_bytes != other.item_bytes:
        return False
    if one.end <= other.start or other.end <= one.start:
        return True
    strides = [stride for _, stride in one.shape]
    if strides != [stride for _, stride in other.shape]:
        return False
    # They meet where the offset between them is a sum of strides times differences of indices, dimension by dimension.
    spans = [(b - 1, a - 1, s) for (a, s), (b, _) in zip(one.shape, other.shape, strict=True)]
    reachable = {one.start - other.start}
    for place, (high, low, stride) in enumerate(spans):
        rest_up = sum(h * s for h, _, s in spans[place + 1 :])
        rest_down = sum(w * s for _, w, s in spans[place + 1 :])
        reachable = {
            left - steps * stride
            for left in reachable
            for steps in range(
                max(-low, math.ceil((left - rest_up) / stride)),
                min(high, math.floor((left + rest_down) / stride)) + 1,
            )
        }
        if len(reachable) > 1000:
            return False
    return 0 not in reachable


def dtype_class(operand: torch.Tensor, *, convolves: bool = False, autocast: bool = False) -> str:
    """`float16`, `bfloat16`, `tf32`, `float32`, `float64`, `int8`, `float8`, or torch's name of another dtype.

    float32 on a GPU is `tf32` where the switches in force let cuBLAS (or, for convolutions and recurrent layers, cuDNN)
    round to it.
    """
    dtype = operand.dtype
    kind = operand.device.type
    if autocast and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    if dtype.is_complex:
        dtype = dtype.to_real()
    name = str(dtype).removeprefix("torch.")
    if name.startswith("float8"):
        return "float8"
    if dtype is torch.float32 and kind == "cuda":
        switch: Any = torch.backends.cudnn.conv if convolves else torch.backends.cuda.matmul  # type: ignore[attr-defined]
        if switch.fp32_precision == "tf32" and _has_tf32(operand.device):
            return "tf32"
    return name


def _has_tf32(device: torch.device) -> bool:
    return not torch.cuda.is_available() or torch.cuda.get_device_capability(device)[0] >= 8


class _Operations(TorchDispatchMode):
    """Shows an observer each operation below autograd, carried out as it would have been until the time is up."""

    supports_higher_order_operators = True

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asked by torch; yes would load all of torch's compiler, a second, with the first operation."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if time.monotonic() > self._observer.deadline_s:
            raise TimeoutError("took too long")
        name = _name(func)
        # In inference mode, what is composed of other operations comes here whole.
        whole = name in ATTENTION | RECURRENT or getattr(func, "overloadpacket", func) in flop_registry
        if not whole and isinstance(func, torch._ops.OpOverload) and func.namespace == "aten":
            with torch._C.DisableTorchFunction(), self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        self._observer.note(func, name, _arguments(func, args, kwargs), args, kwargs, result)
        return result


class _Layers(TorchFunctionMode):
    """Shows an observer attention and recurrent layers as one operation, whatever they are composed of here: attention
    in half precision may multiply in float32, which no program needs to; a GRU may be thousands of operations."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is torch.nn.functional.scaled_dot_product_attention:
            names: tuple[str, ...] = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        elif name in RECURRENT:
            names = ("input", "weight0", "weight1", "weight2", "weight3")
        else:
            return func(*args, **kwargs)
        with self._observer.paused():
            result = func(*args, **kwargs)
        self._observer.note(func, name, dict(zip(names, args, strict=False)) | kwargs, args, kwargs, result)
        return result


def _name(func: Any) -> str:
    """`mm` for aten.mm.default; with its namespace (`mine::mm`) where that is not aten."""
    return func._schema.name.removeprefix("aten::") if hasattr(func, "_schema") else f"higher_order::{func}"


def _written(func: Any) -> set[str]:
    """Names of the arguments that an operation writes to."""
    arguments = func._schema.arguments if hasattr(func, "_schema") else ()
    return {one.name for one in arguments if one.alias_info is not None and one.alias_info.is_write}


def _arguments(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the schema's names, defaults included."""
    if not hasattr(func, "_schema"):
        return {str(place): value for place, value in enumerate(args)} | dict(kwargs)
    call = {one.name: one.default_value for one in func._schema.arguments}
    return call | {one.name: value for one, value in zip(func._schema.arguments, args, strict=False)} | dict(kwargs)


def _product(a: torch.Tensor, b: torch.Tensor) -> float:
    """(..., m, k) by (k, n) or (..., k, n), or by a vector."""
    columns = b.size(-1) if b.dim() > 1 else 1
    return 2.0 * a.numel() * columns


def _attention(call: Mapping[str, Any], result: Any) -> float:
    query, key, value = call["query"], call["key"], call["value"]
    queries, keys = query.size(-2), key.size(-2)
    pairs = queries * keys
    if call.get("is_causal"):
        shorter = min(queries, keys)
        pairs = shorter * (shorter + 1) // 2 + max(0, queries - keys) * keys
    heads = math.prod(query.shape[:-2])
    return 2.0 * heads * pairs * (query.size(-1) + value.size(-1))


def _recurrent(call: Mapping[str, Any], result: Any) -> float:
    """Each matrix of weights meets each step of each sequence once."""
    source = call.get("input", call.get("data"))
    if source is None:
        return 0.0  # The elementwise part of a cell.
    steps = source.numel() / max(1, source.size(-1))
    weights = [tensor for name in WEIGHTS for tensor in tensors(call.get(name)) if tensor.dim() == 2]
    return 2.0 * steps * sum(tensor.numel() for tensor in weights)


# Where operations (and functions: see _Layers) hold them, beside biases of one dimension and states of three.
WEIGHTS = ("params", "weight", "weight0", "weight1", "weight2", "weight3")


def _convolution(call: Mapping[str, Any], result: Any) -> float:
    """Products with padding do not count: a program need not form them."""
    source, weight = call["input"], call["weight"]
    transposed = call.get("transposed", False)
    dims = weight.dim() - 2
    # A transposed convolution scatters each input over the outputs that a convolution would gather it from.
    wide, narrow = (result, source) if transposed else (source, result)
    taps = [
        sum(len(places) for places in _taps(call, dim, dims, wide.size(dim - dims), narrow.size(dim - dims), weight))
        for dim in range(dims)
    ]
    return 2.0 * source.size(0) * math.prod(taps) * weight.size(0) * weight.size(1)


def _taps(
    call: Mapping[str, Any], dim: int, dims: int, wide: int, narrow: int, weight: torch.Tensor | None
) -> Iterator[range]:
    """For each tap of the kernel along one dimension, the places it reads, padding left out."""

    def along(name: str, default: int) -> int:
        values = call.get(name)
        values = [values] if isinstance(values, int) else list(values or [])
        return int(values[dim % len(values)]) if values else default

    kernel = weight.size(dim - dims) if weight is not None else along("kernel_size", 1)
    stride = along("stride", kernel if weight is None else 1)
    padding, dilation = along("padding", 0), along("dilation", 1)
    for tap in range(kernel):
        start = tap * dilation - padding
        skipped = max(0, math.ceil(-start / stride))
        stop = min(start + narrow * stride, wide)
        yield range(start + skipped * stride, max(stop, start + skipped * stride), stride)


def _covered_share(name: str, call: Mapping[str, Any], source: torch.Tensor, result: torch.Tensor) -> float:
    """Share of a convolution's or a pool's input that any output depends on."""
    weight = call.get("weight") if name == "convolution" else None
    dims = weight.dim() - 2 if weight is not None else (3 if "3d" in name else 2)
    share = 1.0
    for dim in range(dims):
        size = source.size(dim - dims)
        places: set[int] = set()
        for tap in _taps(call, dim, dims, size, result.size(dim - dims), weight):
            places.update(tap)
        share *= len(places) / size
    return share


def _triangle_share(name: str, call: Mapping[str, Any]) -> float:
    """Share of a matrix on and below (tril) or above (triu) a diagonal."""
    rows, columns, diagonal = call["self"].size(-2), call["self"].size(-1), call["diagonal"]
    if name == "triu":
        below = sum(min(max(row + diagonal, 0), columns) for row in range(rows))
        return 1 - below / (rows * columns)
    return sum(min(max(row + diagonal + 1, 0), columns) for row in range(rows)) / (rows * columns)


FORMULAS: dict[str, Callable[[Mapping[str, Any], Any], float]] = {
    "convolution": _convolution,
    "mv": lambda call, _: _product(call["self"], call["vec"]),
    "addmv": lambda call, _: _product(call["mat"], call["vec"]),
    "addmv_": lambda call, _: _product(call["mat"], call["vec"]),
    "addbmm": lambda call, _: _product(call["batch1"], call["batch2"]),
    "addbmm_": lambda call, _: _product(call["batch1"], call["batch2"]),
    "addmm_": lambda call, _: _product(call["mat1"], call["mat2"]),
    "baddbmm_": lambda call, _: _product(call["batch1"], call["batch2"]),
    "_addmm_activation": lambda call, _: _product(call["mat1"], call["mat2"]),
    "_int_mm": lambda call, _: _product(call["self"], call["mat2"]),
    "dot": lambda call, _: 2.0 * call["self"].numel(),
    "vdot": lambda call, _: 2.0 * call["self"].numel(),
    "mkldnn_linear": lambda call, _: 2.0 * call["self"].numel() * call["weight"].size(0),
    # Of nn.Bilinear: each pair of features meets each output's matrix.
    "_trilinear": lambda call, result: 2.0 * result.numel() * call["i2"].numel() / max(1, call["i2"].size(0)),
}


def _of_fake(model: torch.nn.Module, inputs: Sequence[Any]) -> Estimate:
    """Raises whatever the model raises where it finds no values."""
    from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensorMode, unset_fake_temporarily

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    behind: dict[int, torch.Tensor] = {}

    def distinct(indices: torch.Tensor) -> int | None:
        real = behind.get(indices.untyped_storage()._cdata)
        if real is None or real.dtype != indices.dtype:
            return None
        with unset_fake_temporarily():
            real = real.as_strided(indices.size(), indices.stride(), indices.storage_offset())
            return int(torch.unique(real).numel())

    def faked(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            fake = mode.from_tensor(item)
            behind[fake.untyped_storage()._cdata] = item
            return fake
        if isinstance(item, dict):
            return {key: faked(part) for key, part in item.items()}
        return type(item)(faked(part) for part in item) if type(item) in (list, tuple) else item

    # A copy: what the model keeps of a call would otherwise be fake from now on.
    with FakeCopyMode(mode):
        twin = copy.deepcopy(model)
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        fakes = [faked(item) for item in inputs]
        stack.enter_context(torch.no_grad())
        stack.enter_context(mode)
        observer = stack.enter_context(Observer(fakes, distinct))
        observer.deadline_s = time.monotonic() + PATIENCE_S
        outputs = twin(*fakes)
    return observer.estimate(outputs)


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"
