"""The reference as the judge holds it: constructed from the problem file, its inputs drawn from secret seeds."""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import msgspec
import torch
from torch.nn.parameter import is_lazy

from harness import wording
from harness.catalog import modules
from harness.errors import door
from harness.judge import handed_over
from harness.judge.origins import Origins
from harness.links.link import Draw
from harness.machine.pauses import pause
from harness.oracle.expectation import InvalidReference
from harness.oracle.promises import Promises, find
from harness.oracle.replica import replica
from harness.oracle.structure import flatten, places, unsupported
from harness.roofline import work
from harness.wire import generators, layout, values, weights
from harness.wire.messages import CandidateSource, Construction
from harness.wire.nodes import Node

Result = TypeVar("Result")

# Draws that are alike before inputs count as the same in every draw: of one coin, 2^-12 by chance.
ALIKE = 12
# Elements from which on something can be computed from an input alone. A step's number is not drawn.
MUCH = 16
# Of what each function of a problem's file returns: one of them in a word, and where anything else is made of it.
ARGUMENTS = {"get_inputs": ("input", "forward"), "get_init_inputs": ("argument", "__init__")}


class Weights(enum.Enum):
    """Whose weights a candidate has, with why some of them are as modules begin.

    GIVEN: the reference's, where names and shapes match. PLAIN: the same, with what modules begin with for all that the
    judge draws or changes in place of that. OWN: what its own construction comes to.
    """

    GIVEN = ""
    PLAIN = (
        "its weights are as modules begin (ones, zeros, copies of others), because a parameter of the reference has no "
        "counterpart of the same name and shape in it, or the reference can be judged with no others: a kernel may "
        "make use of that unseen"
    )
    OWN = (
        "it changes weights in __init__, and is right with its own alone, so some are as modules begin (ones, zeros, "
        "copies of others): a kernel may make use of that unseen"
    )


@dataclass(frozen=True)
class Trial:
    """A draw and the output for it, how long a warm call and a draw take in seconds, and what the call has to do at
    least. `late` is why nothing of a call may be told before the clock starts, in words."""

    draw: Draw
    output: Any
    seconds: float
    draw_s: float
    work: work.Estimate
    late: str


