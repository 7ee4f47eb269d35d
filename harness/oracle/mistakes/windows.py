"""Mistakes in a convolution or a pooling: where windows begin, how far their elements are apart, what lies outside."""

from __future__ import annotations

import math
from typing import Any

import torch.nn.functional as F

from harness.oracle.mistakes.call import Call, Mistake, Mistakes

_EDGE = 2


def convolutions(call: Call) -> Mistakes:
    """Bias, flipped kernels, channels exchanged, padding and dilation off by one."""
    transposed = call.name.startswith("conv_transpose")
    if not (transposed or call.name in ("conv1d", "conv2d", "conv3d")):
        return
    name, weight = call.name, call.get("weight")
    n = int(name[-2])
    kernel = tuple(weight.shape[2:])
    if call.get("bias") is not None:
        yield Mistake(f"{name} without its bias", "", lambda: call.changed(bias=None), 0)
    padding, dilation = _numbers(call.get("padding", 0), n), _numbers(call.get("dilation", 1), n)
    if max(kernel) > 1:
        around = tuple(range(2, 2 + n))
        yield Mistake(f"{name}'s kernel flipped", "", lambda: call.changed(weight=weight.flip(around)))
    if weight.shape[0] == weight.shape[1] > 1:
        other = weight.transpose(0, 1)
        yield Mistake(f"{name}'s weight with its channels exchanged", "", lambda: call.changed(weight=other))
    move = _transposed_windows if transposed else _windows
    for off in (1, -1):
        new = _told([p + off for p in padding])
        words = f"{name} with padding {new} at the start"
        yield Mistake(words, f"padding={_told(padding)}", lambda off=off: move(call, off))  # type: ignore[misc]
    if transposed:
        return
    for off in (1, -1):
        apart = [d + off if k > 1 else d for d, k in zip(dilation, kernel, strict=True)]
        if max(kernel) > 1 and min(apart) > 0:
            words = f"{name} with dilation {_told(apart)}"
            yield Mistake(words, f"dilation={_told(dilation)}", lambda apart=apart: _windows(call, dilation=apart))  # type: ignore[misc]


def pools(call: Call) -> Mistakes:
    """Padding counted in a mean, zeros around a maximum, windows that begin one element early or late."""
    if call.name not in (f"{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)):
        return
    n, name = int(call.name[-2]), call.name
    padding = _numbers(call.get("padding", 0), n)
    if call.get("return_indices"):
        return
    if max(padding) and name.startswith("avg"):
        now = bool(call.get("count_include_pad", True))
        words, here = f"{name}(count_include_pad={not now})", f"count_include_pad={now}"
        yield Mistake(words, here, lambda: call.changed(count_include_pad=not now), 0)
    elif max(padding):
        zeros = [p for pad in reversed(padding) for p in (pad, pad)]
        words = f"{name} over zeros around the input"
        yield Mistake(words, "", lambda: call.changed(input=F.pad(call.input, zeros), padding=0), 0)
    for off in (1, -1):
        words = f"{name} with padding {_told([p + off for p in padding])} at the start"
        yield Mistake(words, f"padding={_told(padding)}", lambda off=off: _windows(call, off))  # type: ignore[misc]


def _numbers(value: Any, n: int) -> list[int]:
    """One number a dimension; raises ValueError where it is a word."""
    if isinstance(value, str):
        raise ValueError(value)
    numbers = [value] if isinstance(value, int) else [int(v) for v in value]
    return numbers * n if len(numbers) == 1 else numbers


def _told(numbers: list[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else str(tuple(numbers))


def _windows(call: Call, off: int = 0, dilation: list[int] | None = None) -> Any:
    """With windows that begin `off` elements earlier, or with other gaps between their elements; as many of them."""
    result, x, weight = call.result(), call.input, call.get("weight")
    n = int(call.name[-2])
    kernel = list(weight.shape[2:]) if weight is not None else _numbers(call.get("kernel_size"), n)
    padding, stride = (
        _numbers(call.get("padding", 0), n),
        _numbers(call.get("stride") or (kernel if weight is None else 1), n),
    )
    apart = dilation or _numbers(call.get("dilation", 1), n)
    sides = list[int]()
    for d in reversed(range(n)):
        reach = (result.shape[2 + d] - 1) * stride[d] + apart[d] * (kernel[d] - 1) + 1
        start = padding[d] + off
        sides += [start, reach - x.shape[2 + d] - start]
    outside = -math.inf if call.name.startswith("max") else 0.0
    changes: dict[str, Any] = {"input": F.pad(x, sides, value=outside), "padding": 0}
    return call.changed(**changes, **({"dilation": tuple(apart)} if dilation else {}))


def _transposed_windows(call: Call, off: int) -> Any:
    """With `off` more elements cut off at the start, and as many fewer at the end."""
    n = int(call.name[-2])
    padding = _numbers(call.get("padding", 0), n)
    result = call.result()
    whole = F.pad(call.changed(padding=0, output_padding=0), [_EDGE, _EDGE + max(result.shape[2:])] * n)
    for d, p in enumerate(padding):
        whole = whole.narrow(2 + d, _EDGE + p + off, result.shape[2 + d])
    return whole
