"""Weights that tell: drawn ones where a module's are all one, all zero, or all the same tiny number.

A kernel could leave those out unseen, or what they multiply.

Judge and runners construct their modules within `drawn`, so that normalisations, and parameters that are registered as
such constants, have the same values from the start, also for who computes something from them in `__init__`. So have
copies, and what begins with a structure (moved.py). The judge alone then draws what is left (`draw_the_rest`); a runner
gets those with the reference's other parameters. Both `cast` them.
"""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from harness import wording
from harness.catalog import modules
from harness.errors import door
from harness.wire.begun import Begun, has_numbers
from harness.wire.moved import Moved, Turns

NORMS: tuple[type[nn.Module], ...] = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)
RECURRENT: tuple[type[nn.Module], ...] = (nn.RNNBase, nn.RNNCellBase)
# What torch makes of each, and whether it may be below zero: a negative weight turns a maximum into a minimum.
USUAL = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
SIGNED = ("weight",)
# Of torch.nn.init, what draws a tensor's numbers.
DRAWS = (
    *("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"),
    *("uniform_", "normal_", "trunc_normal_"),
)
# And what makes constants of them, or gives them a structure.
CONSTANTS = ("ones_", "zeros_", "constant_")
STRUCTURES = ("orthogonal_", "eye_", "dirac_", "sparse_")
LAYERS = Path(nn.modules.__file__).parent
# Of larger parameters values are not drawn while a module is constructed, which would take long.
MOST_ELEMENTS = 1 << 20
# A constant below this hides what it multiplies, as the 1e-6 does by which blocks are scaled down to begin with.
TINY = 2.0**-9


@door
def constructed(module: ModuleType, names: tuple[str, ...], arguments: Any) -> nn.Module:
    """What the first of `names` in a file's module makes of a problem's init arguments.

    Raises LoadFault (`missing_entry`, `not_a_module`), and whatever the file itself raises."""
    name, make = modules.entry(module, names)
    file = Path(module.__file__ or "").name
    if isinstance(make, nn.Module):
        raise modules.LoadFault(
            "missing_entry", f"{name} in {file} is a module, and nothing that makes one: name a class"
        )
    model = make(*arguments)
    if not isinstance(model, nn.Module):
        said = f"{name} in {file} makes {wording.a(type(model).__name__)}, and no torch.nn.Module"
        raise modules.LoadFault("not_a_module", said)
    _require_hashable(model)
    return model


def _require_hashable(model: nn.Module) -> None:
    """Raises LoadFault for a module in it that can be in no set: by one torch walks through modules and moves them."""
    waiting, seen = [model], set[int]()
    while waiting:
        module = waiting.pop()
        if type(module).__hash__ is None:
            fault = (
                f"{type(module).__name__} defines __eq__ and no __hash__, and PyTorch cannot walk through such modules"
            )
            mend = "write @dataclass(eq=False), or __hash__ = nn.Module.__hash__ in the class"
            raise modules.LoadFault("not_a_module", f"{fault}: {mend}")
        if id(module) not in seen:
            seen.add(id(module))
            # Missing where a constructor has left out that of nn.Module, and anything in what only poses as a module.
            # None is where one has been taken away.
            within = getattr(module, "_modules", None)
            waiting += [one for one in within.values() if one is not None] if isinstance(within, dict) else []


