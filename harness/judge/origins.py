"""Which parameters were drawn element by element: whose numbers come straight from a random generator.

All others have a structure that a kernel could use and no training would keep, whichever it is: low rank, a circulant,
one block for each group, parts or multiples of others, tables, constants. Nothing but where numbers come from tells of
all of them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import _disable_current_modes

from harness.machine.pauses import pause
from harness.oracle.modes import Mode
from harness.wire import layout
from harness.wire.begun import next_to_nothing, some_of

# torch's operators that draw each element of a new tensor, and that draw those of one in place. Not those that draw
# whole numbers: of such a tensor a byte an element does.
DRAW = frozenset(("rand", "randn", "rand_like", "randn_like", "normal"))
DRAW_IN_PLACE = frozenset(("uniform_", "normal_", "exponential_", "log_normal_", "cauchy_"))
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
CONSTANT_IN_PLACE = frozenset(("fill_", "zero_"))
# A sixteenth of a tensor may be constants. Of so many elements that are looked at (of 16-bit numbers, which are few),
# half have to differ.
SMALL_PART, LOOKED_AT, FEW_LOOKED_AT = 16, 1 << 12, 1 << 8
NARROW = (torch.float16, torch.bfloat16)


class _Held(NamedTuple):
    """What a storage holds: the draws that its elements come from, how many of them come from none, and a sum over all
    bits, by which another's writing is seen."""

    storage: StorageWeakRef
    draws: frozenset[int]
    others: int
    bits: int


NOTHING = frozenset[int]()


class Origins(Mode):
    """Within it, where the numbers of tensors come from is noted."""

    def __init__(self) -> None:
        super().__init__()
        self._count = itertools.count()
        # By a generator's state before it: two draws from one state are the same numbers.
        self._states: dict[bytes, int] = {}
        # By a storage's address, as long as it lives.
        self._held: dict[int, _Held] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        pause()
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        # Before it is written to.
        before = self._of(first) if first is not None and name.endswith("_") else None
        draw = self._draw(name, args, kwargs) if name in DRAW or name in DRAW_IN_PLACE else None
        made = func(*args, **kwargs)
        if draw is not None:
            self._put(first if name in DRAW_IN_PLACE else made, draw, before)
        elif name in JOINED:
            self._join(made, args)
        elif name == "copy_":
            self._put(first, self._draws_of(args[1]), before)
        elif name in CONSTANT_IN_PLACE and before is not None and first is not None:
            self._hold(first, before.draws, before.others + first.numel())
        elif first is not None and name.removesuffix("_") in ONE_BY_ONE and _is_whole(first) and _beside_numbers(args):
            held = before if made is first else self._of(first)
            if held is not None:
                self._hold(made, held.draws, held.others)
        return made

    def not_drawn(self, model: nn.Module) -> Iterator[str]:
        """Names of the parameters that were not drawn element by element, or have a draw in common with one before."""
        met = set[int]()
        for name, parameter in model.named_parameters():
            pause()
            if is_lazy(parameter) or not _lies_somewhere(parameter):
                continue
            draws = self._draws_of(parameter)
            if not draws or not met.isdisjoint(draws) or not _looks_drawn(parameter):
                yield name
            met |= draws

    def _draw(self, name: str, args: Any, kwargs: Any) -> frozenset[int]:
        """A draw; none where the numbers are those of other tensors and something drawn."""
        # The first one of all others is what is filled, or like what is made.
        if not _beside_numbers((None, *args) if name == "normal" else args):
            return NOTHING
        return frozenset((self._states.setdefault(_state(args, kwargs), next(self._count)),))

    def _put(self, tensor: Any, draws: frozenset[int], before: _Held | None) -> None:
        """All elements of a tensor, which may be a part of its storage, come from these draws now."""
        if not _lies_somewhere(tensor):
            return
        if _is_whole(tensor):
            self._hold(tensor, draws, 0)
        elif not draws or (before is not None and not before.draws.isdisjoint(draws)):
            # What is there twice is no draw.
            self._hold(tensor, NOTHING, 0)
        else:
            earlier, others = (before.draws, before.others) if before is not None else (NOTHING, _room(tensor))
            self._hold(tensor, earlier | draws, max(0, others - tensor.numel()))

    def _join(self, made: Any, args: Any) -> None:
        # `where`: a condition, and what is taken from either.
        parts = args[0] if isinstance(args[0], list | tuple) else args[1:]
        draws = [self._draws_of(part) for part in parts]
        together = NOTHING.union(*draws)
        if all(draws) and len(together) == sum(map(len, draws)):
            self._hold(made, together, 0)

    def _hold(self, tensor: Any, draws: frozenset[int], others: int) -> None:
        if _lies_somewhere(tensor):
            storage = tensor.untyped_storage()
            self._held[storage._cdata] = _Held(StorageWeakRef(storage), draws, others, _bits(tensor))

    def _of(self, tensor: torch.Tensor) -> _Held | None:
        """What is known of a tensor's storage; None where nothing is, or somebody else has written to it."""
        if not _lies_somewhere(tensor):
            return None
        held = self._held.get(tensor.untyped_storage()._cdata)
        return held if held is not None and not held.storage.expired() and held.bits == _bits(tensor) else None

    def _draws_of(self, tensor: Any) -> frozenset[int]:
        """The draws that nearly all elements of a tensor come from; none where others do, or they are not known."""
        held = self._of(tensor) if _is_whole(tensor) else None
        return held.draws if held is not None and held.others * SMALL_PART <= tensor.numel() else NOTHING


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


def _bits(tensor: torch.Tensor) -> int:
    """A sum over all of a storage's bits, as whole numbers."""
    with _disable_current_modes():
        nothing = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        flat = nothing.set_(tensor.untyped_storage())
        whole = len(flat) // 8 * 8
        return int(flat[:whole].view(torch.int64).sum() + flat[whole:].sum())


def _room(tensor: torch.Tensor) -> int:
    """How many of a tensor's elements its storage has room for."""
    return int(tensor.untyped_storage().nbytes() // tensor.element_size())


def _looks_drawn(tensor: torch.Tensor) -> bool:
    """Whether it has many different numbers, that need all of their digits, and few that are next to nothing, as far as
    some of its elements tell."""
    with _disable_current_modes():
        flat = tensor.detach().reshape(-1)
        flat = torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat
        if flat.element_size() == 1:
            return True
        some = some_of(flat, LOOKED_AT if flat.element_size() > 2 else FEW_LOOKED_AT)
        differ = 2 * len(some.unique()) >= len(some)
        in_full = some.element_size() == 2 or not any(torch.equal(some, some.to(kind).to(some)) for kind in NARROW)
        return differ and in_full and not next_to_nothing(flat)


def _lies_somewhere(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and layout.is_strided(tensor) and not tensor.is_meta


def _is_whole(tensor: Any) -> bool:
    """Whether a tensor has all of its storage's elements, each once."""
    if not _lies_somewhere(tensor):
        return False
    nbytes = tensor.numel() * tensor.element_size()
    return nbytes == tensor.untyped_storage().nbytes() and layout.apart(tensor.shape, tensor.stride())


def _beside_numbers(args: Any) -> bool:
    return all(other.numel() == 1 for other in args[1:] if isinstance(other, torch.Tensor))
