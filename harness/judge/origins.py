"""Which parameters were drawn element by element: whose numbers come straight from a random generator.

All others have a structure that a kernel could use and no training would keep, whichever it is: low rank, a circulant,
one block for each group, parts or multiples of others, tables, constants. Nothing but where numbers come from tells of
all of them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import _disable_current_modes

from harness.oracle.modes import Mode
from harness.wire import layout

# torch's operators that draw each element of a new tensor, and that draw those of one in place.
DRAW = frozenset(("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "normal", "bernoulli"))
DRAW_IN_PLACE = frozenset(
    (
        *("uniform_", "normal_", "random_", "bernoulli_", "exponential_"),
        *("log_normal_", "cauchy_", "geometric_"),
    )
)
# What makes of each element another one by itself, beside numbers, and hardly ever the same of two.
ONE_BY_ONE = frozenset(
    (
        *("add", "sub", "rsub", "mul", "div", "pow", "neg", "abs", "exp", "log", "sqrt", "rsqrt", "square"),
        *("reciprocal", "tanh", "sigmoid", "erfinv", "clamp", "clone", "_to_copy", "contiguous", "detach"),
    )
)
# What puts tensors together: drawn are they if each is, by a draw of its own. `where` as numbers are drawn again that
# are too far off.
JOINED = ("cat", "stack", "where")
# A sixteenth of a tensor may be constants; and of so many elements that are looked at half have to differ.
SMALL_PART, LOOKED_AT = 16, 256
CONSTANT_IN_PLACE = frozenset(("fill_", "zero_"))


class Origins(Mode):
    """Within it, where the numbers of tensors come from is noted."""

    def __init__(self) -> None:
        super().__init__()
        self._sources = itertools.count()
        # By a generator's state before it: two draws from one state are the same numbers.
        self._draws: dict[bytes, int] = {}
        # Of a storage that holds what was drawn, from which draw, and how many elements were set to a constant since;
        # by its address, as long as it lives.
        self._drawn: dict[int, tuple[StorageWeakRef, int, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        state = _state(args, kwargs) if name in DRAW or name in DRAW_IN_PLACE else b""
        made = func(*args, **kwargs)
        self._note(func, name, args, made, state)
        return made

    def not_drawn(self, model: nn.Module) -> Iterator[str]:
        """Names of the parameters that were not drawn element by element, or from the same draw as one before."""
        met = set[int]()
        for name, parameter in model.named_parameters():
            if is_lazy(parameter) or not _lies_somewhere(parameter):
                continue
            source = self._source(parameter) if _is_whole(parameter) and _has_many(parameter) else None
            if source is None or source in met:
                yield name
            else:
                met.add(source)

    def _note(self, func: Any, name: str, args: Any, made: Any, state: bytes) -> None:
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if name in DRAW:
            self._hold(made, self._draw(state))
        elif name in JOINED:
            # `where`: a condition, and what is taken from either.
            parts = args[0] if isinstance(args[0], list | tuple) else args[1:]
            sources = [self._source(part) if _is_whole(part) else None for part in parts]
            each_its_own = None not in sources and len(set(sources)) == len(sources)
            self._hold(made, next(self._sources) if each_its_own else None)
        elif first is None:
            return
        elif name in DRAW_IN_PLACE:
            if _is_whole(first):
                self._hold(first, self._draw(state))
        elif name in CONSTANT_IN_PLACE:
            self._set(first)
        elif name == "copy_":
            self._hold(first, self._source(args[1]) if _is_whole(first) and _is_whole(args[1]) else None)
        elif name.removesuffix("_") in ONE_BY_ONE and _beside_numbers(args[1:]):
            if made is not first:
                self._hold(made, self._source(first) if _is_whole(first) else None)
        else:
            for own, declared in zip(args, func._schema.arguments, strict=False):
                if declared.alias_info is not None and declared.alias_info.is_write:
                    self._hold(own, None)

    def _draw(self, state: bytes) -> int:
        """The number of a draw from such a state."""
        return self._draws.setdefault(state, next(self._sources))

    def _set(self, tensor: torch.Tensor) -> None:
        """Some elements have a constant now. A small part may, as an embedding's padding."""
        source, storage = self._source(tensor), tensor.untyped_storage()
        if source is not None:
            count = self._drawn[storage._cdata][2] + tensor.numel()
            is_small = count * tensor.element_size() * SMALL_PART <= storage.nbytes()
            self._hold(tensor, source if is_small else None, count)

    def _hold(self, tensor: Any, source: int | None, constants: int = 0) -> None:
        if not _lies_somewhere(tensor):
            return
        storage = tensor.untyped_storage()
        if source is None:
            self._drawn.pop(storage._cdata, None)
        else:
            self._drawn[storage._cdata] = StorageWeakRef(storage), source, constants

    def _source(self, tensor: Any) -> int | None:
        if not _lies_somewhere(tensor):
            return None
        found = self._drawn.get(tensor.untyped_storage()._cdata)
        return None if found is None or found[0].expired() else found[1]


def _state(args: Any, kwargs: Any) -> bytes:
    """Of the generator that an operator draws from."""
    generator = kwargs.get("generator") or next((one for one in args if isinstance(one, torch.Generator)), None)
    tensor = next((one for one in args if isinstance(one, torch.Tensor)), None)
    device = torch.device(kwargs.get("device") or (tensor.device if tensor is not None else "cpu"))
    with _disable_current_modes():
        if generator is not None:
            state = generator.get_state()
        elif device.type == "cuda":
            state = torch.cuda.get_rng_state(device)
        else:
            state = torch.get_rng_state()
    return hashlib.sha256(state.numpy().tobytes() + device.type.encode()).digest()


def _has_many(tensor: torch.Tensor) -> bool:
    """Whether it has many different numbers, as far as some of its elements tell."""
    with _disable_current_modes():
        flat = tensor.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // LOOKED_AT)][:LOOKED_AT]
        return some.element_size() == 1 or 2 * len(set(some.tolist())) >= len(some)


def _lies_somewhere(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and layout.is_strided(tensor) and not tensor.is_meta


def _is_whole(tensor: Any) -> bool:
    """Whether a tensor has all of its storage's elements, each once."""
    if not _lies_somewhere(tensor):
        return False
    nbytes = tensor.numel() * tensor.element_size()
    return nbytes == tensor.untyped_storage().nbytes() and layout.apart(tensor.shape, tensor.stride())


def _beside_numbers(others: Any) -> bool:
    return all(other.numel() == 1 for other in others if isinstance(other, torch.Tensor))
