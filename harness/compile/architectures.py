"""Architecture flags in a candidate's `extra_cuda_cflags`: written for another card more often than not."""

from __future__ import annotations

import re
from collections.abc import Iterable

# -arch=sm_80 · -arch sm_80 · -gencode=arch=compute_80,code=sm_80 · -gencode arch=... · --gpu-architecture ...
NAMES = r"--?arch|--?gencode|--gpu-architecture|--?code|--gpu-code|--generate-code"
ALONE = re.compile(rf"(?:{NAMES})")
FLAG = re.compile(rf"(?:{NAMES})[= ].*")
TARGET = re.compile(r"(?:sm|compute|lto)_(\d+)[af]?")


def split(flags: Iterable[str]) -> tuple[list[str], list[str]]:
    """The flags that name no architecture, and the numbers (`80`) that the others name; `native` names none."""
    kept: list[str] = []
    numbers: set[str] = set()
    words = iter(flags)
    for flag in words:
        text = flag.strip()
        if ALONE.fullmatch(text):
            numbers.update(TARGET.findall(next(words, "")))
        elif FLAG.fullmatch(text):
            numbers.update(TARGET.findall(text))
        else:
            kept.append(flag)
    return kept, sorted(numbers, key=int)


def of_card(capability: str) -> str:
    """What to compile for on a card, as TORCH_CUDA_ARCH_LIST has it: `9.0a` for `9.0`, empty for none."""
    # Hopper's own instructions (wgmma, setmaxnreg) exist only in the architecture-specific target.
    return capability + "a" if capability.startswith("9.") else capability


def number(arch: str) -> str:
    """`90` for `9.0a`, as TORCH_CUDA_ARCH_LIST has it."""
    return re.sub(r"\D", "", arch)


def capability(arch: str) -> tuple[int, int]:
    """(9, 0) for `9.0a`, as torch.cuda.get_device_capability has it."""
    major, _, minor = arch.partition(".")
    return int(major), int(re.sub(r"\D", "", minor) or 0)


def foreign(numbers: list[str], arch: str) -> list[str]:
    """The numbers that a candidate names and that are other cards'; none if the card's own is among them."""
    return [] if number(arch) in numbers else numbers