class Reference:
    """A problem's `Model`, cast to the precision under test, and a source of draws.

    Its matrices are drawn so many times `larger` than it asks for. Raises whatever the problem's own code raises, and
    modules.LoadFault where it has no `Model` that makes a module.
    """

    def __init__(
        self, source: CandidateSource, precision: str, device: torch.device, seed: int, larger: float = 1.0
    ) -> None:
        self.device = device
        self.dtype = values.dtype_named(precision)
        self._source = source
        self._seed = seed
        self._draws = 0
        module = modules.execute(Path(source.path), source.overrides)
        self._file = Path(source.path).name
        self._module = module
        self.init_args: Any = _returned(module, "get_init_inputs")
        _require_transferable(self.init_args, "get_init_inputs")
        seed = self._derive("weights")
        self.model, drawn, structured = self._constructed_with_drawn(seed, larger)
        self.construction = Construction(
            seed=seed,
            larger=larger,
            drawn=sorted(drawn.parameters),
            structured=sorted(drawn.moved.structured),
            norms=sorted(drawn.norms),
            aliases=_aliases(self.model),
        )
        # Of all that is drawn or changed, what it began as; and the names of what no candidate has by its own
        # construction.
        self.plain, self._redrawn = weights.draw_the_rest(self.model, drawn, structured)
        self._lazy = frozenset(name for name, tensor in _named(self.model) if is_lazy(tensor))
        # Why some weights are as modules begin; empty where none is.
        self.why_plain = ""
        self._purpose = "inputs"
        # Of the first draw, what is no tensor, and whether it was something else in another one.
        self._numbers: Node | None = None
        self._numbers_vary = False

    def _constructed_with_drawn(
        self, seed: int, larger: float
    ) -> tuple[torch.nn.Module, weights.Drawn, frozenset[str]]:
        """The model, what was drawn for it from the start, which is nothing outside normalisations where it cannot be
        constructed with that, and the names of its parameters with a structure."""
        none = functools.partial(self._constructed, seed, larger, only=frozenset())
        origins, watched = Origins(), True
        try:
            try:
                with origins:
                    model, drawn = self._constructed(seed, larger)
            except Exception:
                # It may not bear to be watched (tracing does not).
                watched = False
                model, drawn = self._constructed(seed, larger)
        except Exception:
            # A constructor that checks its parameters may raise anything. If that is not why, it raises again.
            return *none(), frozenset()
        # Where nothing is known, any of them may have a structure.
        names = origins.not_drawn(model) if watched else (name for name, _ in model.named_parameters())
        structured = frozenset(names)
        which: dict[str, Any] = {}
        known, loose = weights.structured(model, drawn, structured), drawn.loose_in(model)
        if known or loose:
            # What cannot be constructed twice, or so, is changed afterwards.
            with contextlib.suppress(Exception):
                model, drawn = self._constructed(seed, larger, structured=known, loose=loose)
                which = {"structured": known, "loose": loose}
        if drawn.undone:
            # Nobody could tell what a candidate has that constructs them without drawn values.
            model, drawn = self._constructed(seed, larger, **which, without=drawn.undone)
        if drawn.parameters and (lost := _not_finite(model)):
            without_them = none()
            if _not_finite(without_them[0]) != lost:
                return *without_them, structured
        return model, drawn, structured

    def _constructed(self, seed: int, larger: float, **which: Any) -> tuple[torch.nn.Module, weights.Drawn]:
        """The model, and what was drawn for it; `which` parameters outside normalisations is of weights.Drawn."""
        pause()
        arguments = _copied(self.init_args)
        torch.manual_seed(seed)
        found = weights.Drawn(seed, **which)
        # What is drawn larger has its structure, if any, then.
        with weights.larger(larger, self._module), weights.drawn(found, self._module):
            model = weights.constructed(self._module, self._source.entries, arguments)
            _cast(model, self.device, self.dtype)
        return model, found

    def differs(self, weights: Weights) -> bool:
        """Whether who has such weights has others than these."""
        return bool(self._plain_among(weights))

    def with_weights(self, weights: Weights) -> Reference:
        """The same with such weights, and draws of its own; itself if it has these."""
        names = self._plain_among(weights)
        if not names:
            return self
        other = copy.copy(self)
        other.model = replica(self.model, torch.clone)
        with torch.no_grad():
            for name, tensor in other.state().items():
                if name in names:
                    tensor.copy_(self.plain[name])
        other.plain, other._redrawn, other.why_plain = {}, frozenset(), weights.value
        other._purpose = f"inputs beside {weights.name} weights"
        return other

    def _plain_among(self, weights: Weights) -> frozenset[str]:
        """The names of what is drawn here, and as modules begin there."""
        return {Weights.PLAIN: frozenset(self.plain), Weights.OWN: self._redrawn}.get(weights, frozenset())

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by name, as they are now, but for those of a kind that no runner can be sent."""
        own = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        return {name: tensor for name, tensor in own.items() if layout.is_strided(tensor) and not tensor.is_quantized}

    def tables(self) -> set[str]:
        """Names of buffers that hold what was computed, and not what a normalisation counts or where it begins."""
        return {
            name
            for name, tensor in self.model.named_buffers()
            if tensor.is_floating_point() and tensor.numel() >= MUCH and name not in self.plain
        }

    def draw(self) -> Draw:
        """Fresh inputs on the device under test, floating ones in the precision under test; never the same twice."""
        pause()
        self._draws += 1
        generators.seed_all(self.device, self._derive(f"{self._purpose} {self._draws}"))
        with torch.device(self.device):
            inputs = _returned(self._module, "get_inputs")
        inputs = values.cast_floating(tuple(inputs), self.dtype)
        if self._draws == 1:
            _require_transferable(inputs, "get_inputs")
            self._numbers = values.beside_tensors(inputs)
        self._numbers_vary |= values.beside_tensors(inputs) != self._numbers
        return Draw(inputs=_on(self.device, inputs), seed=self._derive(f"generator of {self._purpose} {self._draws}"))

    @functools.cached_property
    def promises(self) -> Promises:
        """What inputs have in common, draw by draw."""
        return find(list(self.draw().inputs), lambda: list(self.draw().inputs))

    def require_fresh_inputs(self) -> None:
        """Raises InvalidReference where inputs can be known before they are drawn, with their answers: because every
        draw is the same, or because they come from a generator that the file seeds by itself."""
        first = self._leaves()
        varying = next(filter(None, (_differing(first, self._leaves()) for _ in range(ALIKE))), None)
        if varying is None and not any(map(_says_something, first)):
            raise InvalidReference(
                "same_inputs",
                "get_inputs returns no numbers (no arguments, or tensors without elements), so that every answer is "
                "the same: return an input with elements",
            )
        if varying is None:
            raise InvalidReference(
                "same_inputs",
                "get_inputs returns the same inputs in every call, so that an answer could be kept from the first one: "
                "draw them from PyTorch's generator, and set no seed in get_inputs",
            )
        # A seed of ours is all that a file that is run again does not share with this one.
        known = varying - _differing(first, self._anew(0)._leaves())
        for place in sorted(place for place in known if _is_much(first[place][1])):
            one, other = self._anew(1), self._anew(2)
            if not any(place in _differing(one._leaves(), other._leaves()) for _ in range(ALIKE)):
                raise InvalidReference(
                    "same_inputs",
                    f"get_inputs draws {first[place][0].replace('output', 'input', 1)} from a generator of the file's "
                    "own, with a seed of its own, so that all that it will draw, and the answers, can be computed "
                    "ahead: draw from PyTorch's own generator",
                )

    def _leaves(self) -> list[tuple[str, Any]]:
        return list(flatten(self.draw().inputs))

    def _anew(self, number: int) -> Reference:
        """The same with the file run again, and draws of its own."""
        other = copy.copy(self)
        other._purpose, other._draws = f"inputs of the file run again {number}", 0
        generators.seed_all(self.device, self._derive(other._purpose))
        other._module = modules.execute(Path(self._source.path), self._source.overrides)
        return other

    def try_out(self) -> Trial:
        """Draw and call twice, watching the first call and timing the second; the model's state stays as it is.

        Raises what the problem's code raises, and InvalidReference for outputs that cannot be compared, or inputs
        that are the same in every draw.
        """
        self.require_fresh_inputs()
        # What gets its shape in these calls has no state before them.
        before = {name: tensor.clone() for name, tensor in self.state().items()}
        first, first_s = self._timed(self.draw)
        given = _form(first.inputs), values.beside_tensors(first.inputs)
        with work.Observer(first.inputs) as seen:
            output, _ = self._timed(functools.partial(self._call, first))
        _require_comparable(output)
        estimate = seen.estimate(output)
        if given != (_form(first.inputs), values.beside_tensors(first.inputs)):
            text = "forward changes a list or dict that it is given, or a tensor's shape: have it change a copy"
            raise modules.LoadFault("contract", f"{self._file}: {text}, as later calls are given the same")
        forms = given[0], _form(output), places(output)
        # Before the next ones are there.
        del first, output, seen
        draw, second_s = self._timed(self.draw)
        if _form(draw.inputs) != forms[0]:
            raise modules.LoadFault("contract", f"{self._file}: get_inputs returns other shapes from call to call")
        output, seconds = self._timed(lambda: self._call(draw))
        if (_form(output), places(output)) != forms[1:]:
            what = "shapes" if _form(output) != forms[1] else "keys or lengths"
            text = f"the output's {what} depend on the inputs' values, so that nothing can be compared call by call"
            raise modules.LoadFault("contract", f"{self._file}: {text}")
        late = self._late(draw)
        with torch.no_grad():
            for name, tensor in self.state().items():
                if name in before:
                    tensor.copy_(before[name])
        self._draw_lazy()
        draw_s = min(first_s, second_s)
        return Trial(draw=draw, output=output, seconds=seconds, draw_s=draw_s, work=estimate, late=late)

    def _draw_lazy(self) -> None:
        """Of what has got its shape in a call, draw what is as modules begin, as of all else."""
        plain = weights.draw_those(self.model, self._lazy, self.construction.seed)
        self.plain |= plain
        self._redrawn |= plain.keys()
        self._lazy = frozenset()

    def _late(self, called: Draw) -> str:
        """Why nothing of a call may be told before the clock starts, after one on such a draw; empty where it may be.

        Who knows the seed can draw numbers from it; who knows an input can do all that hangs on that one alone.
        """
        if generators.drawn_from(self.device, called.seed):
            return "the reference draws random numbers"
        while self._numbers is not None and not self._numbers_vary and self._draws < ALIKE:
            self.draw()
        return "an input that is no tensor differs from draw to draw" if self._numbers_vary else ""

    @door
    def _call(self, draw: Draw) -> Any:
        pause()
        generators.seed(self.device, draw.seed)
        with torch.no_grad():
            return self.model(*draw.inputs)

    def _timed(self, act: Callable[[], Result]) -> tuple[Result, float]:
        _synchronize(self.device)
        started = time.perf_counter()
        result = act()
        _synchronize(self.device)
        return result, time.perf_counter() - started

    def _derive(self, purpose: str) -> int:
        """A seed for one purpose, from which the others cannot be told: the runner gets to know some of them."""
        digest = hashlib.sha256(f"{self._seed}/{purpose}".encode()).digest()
        return int.from_bytes(digest[:7], "little")


@door
def _returned(module: ModuleType, name: str) -> list[Any]:
    found = getattr(module, name)()
    # The first ones can be gone through, but what comes of that is no list of arguments.
    if isinstance(found, dict | str | torch.Tensor) or not isinstance(found, Iterable):
        what = "None" if found is None else wording.a(type(found).__name__)
        said = f"{name} returned {what}; return the arguments in a list"
        raise modules.LoadFault("contract", said + (", [] if there are none" if found is None else ""))
    return list(found)


def _copied(arguments: list[Any]) -> list[Any]:
    """Init arguments for one construction, which may change them, or make parameters of them that are changed."""
    # What has a history is no leaf, and is not copied otherwise.
    history = {id(tensor): tensor.detach().clone() for tensor in values.tensors(arguments) if not tensor.is_leaf}
    return copy.deepcopy(arguments, history)


def _aliases(model: torch.nn.Module) -> dict[str, str]:
    """Of what is shared, each further name with the first."""
    first: dict[int, str] = {}
    every = (
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    )
    known = {name: first.setdefault(id(tensor), name) for name, tensor in every}
    return {name: its for name, its in known.items() if name != its}


def _named(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _not_finite(model: torch.nn.Module) -> frozenset[str]:
    """Names of the parameters and buffers that have an infinity or a NaN."""
    # Some may have been made so, and are then looked at nowhere else.
    with torch.inference_mode():
        return frozenset(
            name
            for name, tensor in _named(model)
            if not is_lazy(tensor) and layout.is_strided(tensor) and not bool(torch.isfinite(tensor).all())
        )


@door
def _cast(model: torch.nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    weights.cast(model, device, dtype)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _require_transferable(given: Any, name: str) -> None:
    """Raises LoadFault where what the function of that name returned has something that no runner can be sent."""
    for tensor in values.tensors(given):
        if not layout.is_strided(tensor) or tensor.is_quantized:
            kind = f"a tensor that is sparse, quantized or of a class of its own ({tensor.layout!s})"
            raise modules.LoadFault("contract", f"{name} returns {kind}, which is not supported; use plain ones")
    word, maker = ARGUMENTS[name]
    if (found := values.not_sendable(given, word)) is not None:
        place, what = found
        fault = f"{name} returns what cannot be handed over: {place} is {wording.a(what.python_type)}"
        raise modules.LoadFault("contract", f"{fault}; it may return {values.SENDABLE}; make anything else in {maker}")
    waiting = [msgspec.to_builtins(values.encode(given, lambda _: values.SOME_TENSOR))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list | tuple):
            waiting += node
        elif isinstance(node, str) and not node.isascii():
            try:
                node.encode()
            except UnicodeEncodeError:
                raise modules.LoadFault("contract", f"{name} returns half a surrogate pair in a text") from None


def _require_comparable(output: Any) -> None:
    """Raises InvalidReference where an output has a part that cannot be compared, or that no runner can hand over."""
    found = values.not_sendable(output)
    fault = (unsupported(output) or _of_a_class(output)) if found is None else handed_over.not_sendable(*found)
    if fault:
        raise InvalidReference("unsupported_output", f"the reference's {fault}")


def _of_a_class(output: Any) -> str:
    """A clause about the first tensor that is of a class of its own, as no candidate's may be; empty without one."""
    some = ((path, type(leaf)) for path, leaf in flatten(output) if isinstance(leaf, torch.Tensor))
    found = next(((path, kind) for path, kind in some if kind not in (torch.Tensor, torch.nn.Parameter)), None)
    if found is None:
        return ""
    what = f"{found[0]} is a tensor of a class of its own, {found[1].__name__}"
    return f"{what}: this kind of output is not supported; return .as_subclass(torch.Tensor) of it"


