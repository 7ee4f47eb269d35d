"""Weights that tell: drawn ones where a module's are all one, all zero, or all the same tiny number.

A kernel could leave those out unseen, or what they multiply.

Judge and runners construct their modules within `drawn`, so that normalisations have the same weights, biases and
running statistics from the start, also for who computes something from them in `__init__`. The judge alone then draws
what is left (`draw_the_rest`); a runner gets those with the reference's other parameters. Both `cast` them.
"""

from __future__ import annotations

import contextlib
import zlib
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


@contextlib.contextmanager
def drawn(seed: int) -> Iterator[None]:
    """Within it, torch's normalisations are constructed with drawn weights, biases and running statistics.

    They depend on `seed`, role and number of elements alone, not on the order of construction. torch's own generators
    stay as they are.
    """
    before = [
        (kind, name, vars(kind)[name])
        for kind in NORMS
        for name in ("reset_parameters", "reset_running_stats")
        if name in vars(kind)
    ]
    for kind, name, reset in before:
        setattr(kind, name, _filling(reset, seed))
    try:
        yield
    finally:
        for kind, name, reset in before:
            setattr(kind, name, reset)


@contextlib.contextmanager
def larger(factor: float) -> Iterator[None]:
    """Within it, what modules draw for their matrices by torch.nn.init, as torch's own modules do, is so many times as
    large."""
    if factor == 1.0:
        yield
        return
    bound = [
        (holder, name, vars(nn.init)[name])
        for holder in (nn.init, *(one for one in vars(nn.modules).values() if isinstance(one, ModuleType)))
        for name in DRAWS
        if vars(holder).get(name) is vars(nn.init)[name]
    ]
    for holder, name, draw in bound:
        setattr(holder, name, _multiplying(draw, factor))
    try:
        yield
    finally:
        for holder, name, draw in bound:
            setattr(holder, name, draw)


def draw_the_rest(model: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Draw every other parameter of `model` that is all one, all zero or all the same tiny number, in place.

    By name what these, and what `drawn` has filled, are by construction.
    """
    plain: dict[str, torch.Tensor] = {}
    for prefix, module in model.named_modules():
        own = dict(module.named_parameters(recurse=False))
        if isinstance(module, NORMS):
            own |= {name: value for name, value in module.named_buffers(recurse=False) if name in USUAL}
        for name, tensor in own.items():
            usual = _usual(module, name, tensor, seed)
            if usual is not None:
                plain[f"{prefix}.{name}" if prefix else name] = torch.full_like(tensor.detach(), usual)
    return plain


def of_norms(model: nn.Module) -> frozenset[str]:
    """The names of what torch's normalisations in `model` are constructed with within `drawn`."""
    norms = [(prefix, module) for prefix, module in model.named_modules() if isinstance(module, NORMS)]
    return frozenset(f"{prefix}.{name}" if prefix else name for prefix, _ in norms for name in USUAL)


def _usual(module: nn.Module, name: str, tensor: torch.Tensor, seed: int) -> float | None:
    """What a tensor is by construction if it is drawn, or is to be and has been now; None where its values stay."""
    if is_lazy(tensor) or not layout.is_strided(tensor) or not tensor.is_floating_point() or not tensor.numel():
        return None
    if isinstance(module, NORMS) and name in USUAL:
        filled = torch.equal(tensor.detach(), _values(tensor, name, seed))
        return USUAL[name] if filled else None
    first = float(tensor.detach().reshape(-1)[0])
    hides = abs(first) < TINY or first == 1.0
    if not tensor.requires_grad or not hides or not bool((tensor == first).all()):
        return None
    with torch.no_grad():
        tensor.copy_(_values(tensor, "running_var" if first else "bias", seed))
    return first


def _filling(reset: Callable[[Any], None], seed: int) -> Callable[[Any], None]:
    """torch's way to reset a normalisation, with drawn values in the place of its ones and zeros."""

    def filled(module: nn.Module) -> None:
        reset(module)
        with torch.no_grad():
            for name, usual in USUAL.items():
                tensor = getattr(module, name, None)
                if not isinstance(tensor, torch.Tensor) or is_lazy(tensor) or not layout.is_strided(tensor):
                    continue
                if bool((tensor == usual).all()):
                    tensor.copy_(_values(tensor, name, seed))

    return filled


def _multiplying(draw: Callable[..., Any], factor: float) -> Callable[..., Any]:
    def multiplied(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        drawn = draw(tensor, *args, **kwargs)
        if tensor.dim() > 1:
            with torch.no_grad():
                tensor.mul_(factor)
        return drawn

    return multiplied


def _values(tensor: torch.Tensor, role: str, seed: int) -> torch.Tensor:
    """From 0.5 to 1.5 in place of ones, from -0.5 to 0.5 in place of zeros, in the tensor's shape and dtype."""
    generator = torch.Generator().manual_seed(seed ^ zlib.crc32(f"{role} {tensor.numel()}".encode()))
    values = torch.rand(tensor.shape, generator=generator) - 0.5 + USUAL[role]
    if role in SIGNED:
        values *= torch.randint(2, tensor.shape, generator=generator) * 2 - 1
    return values.to(tensor)
