"""The generators that random operations draw from."""

from __future__ import annotations

import random
import sys

import torch


def seed(device: torch.device, number: int) -> None:
    """What torch.manual_seed does to the generators of the host and of one device.

    For every other kind of device that one keeps the call, with a stack trace, until there is one: 0.8 ms each time on
    an H200's host, and memory that is never given back.
    """
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.init()
        torch.cuda.default_generators[device.index or 0].manual_seed(number)


def seed_all(device: torch.device, number: int) -> None:
    """The same, and those of Python and NumPy.

    In a state of their own they would go on from draw to draw, and who has seen enough of what they gave can tell all
    that they will give.
    """
    seed(device, number)
    random.seed(number)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed([number & 0xFFFFFFFF, number >> 32])


def drawn_from(device: torch.device, number: int) -> bool:
    """Whether numbers were drawn from the host's or the device's generator since `seed(device, number)`."""
    used = [torch.default_generator]
    if device.type == "cuda":
        used.append(torch.cuda.default_generators[device.index or 0])
    return any(not torch.equal(one.get_state(), _seeded(one.device, number).get_state()) for one in used)


def _seeded(device: torch.device, number: int) -> torch.Generator:
    return torch.Generator(device).manual_seed(number)