def _says_something(leaf: tuple[str, Any]) -> bool:
    return not isinstance(leaf[1], torch.Tensor) or leaf[1].numel() > 0


def _is_much(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.numel() >= MUCH


def _differing(first: list[tuple[str, Any]], second: list[tuple[str, Any]]) -> set[int]:
    """Places of the leaves that are not the same in two draws, tensors byte for byte."""
    if len(first) != len(second):
        return set(range(max(len(first), len(second))))
    return {place for place, pair in enumerate(zip(first, second, strict=True)) if not _same_leaf(*pair)}


def _same_leaf(first: tuple[str, Any], second: tuple[str, Any]) -> bool:
    one, other = first[1], second[1]
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and values.same_bytes(one, other)
    return type(one) is type(other) and bool(one == other)


def _form(value: Any) -> list[tuple[tuple[int, ...], torch.dtype]]:
    return [(tuple(tensor.shape), tensor.dtype) for tensor in values.tensors(value)]


def _on(device: torch.device, value: Any) -> Any:
    """Tensors that the problem drew elsewhere (from numpy, with a device of its own) belong on the device too."""
    if isinstance(value, torch.Tensor):
        # A leaf that requires gradients cannot be written to in place, as its copies are.
        return value.detach().to(device)
    if isinstance(value, list | tuple):
        items = [_on(device, item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: _on(device, item) for key, item in value.items()}
    return value
