"""Floating-point operations of one operation, and the dtype class that they are done in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from harness.roofline.operations import ATTENTION, RECURRENT, WEIGHTS
from harness.roofline.views import tensors


def flops_of(func: Any, name: str, call: Mapping[str, Any], args: Any, kwargs: Any, result: Any) -> dict[str, float]:
    """FLOPs by dtype class of an operation that was carried out; empty where there is no formula for it."""
    packet = getattr(func, "overloadpacket", func)
    formula = _attention if name in ATTENTION else _recurrent if name in RECURRENT else FORMULAS.get(name)
    if formula is not None:
        count = formula(call, result)
    elif packet in flop_registry:
        count = flop_registry[packet](*args, **kwargs, out_val=result)
    else:
        return {}
    operand = next(tensor for tensor in tensors(list(call.values())) if tensor.numel() > 0)
    if operand.dtype.is_complex:
        # Three real products for a complex one (Gauss).
        count *= 3
    convolves = name in RECURRENT or "conv" in name
    return {dtype_class(operand, convolves=convolves, autocast=name in ATTENTION): float(count)}


def dtype_class(operand: torch.Tensor, *, convolves: bool = False, autocast: bool = False) -> str:
    """`float16`, `bfloat16`, `tf32`, `float32`, `float64`, `int8`, `float8`, or torch's name of another dtype.

    float32 on a GPU is `tf32` where the switches in force let cuBLAS (or, for convolutions and recurrent layers, cuDNN)
    round to it.
    """
    dtype = operand.dtype
    kind = operand.device.type
    if autocast and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    if dtype.is_complex:
        dtype = dtype.to_real()
    name = str(dtype).removeprefix("torch.")
    if name.startswith("float8"):
        return "float8"
    if dtype is torch.float32 and kind == "cuda" and tf32_allowed(convolves=convolves) and _has_tf32(operand.device):
        return "tf32"
    return name


def tf32_allowed(*, convolves: bool) -> bool:
    """Whether PyTorch's switches, as they are, let cuDNN (`convolves`: recurrent layers, too) or cuBLAS use TF32."""
    switch: Any = torch.backends.cudnn.conv if convolves else torch.backends.cuda.matmul  # type: ignore[attr-defined]
    return bool(switch.fp32_precision == "tf32")


def _has_tf32(device: torch.device) -> bool:
    return not torch.cuda.is_available() or torch.cuda.get_device_capability(device)[0] >= 8


def _product(a: torch.Tensor, b: torch.Tensor) -> float:
    """(..., m, k) by (k, n) or (..., k, n), or by a vector."""
    columns = b.size(-1) if b.dim() > 1 else 1
    return 2.0 * a.numel() * columns


def _attention(call: Mapping[str, Any], result: Any) -> float:
    query, key, value = call["query"], call["key"], call["value"]
    queries, keys = query.size(-2), key.size(-2)
    pairs = queries * keys
    if call.get("is_causal"):
        shorter = min(queries, keys)
        pairs = shorter * (shorter + 1) // 2 + max(0, queries - keys) * keys
    heads = math.prod(query.shape[:-2])
    return 2.0 * heads * pairs * (query.size(-1) + value.size(-1))


def _recurrent(call: Mapping[str, Any], result: Any) -> float:
    """Each matrix of weights meets each step of each sequence once."""
    source = call.get("input", call.get("data"))
    if source is None:
        return 0.0  # The elementwise part of a cell.
    steps = source.numel() / max(1, source.size(-1))
    weights = [tensor for name in WEIGHTS for tensor in tensors(call.get(name)) if tensor.dim() == 2]
    return 2.0 * steps * sum(tensor.numel() for tensor in weights)


def _convolution(call: Mapping[str, Any], result: Any) -> float:
    """Products with padding do not count: a program need not form them."""
    source, weight = call["input"], call["weight"]
    transposed = call.get("transposed", False)
    dims = weight.dim() - 2
    # A transposed convolution scatters each input over the outputs that a convolution would gather it from.
    wide, narrow = (result, source) if transposed else (source, result)
    counts = [
        sum(len(places) for places in taps(call, dim, dims, wide.size(dim - dims), narrow.size(dim - dims), weight))
        for dim in range(dims)
    ]
    return 2.0 * source.size(0) * math.prod(counts) * weight.size(0) * weight.size(1)


def taps(
    call: Mapping[str, Any], dim: int, dims: int, wide: int, narrow: int, weight: torch.Tensor | None
) -> Iterator[range]:
    """For each tap of the kernel along one dimension, the places it reads, padding left out."""

    def along(name: str, default: int) -> int:
        values = call.get(name)
        values = [values] if isinstance(values, int) else list(values or [])
        return int(values[dim % len(values)]) if values else default

    kernel = weight.size(dim - dims) if weight is not None else along("kernel_size", 1)
    stride = along("stride", kernel if weight is None else 1)
    padding, dilation = along("padding", 0), along("dilation", 1)
    for tap in range(kernel):
        start = tap * dilation - padding
        skipped = max(0, math.ceil(-start / stride))
        stop = min(start + narrow * stride, wide)
        yield range(start + skipped * stride, max(stop, start + skipped * stride), stride)


FORMULAS: dict[str, Callable[[Mapping[str, Any], Any], float]] = {
    "convolution": _convolution,
    "mv": lambda call, _: _product(call["self"], call["vec"]),
    "addmv": lambda call, _: _product(call["mat"], call["vec"]),
    "addmv_": lambda call, _: _product(call["mat"], call["vec"]),
    "addbmm": lambda call, _: _product(call["batch1"], call["batch2"]),
    "addbmm_": lambda call, _: _product(call["batch1"], call["batch2"]),
    "addmm_": lambda call, _: _product(call["mat1"], call["mat2"]),
    "baddbmm_": lambda call, _: _product(call["batch1"], call["batch2"]),
    "_addmm_activation": lambda call, _: _product(call["mat1"], call["mat2"]),
    "_int_mm": lambda call, _: _product(call["self"], call["mat2"]),
    "dot": lambda call, _: 2.0 * call["self"].numel(),
    "vdot": lambda call, _: 2.0 * call["self"].numel(),
    "mkldnn_linear": lambda call, _: 2.0 * call["self"].numel() * call["weight"].size(0),
    # Of nn.Bilinear: each pair of features meets each output's matrix.
    "_trilinear": lambda call, result: 2.0 * result.numel() * call["i2"].numel() / max(1, call["i2"].size(0)),
}
