"""Weights that tell: drawn ones where a module's are all one, all zero, or all the same tiny number.

A kernel could leave those out unseen, or what they multiply.

Judge and runners construct their modules within `drawn`, so that normalisations have the same weights, biases and
running statistics from the start, also for who computes something from them in `__init__`. The judge alone then draws
what is left (`draw_the_rest`); a runner gets those with the reference's other parameters. Both `cast` them.
"""

from __future__ import annotations

import contextlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from harness import wording
from harness.catalog import modules
from harness.errors import door
from harness.wire import layout

NORMS: tuple[type[nn.Module], ...] = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)
# What torch makes of each, and whether it may be below zero: a negative weight turns a maximum into a minimum.
USUAL = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
SIGNED = ("weight",)
# Of torch.nn.init, what draws a tensor's numbers.
DRAWS = (
    *("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_", "orthogonal_"),
    *("uniform_", "normal_", "trunc_normal_"),
)
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
    return model


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
    """What normalisations were constructed with: by role and number of elements, one after the other."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._values: dict[tuple[str, int], list[torch.Tensor]] = {}
        self._met = Counter[tuple[str, int, int]]()

    def next(self, tensor: torch.Tensor, role: str) -> torch.Tensor:
        """The next values of that role for so many elements."""
        before = self._values.setdefault((role, tensor.numel()), [])
        before.append(_values(tensor, role, self.seed, str(len(before))))
        return before[-1]

    def met(self, tensor: torch.Tensor, role: str) -> int | None:
        """How often these values have been asked about before, as of a module's copies; None if a tensor has none of
        them."""
        some = self._values.get((role, tensor.numel()), [])
        alike = (
            place for place, one in enumerate(some) if torch.equal(tensor.detach(), one.to(tensor).view_as(tensor))
        )
        place = next(alike, None)
        if place is None:
            return None
        self._met[role, tensor.numel(), place] += 1
        return self._met[role, tensor.numel(), place] - 1


@contextlib.contextmanager
def drawn(seed: int) -> Iterator[Drawn]:
    """Within it, torch's normalisations are constructed with drawn weights, biases and running statistics.

    They depend on `seed`, role, number of elements, and how many of these came before: who takes one's for another's is
    wrong. Who constructs them in another order gets them by name. torch's own generators stay as they are.
    """
    found = Drawn(seed)
    before = [
        (kind, name, vars(kind)[name])
        for kind in NORMS
        for name in ("reset_parameters", "reset_running_stats")
        if name in vars(kind)
    ]
    for kind, name, reset in before:
        setattr(kind, name, _filling(reset, found))
    try:
        yield found
    finally:
        for kind, name, reset in before:
            setattr(kind, name, reset)


@contextlib.contextmanager
def larger(factor: float, file: ModuleType) -> Iterator[None]:
    """Within it, what modules draw for their matrices by torch.nn.init, as torch's own modules do, is so many times as
    large, also where the `file` that is loaded has these functions under names of its own."""
    if factor == 1.0:
        yield
        return
    draws = {id(vars(nn.init)[name]) for name in DRAWS}
    bound = [
        (holder, name, draw)
        for holder in (nn.init, *(one for one in vars(nn.modules).values() if isinstance(one, ModuleType)), file)
        for name, draw in vars(holder).items()
        if id(draw) in draws
    ]
    for holder, name, draw in bound:
        setattr(holder, name, _multiplying(draw, factor))
    try:
        yield
    finally:
        for holder, name, draw in bound:
            setattr(holder, name, draw)


def draw_the_rest(model: nn.Module, drawn: Drawn) -> tuple[dict[str, torch.Tensor], frozenset[str]]:
    """Draw every other parameter of `model` that is all one, all zero or all the same tiny number, in place, and what
    copies of normalisations have in common with those that they are copies of.

    By name what these, and what is `drawn`, are by construction; and the names of those that no other module has by its
    own construction.
    """
    plain: dict[str, torch.Tensor] = {}
    redrawn: set[str] = set()
    for prefix, module in model.named_modules():
        own = dict(module.named_parameters(recurse=False))
        if isinstance(module, NORMS):
            own |= {name: value for name, value in module.named_buffers(recurse=False) if name in USUAL}
        for name, tensor in own.items():
            path = f"{prefix}.{name}" if prefix else name
            usual, is_new = _usual(module, name, tensor, drawn)
            if usual is None:
                continue
            plain[path] = torch.full_like(tensor.detach(), usual)
            if is_new:
                redrawn.add(path)
                of_a_norm = isinstance(module, NORMS) and name in USUAL
                role = name if of_a_norm else "running_var" if usual else "bias"
                with torch.no_grad():
                    tensor.copy_(_values(tensor, role, drawn.seed, path))
    return plain, frozenset(redrawn)


def _usual(module: nn.Module, name: str, tensor: torch.Tensor, drawn: Drawn) -> tuple[float | None, bool]:
    """What a tensor is by construction if it is drawn, or is to be, and whether it is to be; None where its values
    stay."""
    if is_lazy(tensor) or not layout.is_strided(tensor) or not tensor.is_floating_point() or not tensor.numel():
        return None, False
    if isinstance(module, NORMS) and name in USUAL:
        before = drawn.met(tensor, name)
        return (None, False) if before is None else (USUAL[name], before > 0)
    first = float(tensor.detach().reshape(-1)[0])
    hides = abs(first) < TINY or first == 1.0
    if not tensor.requires_grad or not hides or not bool((tensor == first).all()):
        return None, False
    return first, True


def _filling(reset: Callable[[Any], None], found: Drawn) -> Callable[[Any], None]:
    """torch's way to reset a normalisation, with drawn values in the place of its ones and zeros."""

    def filled(module: nn.Module) -> None:
        reset(module)
        with torch.no_grad():
            for name, usual in USUAL.items():
                tensor = getattr(module, name, None)
                if not isinstance(tensor, torch.Tensor) or is_lazy(tensor) or not layout.is_strided(tensor):
                    continue
                if bool((tensor == usual).all()):
                    tensor.copy_(found.next(tensor, name))

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
    generator = torch.Generator().manual_seed(seed ^ zlib.crc32(f"{role} {tensor.numel()} {which}".encode()))
    values = torch.rand(tensor.shape, generator=generator) - 0.5 + USUAL[role]
    if role in SIGNED:
        values *= torch.randint(2, tensor.shape, generator=generator) * 2 - 1
    return values.to(tensor)
