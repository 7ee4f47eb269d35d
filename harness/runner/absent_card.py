"""What torch.cuda says, in a process that has no card, about the card that the candidate's runner will have.

Many files compile only `if torch.cuda.is_available()`: 42 of the 82 with CUDA in the CUDA-L1 pack for the H100.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.compile import architectures


@contextlib.contextmanager
def announced(arch: str, name: str) -> Iterator[list[str]]:
    """Within the block, torch.cuda tells of one card of this name, for which `arch` ("9.0a") is compiled.

    Gives the list of what was asked. To use the card fails as before, with torch's own words.
    """
    asked: list[str] = []
    answers: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": architectures.capability(arch),
        "get_device_name": name,
    }
    before = {question: getattr(torch.cuda, question) for question in answers}

    def telling(question: str) -> Callable[..., Any]:
        def told(*_: Any, **__: Any) -> Any:
            asked.append(question)
            return answers[question]

        return told

    for question in answers:
        setattr(torch.cuda, question, telling(question))
    try:
        yield asked
    finally:
        for question, function in before.items():
            setattr(torch.cuda, question, function)