def cast(model: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Move a module to a device, its floating parameters and buffers in `dtype`, complex ones in its complex type.

    `Module.to` would make complex numbers real. Beside 16-bit numbers they stay in 32 bits, as torch's operators on
    complex ones of 16 bits are few.
    """
    paired = torch.complex128 if dtype is torch.float64 else torch.complex64

    def own(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_complex():
            return tensor.to(paired)
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    model.to(device=device)
    model._apply(own)


class Drawn:
    """What modules were constructed with in place of constants: by kind and number of elements, one after the other.

    `only`, if given, are the names and sizes of the parameters outside normalisations that are drawn or changed, and
    `norms` those of normalisations' own; `without` those outside that are not; `structured` those with a structure.
    `loose` are the numbers of copies that nothing is changed in.
    """

    def __init__(
        self,
        seed: int,
        only: frozenset[tuple[str, int]] | None = None,
        without: frozenset[tuple[str, int]] = frozenset(),
        structured: frozenset[tuple[str, int]] = frozenset(),
        norms: frozenset[tuple[str, int]] | None = None,
        loose: frozenset[int] = frozenset(),
    ) -> None:
        self.seed = seed
        self._only = only
        self._norms = norms
        self._without = without
        self._turns = Turns()
        # By turn.
        self._values: dict[tuple[str, int], dict[int, tuple[torch.Tensor, float]]] = {}
        self._met = Counter[tuple[str, int, int]]()
        # Parameters outside normalisations, with their names, as long as this lives; by `id`.
        self._registered: dict[int, tuple[nn.Parameter, str]] = {}
        # Of them, those that were drawn.
        self._filled: set[int] = set()
        # Parameters that were made without a gradient, to be constants; by `id`, as long as this lives.
        self._constants: dict[int, nn.Parameter] = {}
        # Parameters of normalisations, with their names; by `id`.
        self._of_norms: dict[int, tuple[torch.Tensor, str]] = {}
        # Names, in the module that was copied, and sizes.
        self._of_copies: set[tuple[str, int]] = set()
        self._loose = loose
        # Of each copy of a module, its parameters and buffers.
        self._copies: list[list[torch.Tensor]] = []
        self.moved = Moved(seed, structured)

    @property
    def parameters(self) -> frozenset[tuple[str, int]]:
        """Names and sizes of the parameters outside normalisations that were drawn or changed, and of all that was
        drawn again in copies."""
        own = frozenset((name, parameter.numel()) for parameter, name in self._drawn())
        return own | self._of_copies | self.moved.parameters

    @property
    def norms(self) -> frozenset[tuple[str, int]]:
        """Names and sizes of all that normalisations have of their own."""
        return frozenset((name, tensor.numel()) for tensor, name in self._of_norms.values())

    @property
    def undone(self) -> frozenset[tuple[str, int]]:
        """Names and sizes of those of them that have been written to since: what such a one is without that cannot be
        told."""
        drawn = (
            (name, parameter.numel())
            for parameter, name in self._drawn()
            if _hiding(parameter) is None and self._place(parameter, _kind(name)) is None
        )
        return frozenset(drawn) | self.moved.undone

    def _drawn(self) -> list[tuple[nn.Parameter, str]]:
        return [self._registered[which] for which in self._filled]

    def fill(self, tensor: torch.Tensor, kind: str, role: str, usual: float) -> None:
        """The values of its turn among those of that kind with so many elements, where it was `usual`."""
        which = self._turns.of(tensor, kind)
        drawn = _values(tensor, role, self.seed, f"{kind} {which}")
        self._values.setdefault((kind, tensor.numel()), {})[which] = drawn, usual
        with torch.no_grad():
            tensor.copy_(drawn)

    def fill_norm(self, tensor: torch.Tensor, name: str, usual: float) -> None:
        """The same of a normalisation's own, which may be given other constants later."""
        # One that the reference has none of is a candidate's own way to compute something else.
        if self._norms is not None and (name, tensor.numel()) not in self._norms:
            return
        self._of_norms[id(tensor)] = tensor, name
        self.fill(tensor, name, name, usual)

    def register(self, parameter: nn.Parameter, name: str, *, constructed: bool = True) -> None:
        """A parameter gets such a name in some module, or a constant as its numbers; `constructed`: it has numbers."""
        # Who has a constant where the reference has none is given that one's numbers.
        wanted = self._only is not None and (name, parameter.numel()) in self._only
        if not parameter.requires_grad and not wanted:
            self._constants[id(parameter)] = parameter
        if parameter.numel() > MOST_ELEMENTS:
            return
        if self._is_left_out(parameter, name):
            self.moved.meet(parameter, name)
            return
        # By its first name, if it is shared.
        name = self._registered.setdefault(id(parameter), (parameter, name))[1]
        usual = _hiding(parameter, constant=wanted) if constructed else None
        if usual is not None:
            self.fill(parameter, _kind(name), _role(usual), usual)
            self._filled.add(id(parameter))
        else:
            # Its turn all the same: what lies in memory that nobody has written to must not decide about others.
            self._turns.of(parameter, _kind(name))
        if constructed and self._place(parameter, _kind(name)) is None:
            self._filled.discard(id(parameter))
            self.moved.register(parameter, name, constant=wanted)
        else:
            self.moved.meet(parameter, name)

    def copied(self, source: nn.Module, made: nn.Module) -> None:
        """A module is a copy of another one: its parameters are moved, or drawn again where they were drawn."""
        _require_hashable(made)
        self._copies.append([*made.parameters(), *made.buffers()])
        if len(self._copies) - 1 in self._loose:
            return
        # A copy that a class of its own makes may have others.
        for (name, own), given in zip(made.named_parameters(), source.parameters(), strict=False):
            if not (own.requires_grad and has_numbers(own)) or self._is_left_out(own, name):
                continue
            if not self._draw_again(own, name):
                self.moved.copied(own, given, name)
        for name, buffer in made.named_buffers():
            if not self._is_left_out(buffer, name):
                self._draw_again(buffer, name)

    def loose_in(self, model: nn.Module) -> frozenset[int]:
        """Numbers of the copies of which nothing is in a model: something was computed of them, as of a convolution
        that a norm is folded into, and whoever computes that of the layer itself has to get the same."""
        own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
        return frozenset(
            number for number, copied in enumerate(self._copies) if own.isdisjoint(id(tensor) for tensor in copied)
        )

    def _draw_again(self, tensor: torch.Tensor, path: str) -> bool:
        """Whether a tensor has drawn values, those of another one; it has its own then."""
        name = path.rpartition(".")[2]
        for kind in (name, _kind(name)):
            place = self._place(tensor, kind)
            if place is None:
                continue
            usual = self._values[kind, tensor.numel()][place][1]
            if kind == name:
                self.fill_norm(tensor, name, usual)
            else:
                self.fill(tensor, kind, _role(usual), usual)
            self._of_copies.add((path, tensor.numel()))
            return True
        return False

    def _is_left_out(self, parameter: torch.Tensor, name: str) -> bool:
        which = name, parameter.numel()
        return which in self._without or (self._only is not None and which not in self._only)

    def is_constant(self, tensor: torch.Tensor) -> bool:
        """Whether a parameter was made to be a constant, and still is one: not frozen later."""
        return id(tensor) in self._constants and not tensor.requires_grad

    def name_of(self, tensor: torch.Tensor, name: str) -> str:
        """The name that a parameter was registered by at first; that `name` where it was not."""
        found = self._registered.get(id(tensor))
        return name if found is None else found[1]

    def has_changed(self, tensor: torch.Tensor, name: str) -> bool:
        """Whether a parameter of that name is another than by construction alone."""
        kinds = name, _kind(self.name_of(tensor, name))
        return self.moved.began_as(tensor) is not None or any(self._place(tensor, kind) is not None for kind in kinds)

    def hold_on(self, bias: nn.Parameter, name: str, units: int) -> None:
        """A recurrence's biases of gates get their numbers: as Moved has it."""
        if has_numbers(bias) and not self._is_left_out(bias, name):
            self.moved.hold_on(bias, name, units)

    def drew(self, tensor: torch.Tensor) -> None:
        """Some tensor's numbers are all new: what was there before does not count, as in memory that nobody had written
        to. A module's copy is still one of so many."""
        if id(tensor) in self._registered:
            self._filled.discard(id(tensor))
            self.moved.forget(tensor)

    def made(self, tensor: torch.Tensor) -> None:
        """Some tensor's numbers are all new, and the same, or have a structure."""
        self.drew(tensor)
        if id(tensor) in self._of_norms:
            tensor, name = self._of_norms[id(tensor)]
            usual = _hiding(tensor)
            if usual is not None:
                self.fill_norm(tensor, name, usual)
        if id(tensor) in self._registered:
            self.register(*self._registered[id(tensor)])

    def met(self, tensor: torch.Tensor, kind: str) -> tuple[int, float] | None:
        """How often these values have been asked about before, as of a module's copies, and the constant in whose place
        they are; None if a tensor has none of them."""
        place = self._place(tensor, kind)
        if place is None:
            return None
        self._met[kind, tensor.numel(), place] += 1
        return self._met[kind, tensor.numel(), place] - 1, self._values[kind, tensor.numel()][place][1]

    def _place(self, tensor: torch.Tensor, kind: str) -> int | None:
        """The turn whose values a tensor has."""
        some = self._values.get((kind, tensor.numel()), {})
        alike = (
            turn for turn, (one, _) in some.items() if torch.equal(tensor.detach(), one.to(tensor).view_as(tensor))
        )
        return next(alike, None)


@contextlib.contextmanager
def drawn(found: Drawn, file: ModuleType | None = None) -> Iterator[Drawn]:
    """Within it, torch's normalisations are constructed with drawn weights, biases and running statistics, and others'
    parameters with drawn values where they are registered as constants that hide something, or made such by
    torch.nn.init; what has a structure, or is a copy, is changed then. Also where the `file` that is loaded has these
    functions under names of its own.

    The values depend on the seed, name or role, number of elements, and how many of these came before: who takes one's
    for another's is wrong. Who constructs them in another order gets them by name. torch's own generators stay as they
    are.
    """
    deepcopy, register = copy.deepcopy, nn.Module.register_parameter
    resets = ((kind, name) for kind in NORMS for name in ("reset_parameters", "reset_running_stats"))
    copying = ((holder, name) for holder in (copy, file) for name, value in _names(holder) if value is deepcopy)
    with _replaced(
        *((kind, name, _filling(vars(kind)[name], found)) for kind, name in resets if name in vars(kind)),
        *((kind, "reset_parameters", _holding_on(vars(kind)["reset_parameters"], found)) for kind in RECURRENT),
        *((holder, name, _telling(draw, found.drew)) for holder, name, draw in _bound(DRAWS, file)),
        *((holder, name, _telling(fill, found.made)) for holder, name, fill in _bound((*CONSTANTS, *STRUCTURES), file)),
        *((holder, name, _copying(deepcopy, found)) for holder, name in copying),
        (nn.Module, "register_parameter", _registering(register, found)),
    ):
        yield found


@contextlib.contextmanager
def larger(factor: float, file: ModuleType) -> Iterator[None]:
    """Within it, what modules draw for their matrices by torch.nn.init, as torch's own modules do, is so many times as
    large, also where the `file` that is loaded has these functions under names of its own."""
    if factor == 1.0:
        yield
        return
    with _replaced(
        *((holder, name, _multiplying(draw, factor)) for holder, name, draw in _bound((*DRAWS, "orthogonal_"), file))
    ):
        yield


@contextlib.contextmanager
def _replaced(*replacements: tuple[Any, str, Callable[..., Any]]) -> Iterator[None]:
    """Within it, other functions are called in place of those that some modules and classes have by a name.

    Who took one of these meanwhile, as a module may that is imported then, calls the former one with it afterwards.
    """
    before = [vars(holder)[name] for holder, name, _ in replacements]
    called = [function for _, _, function in replacements]

    def place(number: int) -> Callable[..., Any]:
        return lambda *args, **kwargs: called[number](*args, **kwargs)

    for number, (holder, name, _) in enumerate(replacements):
        setattr(holder, name, place(number))
    try:
        yield
    finally:
        called[:] = before
        for (holder, name, _), function in zip(replacements, before, strict=True):
            setattr(holder, name, function)


def draw_the_rest(
    model: nn.Module, drawn: Drawn, structured: frozenset[str] = frozenset()
) -> tuple[dict[str, torch.Tensor], frozenset[str]]:
    """Draw every other parameter of `model` that is all one, all zero or all the same tiny number, in place, what
    copies of modules have in common with those that they are copies of, and what begins with another structure that no
    training would keep (begun.py).

    `structured` names the parameters that have a structure, whichever it is.

    By name what these, and what is `drawn`, are by construction; and the names of those that no other module has by its
    own construction.
    """
    plain: dict[str, torch.Tensor] = {}
    redrawn: set[str] = set()
    begun = Begun(drawn.seed)
    # What is shared counts by its first name, as for whoever walks through a module's parameters.
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        own: dict[str, torch.Tensor] = dict(module.named_parameters(recurse=False))
        if isinstance(module, NORMS):
            own |= {name: value for name, value in module.named_buffers(recurse=False) if name in USUAL}
        for name, tensor in own.items():
            path = f"{prefix}.{name}" if prefix else name
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            what = _drawn_now(module, name, tensor, drawn, path)
            if (began_as := drawn.moved.began_as(tensor)) is not None:
                what = began_as, False
            elif what is None and not drawn.is_constant(tensor):
                what = _changed(begun, tensor, path, path in structured)
            if what is not None:
                plain[path], is_new = what
                redrawn |= {path} if is_new else set()
    return plain, frozenset(redrawn)


def draw_those(model: nn.Module, names: Collection[str], seed: int) -> dict[str, torch.Tensor]:
    """Of the parameters and buffers among `names`, which have got their numbers behind the constructor, draw in place
    what hides something; what they were, by name."""
    plain: dict[str, torch.Tensor] = {}
    for path in names:
        prefix, _, name = path.rpartition(".")
        module = model.get_submodule(prefix)
        tensor = getattr(module, name)
        of_a_norm = isinstance(module, NORMS) and name in USUAL
        usual = _hiding(tensor, constant=of_a_norm)
        if usual is not None:
            plain[path] = tensor.detach().clone()
            with torch.no_grad():
                tensor.copy_(_values(tensor, name if of_a_norm else _role(usual), seed, path))
    return plain


def _drawn_now(
    module: nn.Module, name: str, tensor: torch.Tensor, drawn: Drawn, path: str
) -> tuple[torch.Tensor, bool] | None:
    """The constant in whose place a tensor is drawn, and whether it is drawn only now; None where its values stay."""
    if not has_numbers(tensor):
        return None
    of_a_norm = isinstance(module, NORMS) and name in USUAL
    met = drawn.met(tensor, name if of_a_norm else _kind(drawn.name_of(tensor, name)))
    usual = met[1] if met is not None else _hiding(tensor)
    if usual is None:
        return None
    is_new = met is None or met[0] > 0
    if is_new:
        with torch.no_grad():
            tensor.copy_(_values(tensor, name if of_a_norm else _role(usual), drawn.seed, path))
    return torch.full_like(tensor.detach(), usual), is_new


def structured(model: nn.Module, drawn: Drawn, names: frozenset[str]) -> frozenset[tuple[str, int]]:
    """Names and sizes, as they are registered, of those parameters among `names` to be changed that are not yet."""
    found = set[tuple[str, int]]()
    for path in names:
        own, (module, _, name) = model.get_parameter(path), path.rpartition(".")
        drawn_anyway = isinstance(model.get_submodule(module), NORMS) or _hiding(own) is not None
        may_change = own.requires_grad and own.numel() > 1 and has_numbers(own)
        if may_change and not drawn_anyway and not drawn.has_changed(own, name):
            found.add((drawn.name_of(own, name), own.numel()))
    return frozenset(found)


def _changed(begun: Begun, tensor: torch.Tensor, path: str, structured: bool) -> tuple[torch.Tensor, bool] | None:
    """What a parameter with a structure began as, if it is another now."""
    if not has_numbers(tensor):
        return None
    # What is frozen is for inference, and nothing is told of what was trained.
    changed = begun.changed(tensor, path, frozen=not tensor.requires_grad, structured=structured)
    if changed is None:
        return None
    before = tensor.detach().clone()
    with torch.no_grad():
        tensor.copy_(changed[0])
    return before, True


def _kind(name: str) -> str:
    """Of a parameter outside normalisations."""
    return f"parameter {name}"


def _role(usual: float) -> str:
    return "running_var" if usual else "bias"


def _hiding(tensor: torch.Tensor, *, constant: bool = False) -> float | None:
    """The number that all elements of a parameter are, also of a `constant`, if what is multiplied by it, or added to
    it, is hidden."""
    if not (tensor.requires_grad or constant) or not has_numbers(tensor):
        return None
    number = complex(tensor.detach().reshape(-1)[0])
    first = number.real if number.imag == 0 else math.nan
    hides = abs(first) < TINY or first == 1.0
    return first if hides and bool((tensor == first).all()) else None


def _bound(names: tuple[str, ...], file: ModuleType | None) -> list[tuple[Any, str, Any]]:
    """Where functions of torch.nn.init are held, under which names: there, by torch's own modules, and by a file."""
    own = {id(vars(nn.init)[name]) for name in names}
    modules_of_torch = (one for one in vars(nn.modules).values() if isinstance(one, ModuleType))
    return [
        (holder, name, function)
        for holder in (nn.init, *modules_of_torch, file)
        for name, function in _names(holder)
        if id(function) in own
    ]


def _names(holder: ModuleType | None) -> list[tuple[str, Any]]:
    return [] if holder is None else list(vars(holder).items())


def _filling(reset: Callable[[Any], None], found: Drawn) -> Callable[[Any], None]:
    """torch's way to reset a normalisation, with drawn values in the place of its ones and zeros."""

    def filled(module: nn.Module) -> None:
        reset(module)
        for name, usual in USUAL.items():
            tensor = getattr(module, name, None)
            if isinstance(tensor, torch.Tensor) and has_numbers(tensor) and bool((tensor == usual).all()):
                found.fill_norm(tensor, name, usual)

    return filled


def _holding_on(reset: Callable[[Any], None], found: Drawn) -> Callable[..., Any]:
    """torch's way to reset a recurrence, with units that hold on to their state."""

    def held(module: Any) -> None:
        reset(module)
        for name, bias in module.named_parameters(recurse=False):
            # Of an LSTM four gates, of a GRU three.
            if name.startswith("bias_hh") and len(bias) in (3 * module.hidden_size, 4 * module.hidden_size):
                found.hold_on(bias, name, module.hidden_size)

    return held


def _registering(register: Callable[..., None], found: Drawn) -> Callable[..., None]:
    def registered(module: nn.Module, name: str, param: nn.Parameter | None) -> None:
        register(module, name, param)
        if isinstance(param, nn.Parameter) and not isinstance(module, NORMS) and not is_lazy(param):
            # torch's own modules give them their numbers later.
            resets = any(hasattr(module, reset) for reset in ("reset_parameters", "_reset_parameters"))
            found.register(param, name, constructed=not (resets and _constructs_a_layer()))

    return registered


def _constructs_a_layer() -> bool:
    """Whether whoever registers a parameter is the constructor of one of torch's own layers."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, nn.modules.module.__file__):
        frame = frame.f_back
    return frame.f_code.co_name == "__init__" and Path(frame.f_code.co_filename).parent == LAYERS


def _copying(deepcopy: Callable[..., Any], found: Drawn) -> Callable[..., Any]:
    def copied(what: Any, memo: Any = None, *rest: Any) -> Any:
        made = deepcopy(what, memo, *rest)
        # With a memo it is a part of what is copied.
        if memo is None and isinstance(what, nn.Module) and isinstance(made, nn.Module):
            found.copied(what, made)
        return made

    return copied


def _telling(fill: Callable[..., Any], tell: Callable[[torch.Tensor], None]) -> Callable[..., Any]:
    def filled(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        made = fill(tensor, *args, **kwargs)
        tell(tensor)
        return made

    return filled


def _multiplying(draw: Callable[..., Any], factor: float) -> Callable[..., Any]:
    def multiplied(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        drawn = draw(tensor, *args, **kwargs)
        if tensor.dim() > 1:
            with torch.no_grad():
                tensor.mul_(factor)
        return drawn

    return multiplied


def _values(tensor: torch.Tensor, role: str, seed: int, which: str) -> torch.Tensor:
    """From 0.5 to 1.5 in place of ones, from -0.5 to 0.5 in place of zeros, in the tensor's shape and dtype."""
    generator = torch.Generator("cpu").manual_seed(seed ^ zlib.crc32(f"{role} {tensor.numel()} {which}".encode()))
    # Also where a module is constructed within a device.
    values = torch.rand(tensor.shape, generator=generator, device="cpu") - 0.5 + USUAL[role]
    if role in SIGNED:
        values *= torch.randint(2, tensor.shape, generator=generator, device="cpu") * 2 - 1
    if tensor.is_complex():
        values = torch.complex(values, torch.rand(tensor.shape, generator=generator, device="cpu") - 0.5)
    return values.to(tensor)
