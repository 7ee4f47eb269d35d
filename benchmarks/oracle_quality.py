"""How often the oracle is wrong: labelled right and wrong candidates over many operators, judged as a run judges them.

    python benchmarks/oracle_quality.py [--small] [--only WORD] [--seeds N] [--large]

Each candidate is a torch emulation of a kernel: sums in other orders, running sums, TF32 by rounding mantissas, split
products, fp16 accumulators, forgotten terms, unwritten tiles. It passes if the oracle accepts it on two draws and on
every binding stress set on which the reference is meaningful. With several seeds, all of that again for other weights
and inputs, of which only the misjudged are told. With `--large`, all but a few batch entries of hard inputs are
compared with the reference's own output alone, as those of large problems are. The last line reads
`wrong_accepted=0/N right_refused=0/M`; the exit status is 1 unless both counts are 0.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.oracle import chunks, exact, promises
from harness.oracle.expectation import Expectation
from harness.oracle.factor import Factors
from harness.oracle.formats import FLOAT8, TF32, round_to
from harness.oracle.oracle import Oracle, Sampled
from harness.oracle.stress import SETS

Kernel = Callable[..., Any]
Expected = Expectation | Sampled

# What counts as many entries of a batch where all problems are to be judged as large ones are.
AS_LARGE: dict[str, Any] = {"ENOUGH": {"cpu": 1 << 12}, "FEWEST": 4, "LEAST": 64, "WORTH": 2}
LARGE: dict[str, Any] = {}


@dataclass
class Problem:
    """A reference, its inputs, and candidates by label; a candidate gets the module and the inputs."""

    name: str
    module: nn.Module
    draw: Callable[[], list[Any]]
    right: dict[str, Kernel] = field(default_factory=dict)
    wrong: dict[str, Kernel] = field(default_factory=dict)


class Lambda(nn.Module):
    """A reference without weights."""

    def __init__(self, function: Kernel) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


# --- What kernels do to numbers ---------------------------------------------------------------------------------


def tf32(x: torch.Tensor) -> torch.Tensor:
    return round_to(x, TF32)


def truncated(x: torch.Tensor) -> torch.Tensor:
    """Float64 to float32 towards zero, as tensor cores round what they accumulate."""
    near = x.float()
    return torch.where(near.double().abs() > x.abs(), torch.nextafter(near, torch.zeros_like(near)), near)


def product_serial(a: torch.Tensor, b: torch.Tensor, block: int = 1) -> torch.Tensor:
    """(.., m, k) by (.., k, n) with one float32 accumulator an element, `block` terms at a time."""
    total = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=a.dtype)
    for k in range(0, a.shape[-1], block):
        total = total + a[..., k : k + block] @ b[..., k : k + block, :]
    return total


def product_tensor_core(a: torch.Tensor, b: torch.Tensor, block: int = 8) -> torch.Tensor:
    """The same as tensor cores do it: exact products of coarse operands, sums truncated to float32."""
    a, b = a.double(), b.double()
    total = torch.zeros(*a.shape[:-1], b.shape[-1])
    for k in range(0, a.shape[-1], block):
        total = truncated(total.double() + a[..., k : k + block] @ b[..., k : k + block, :])
    return total


def product_split(a: torch.Tensor, b: torch.Tensor, cut: Kernel) -> torch.Tensor:
    """Three coarse products of high and low parts; the fourth is below float32's own rounding."""
    a_high, b_high = cut(a), cut(b)
    a_low, b_low = cut(a - a_high), cut(b - b_high)
    small = product_tensor_core(a_low, b_high) + product_tensor_core(a_high, b_low)
    return small + product_tensor_core(a_high, b_high)


def product_split_fp16(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Three fp16 products, operands scaled to the middle of its range and low parts by 2^11."""

    def parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        peak = x.abs().amax().clamp_min(1e-37)
        scale = torch.exp2(torch.floor(torch.log2(peak)))
        high = (x / scale).half().float()
        return high, ((x / scale - high) * 2048).half().float(), scale

    (a_high, a_low, a_scale), (b_high, b_low, b_scale) = parts(a), parts(b)
    small = product_tensor_core(a_low, b_high) + product_tensor_core(a_high, b_low)
    return (product_tensor_core(a_high, b_high) + small / 2048) * a_scale * b_scale


def product_split_bf16(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Six bf16 products of three parts each: 24 bits in all."""

    def parts(x: torch.Tensor) -> list[torch.Tensor]:
        out = []
        for _ in range(3):
            out.append(x.bfloat16().float())
            x = x - out[-1]
        return out

    left, right = parts(a), parts(b)
    pairs = [(i, j) for i in range(3) for j in range(3) if i + j < 3]
    return sum((product_tensor_core(left[i], right[j]) for i, j in reversed(pairs)), torch.zeros(()))


def product_fp16_accumulator(a: torch.Tensor, b: torch.Tensor, block: int = 4) -> torch.Tensor:
    total = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=torch.float16)
    for k in range(0, a.shape[-1], block):
        total = (total.float() + a[..., k : k + block].float() @ b[..., k : k + block, :].float()).half()
    return total


def sum_serial(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """One float32 accumulator, element after element."""
    total = torch.zeros_like(x.select(dim, 0))
    for part in x.unbind(dim):
        total = total + part
    return total


def sum_blocked(x: torch.Tensor, block: int) -> torch.Tensor:
    """Partial sums of neighbours, then their sum, both serial, over the last dimension."""
    parts = [sum_serial(part) for part in x.split(block, -1)]
    return sum_serial(torch.stack(parts, -1))


def sum_strided(x: torch.Tensor, threads: int) -> torch.Tensor:
    """As a block of threads does it: thread t takes t, t + threads, ..; then a tree."""
    length = x.shape[-1]
    x = F.pad(x, (0, -length % threads)).unflatten(-1, (-1, threads))
    lanes = sum_serial(x, -2)
    while lanes.shape[-1] > 1:
        half = (lanes.shape[-1] + 1) // 2
        lanes = F.pad(lanes, (0, 2 * half - lanes.shape[-1]))
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def sum_in(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Eight lanes in a 16-bit dtype."""
    lanes = F.pad(x, (0, -x.shape[-1] % 8)).unflatten(-1, (-1, 8)).to(dtype)
    total = torch.zeros_like(lanes[..., 0, :])
    for part in lanes.unbind(-2):
        total = total + part
    return total.float().sum(-1)


def exp_fast(x: torch.Tensor) -> torch.Tensor:
    """2^(x log2 e) from a float32 product, as __expf computes it, and two roundings of noise."""
    y = torch.exp2(x * 1.4426950408889634)
    return y * (1 + 1.2e-7 * torch.sin(1e4 * x))


def softmax_online(x: torch.Tensor, tile: int = 32) -> torch.Tensor:
    """Over the last dimension, with a running maximum and a running sum."""
    top = torch.full_like(x[..., :1], -math.inf)
    total = torch.zeros_like(top)
    for part in x.split(tile, -1):
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        total = total * torch.exp(top - higher) + torch.exp(part - higher).sum(-1, keepdim=True)
        top = higher
    return torch.exp(x - top) / total


def with_rows(x: torch.Tensor, rows: slice, value: float = 0.0) -> torch.Tensor:
    out = x.clone()
    out[rows] = value
    return out


def with_last(x: torch.Tensor, count: int, value: float = 0.0) -> torch.Tensor:
    out = x.clone()
    out[..., -count:] = value
    return out


def one_off(x: torch.Tensor, share: float) -> torch.Tensor:
    """One element in the middle moved by a share of the output's standard deviation."""
    out = x.clone()
    out.view(-1)[x.numel() // 2] += share * float(x.float().std())
    return out


def noisy(x: torch.Tensor, share: float) -> torch.Tensor:
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    return (x.float() * (1 + share * noise)).to(x.dtype)


# --- The problems and their candidates ---------------------------------------------------------------------------


def common_wrong(problem: Problem) -> Problem:
    """What no problem with one floating output may accept."""
    problem.wrong |= {
        "zeros": lambda m, *a: torch.zeros_like(m(*a)),
        "mean of the output": lambda m, *a: m(*a).float().mean().to(m(*a).dtype).expand_as(m(*a)).clone(),
        "one per cent of noise": lambda m, *a: noisy(m(*a), 0.01),
    }
    return problem


def matmul(n: int) -> Problem:
    problem = Problem("matmul fp32", Lambda(torch.matmul), lambda: [torch.randn(n, 8 * n), torch.randn(8 * n, n)])
    problem.right = {
        "one running sum": lambda m, a, b: product_serial(a, b),
        "tiles of 32": lambda m, a, b: product_serial(a, b, 32),
        "terms reversed": lambda m, a, b: product_serial(a.flip(1), b.flip(0), 8),
        "transposed twice": lambda m, a, b: (b.T.contiguous() @ a.T.contiguous()).T.contiguous(),
        "split over k, halves added": lambda m, a, b: a[:, ::2] @ b[::2] + a[:, 1::2] @ b[1::2],
        "float64 inside": lambda m, a, b: (a.double() @ b.double()).float(),
        "three TF32 products": lambda m, a, b: product_split(a, b, tf32),
        "three fp16 products": lambda m, a, b: product_split_fp16(a, b),
        "six bf16 products": lambda m, a, b: product_split_bf16(a, b),
    }
    problem.wrong = {
        "TF32": lambda m, a, b: tf32(a) @ tf32(b),
        "TF32, truncated sums": lambda m, a, b: product_tensor_core(tf32(a), tf32(b)),
        "TF32 of one operand": lambda m, a, b: tf32(a) @ b,
        "bf16": lambda m, a, b: (a.bfloat16() @ b.bfloat16()).float(),
        "bf16 operands, fp32 sums": lambda m, a, b: a.bfloat16().float() @ b.bfloat16().float(),
        "fp16 accumulator": lambda m, a, b: product_fp16_accumulator(a, b).float(),
        "fp16 result": lambda m, a, b: (a @ b).half().float(),
        "last term dropped": lambda m, a, b: a[:, :-1] @ b[:-1],
        "one tile unwritten": lambda m, a, b: torch.cat([(a @ b)[:-8], with_last((a @ b)[-8:], 8)]),
        "last row missing": lambda m, a, b: with_rows(a @ b, slice(-1, None)),
        "transposed": lambda m, a, b: (a @ b).T.contiguous(),
        "0.1 % too large": lambda m, a, b: (a @ b) * 1.001,
        "one row in TF32": lambda m, a, b: torch.cat([(a @ b)[:-1], tf32(a[-1:]) @ tf32(b)]),
        "one element off by 1 %": lambda m, a, b: one_off(a @ b, 0.01),
    }
    return common_wrong(problem)


def matmul_uniform(n: int) -> Problem:
    problem = Problem("matmul, inputs in [0, 1)", Lambda(torch.matmul),
                      lambda: [torch.rand(n, 16 * n), torch.rand(16 * n, n)])  # fmt: skip
    problem.right = {
        "one running sum": lambda m, a, b: product_serial(a, b),
        "three TF32 products": lambda m, a, b: product_split(a, b, tf32),
        "tiles of 64": lambda m, a, b: product_serial(a, b, 64),
    }
    problem.wrong = {
        "TF32": lambda m, a, b: tf32(a) @ tf32(b),
        "TF32, truncated sums": lambda m, a, b: product_tensor_core(tf32(a), tf32(b)),
        "bf16": lambda m, a, b: (a.bfloat16() @ b.bfloat16()).float(),
        "the mean everywhere": lambda m, a, b: torch.full_like(a @ b, a.shape[1] / 4),
        "last term dropped": lambda m, a, b: a[:, :-1] @ b[:-1],
    }
    return problem


def matmul_half(n: int) -> Problem:
    problem = Problem("matmul fp16", Lambda(torch.matmul),
                      lambda: [torch.randn(n, 16 * n).half(), torch.randn(16 * n, n).half()])  # fmt: skip
    problem.right = {
        "fp32 sums": lambda m, a, b: (a.float() @ b.float()).half(),
        "fp32 sums, serial": lambda m, a, b: product_serial(a.float(), b.float(), 16).half(),
        "tensor core": lambda m, a, b: product_tensor_core(a, b, 16).half(),
        "two halves, each stored": lambda m, a, b: a[:, ::2] @ b[::2] + a[:, 1::2] @ b[1::2],
    }
    problem.wrong = {
        "fp16 accumulator": product_half_wrong,
        "bf16": lambda m, a, b: (a.bfloat16() @ b.bfloat16()).half(),
        "bf16 result": lambda m, a, b: (a @ b).bfloat16().half(),
        "fp8 operands": lambda m, a, b: round_to(a, FLOAT8) @ round_to(b, FLOAT8),
        "last term dropped": lambda m, a, b: a[:, :-1] @ b[:-1],
    }
    return common_wrong(problem)


def product_half_wrong(module: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product_fp16_accumulator(a, b)


class ConvBias(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def conv_by_columns(m: Any, x: torch.Tensor, change: Kernel = lambda t: t, order: Any = None) -> torch.Tensor:
    columns = F.unfold(x, 3, padding=1)
    weight = m.conv.weight.flatten(1)
    if order is not None:
        columns, weight = columns[:, order], weight[:, order]
    out = change(weight) @ change(columns) + m.conv.bias[:, None]
    return out.unflatten(-1, x.shape[-2:])


def conv_winograd(m: Any, x: torch.Tensor) -> torch.Tensor:
    """F(2x2, 3x3): tiles of four, sixteen products where there were thirty-six."""
    g = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    bt = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
    at = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])
    weight = g @ m.conv.weight @ g.T
    tiles = F.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)
    data = bt @ tiles @ bt.T
    out = at @ torch.einsum("ocij,bchwij->bohwij", weight, data) @ at.T
    out = out.permute(0, 1, 2, 4, 3, 5).flatten(4, 5).flatten(2, 3)
    return out + m.conv.bias[:, None, None]


def conv(n: int) -> Problem:
    module = ConvBias(max(8, n // 4))
    channels = module.conv.in_channels
    problem = Problem("conv2d fp32", module, lambda: [torch.randn(4, channels, 16, 16)])
    order = torch.randperm(9 * channels, generator=torch.Generator().manual_seed(2))
    problem.right = {
        "columns and a product": lambda m, x: conv_by_columns(m, x),
        "another order": lambda m, x: conv_by_columns(m, x, order=order),
        "Winograd": conv_winograd,
        "float64 inside": lambda m, x: F.conv2d(
            x.double(), m.conv.weight.double(), m.conv.bias.double(), padding=1).float(),
        "channels last": lambda m, x: m(x.contiguous(memory_format=torch.channels_last)).contiguous(),
    }  # fmt: skip
    problem.wrong = {
        "TF32": lambda m, x: conv_by_columns(m, x, tf32),
        "bf16": lambda m, x: conv_by_columns(m, x.bfloat16(), lambda t: t.bfloat16()).float(),
        "no bias": lambda m, x: F.conv2d(x, m.conv.weight, padding=1),
        "edge replicated": lambda m, x: F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), m.conv.weight, m.conv.bias),
        "kernel flipped": lambda m, x: F.conv2d(x, m.conv.weight.flip(2, 3), m.conv.bias, padding=1),
        "last channel unwritten": lambda m, x: m(x) * (torch.arange(channels) < channels - 1)[:, None, None],
        "last batch entry unwritten": lambda m, x: with_rows(m(x), slice(-1, None)),
        "corner pixel wrong": lambda m, x: m(x) - F.pad(m(x)[..., -1:, -1:] * 0.02, (15, 0, 15, 0)),
    }
    return common_wrong(problem)


def softmax(n: int) -> Problem:
    problem = Problem("softmax fp32", Lambda(lambda x: torch.softmax(x, -1)), lambda: [torch.randn(n, 32 * n)])

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x - x.amax(-1, keepdim=True)

    problem.right = {
        "online": lambda m, x: softmax_online(x),
        "serial sum": lambda m, x: torch.exp(shifted(x)) / sum_serial(torch.exp(shifted(x)))[:, None],
        "fast exp": lambda m, x: exp_fast(shifted(x)) / exp_fast(shifted(x)).sum(-1, keepdim=True),
        "times a reciprocal": lambda m, x: torch.exp(shifted(x)) * (1 / torch.exp(shifted(x)).sum(-1, keepdim=True)),
        "through logarithms": lambda m, x: torch.exp(shifted(x) - torch.logsumexp(shifted(x), -1, keepdim=True)),
        "through large logarithms": lambda m, x: torch.exp(x - torch.logsumexp(x, -1, keepdim=True)),
        "one maximum for all rows": lambda m, x: torch.softmax(x - x.amax(-1, keepdim=True), -1),
    }
    problem.wrong = {
        "no maximum subtracted": lambda m, x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True),
        "wrong axis": lambda m, x: torch.softmax(x, 0),
        "fp16 exponentials": lambda m, x: (torch.exp(shifted(x)).half() / torch.exp(shifted(x)).sum(-1, keepdim=True)
                                           .half()).float(),
        "bf16 result": lambda m, x: m(x).bfloat16().float(),
        "TF32 inputs": lambda m, x: m(tf32(x)),
        "last column not summed": lambda m, x: torch.exp(shifted(x)) / torch.exp(shifted(x))[:, :-1].sum(-1, True),
        "uniform": lambda m, x: torch.full_like(x, 1 / x.shape[1]),
        "unnormalised": lambda m, x: torch.exp(shifted(x)),
        "small ones flushed": lambda m, x: torch.where(m(x) < 1e-2 / x.shape[1], 0.0, m(x)),
        "the input": lambda m, x: x.clone(),
    }  # fmt: skip
    return common_wrong(problem)


def layer_norm(n: int) -> Problem:
    module = nn.LayerNorm(16 * n)
    with torch.no_grad():
        module.weight.normal_(1.0, 0.3)
        module.bias.normal_(0.0, 0.3)
    problem = Problem("layer_norm fp32", module, lambda: [torch.randn(n, 16 * n)])

    def normed(m: Any, x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
        return (x - mean) / torch.sqrt(variance + eps) * m.weight + m.bias

    def two_pass(x: torch.Tensor, total: Kernel) -> tuple[torch.Tensor, torch.Tensor]:
        mean = total(x)[:, None] / x.shape[1]
        return mean, total((x - mean) ** 2)[:, None] / x.shape[1]

    def one_pass(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean = x.mean(1, keepdim=True)
        return mean, (x * x).mean(1, keepdim=True) - mean * mean

    def rsqrt_form(m: Any, x: torch.Tensor) -> torch.Tensor:
        mean, variance = two_pass(x, lambda t: t.sum(1))
        scale = torch.rsqrt(variance + 1e-5) * m.weight
        return x * scale + (m.bias - mean * scale)

    problem.right = {
        "two passes, serial": lambda m, x: normed(m, x, *two_pass(x, sum_serial)),
        "two passes, strided": lambda m, x: normed(m, x, *two_pass(x, lambda t: sum_strided(t, 64))),
        "one pass": lambda m, x: normed(m, x, *one_pass(x)),
        "multiply-add": rsqrt_form,
        "float64 inside": lambda m, x: F.layer_norm(
            x.double(), x.shape[1:], m.weight.double(), m.bias.double()).float(),
    }  # fmt: skip
    problem.wrong = {
        "unbiased variance": lambda m, x: normed(m, x, x.mean(1, True), x.var(1, keepdim=True)),
        "no epsilon": lambda m, x: normed(m, x, x.mean(1, True), x.var(1, keepdim=True, correction=0), 0.0),
        "no mean": lambda m, x: normed(m, x, torch.zeros(1, 1), x.var(1, keepdim=True, correction=0)),
        "no bias": lambda m, x: m(x) - m.bias,
        "bf16 statistics": lambda m, x: normed(
            m, x, x.mean(1, True), x.var(1, keepdim=True, correction=0).bfloat16().float()),
        "half the row": lambda m, x: normed(m, x, *two_pass(x[:, : x.shape[1] // 2], lambda t: t.sum(1))),
        "fp16 result": lambda m, x: m(x).half().float(),
        "over the batch": lambda m, x: normed(m, x, x.mean(0, True), x.var(0, keepdim=True, correction=0)),
    }  # fmt: skip
    return common_wrong(problem)


def batch_norm(n: int) -> Problem:
    module = nn.BatchNorm2d(16)
    problem = Problem("batch_norm fp32, training", module, lambda: [torch.randn(n // 4, 16, 8, 8) * 3 + 1])

    def normed(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return (x - mean[:, None, None]) * torch.rsqrt(variance[:, None, None] + 1e-5)

    def statistics(x: torch.Tensor, total: Kernel) -> tuple[torch.Tensor, torch.Tensor]:
        flat = x.transpose(0, 1).flatten(1)
        mean = total(flat) / flat.shape[1]
        return mean, total((flat - mean[:, None]) ** 2) / flat.shape[1]

    problem.right = {
        "serial sums": lambda m, x: normed(x, *statistics(x, sum_serial)),
        "blocks of 64": lambda m, x: normed(x, *statistics(x, lambda t: sum_blocked(t, 64))),
        "strided": lambda m, x: normed(x, *statistics(x, lambda t: sum_strided(t, 32))),
    }
    problem.wrong = {
        "eval mode": lambda m, x: normed(x, torch.zeros(16), torch.ones(16)),
        "unbiased variance": lambda m, x: normed(x, x.mean((0, 2, 3)), x.var((0, 2, 3))),
        "statistics of half the batch": lambda m, x: normed(x, *statistics(x[::2], lambda t: t.sum(1))),
        "each entry by itself": lambda m, x: F.instance_norm(x),
        "TF32 data": lambda m, x: m(tf32(x)),
    }
    return common_wrong(problem)


class GemmTail(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.linear, self.bn, self.scale = nn.Linear(n, n), nn.BatchNorm1d(n), nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.scale * self.bn(self.linear(x)), 1)


def gemm_tail(n: int) -> Problem:
    problem = Problem("gemm_batchnorm_scale_softmax", GemmTail(8 * n), lambda: [torch.randn(2 * n, 8 * n)])

    def tail(m: Any, y: torch.Tensor) -> torch.Tensor:
        mean, variance = y.mean(0), y.var(0, correction=0)
        y = (y - mean) * torch.rsqrt(variance + 1e-5) * m.scale
        return torch.softmax(y, 1)

    def linear(m: Any, x: torch.Tensor, product: Kernel) -> torch.Tensor:
        return product(x, m.linear.weight.T) + m.linear.bias

    problem.right = {
        "composed": lambda m, x: tail(m, m.linear(x)),
        "running sums": lambda m, x: tail(m, linear(m, x, lambda a, b: product_serial(a, b, 8))),
        "three TF32 products": lambda m, x: tail(m, linear(m, x, lambda a, b: product_split(a, b, tf32))),
        "three fp16 products": lambda m, x: tail(m, linear(m, x, product_split_fp16)),
        "bias left out, as BatchNorm removes it": lambda m, x: tail(m, x @ m.linear.weight.T),
    }
    problem.wrong = {
        "TF32": lambda m, x: tail(m, linear(m, x, lambda a, b: tf32(a) @ tf32(b))),
        "bf16": lambda m, x: tail(m, linear(m, x.bfloat16(), lambda a, b: (a @ b.bfloat16()).float())),
        "eval mode": lambda m, x: torch.softmax(m.linear(x) / math.sqrt(1 + 1e-5), 1),
        "softmax over the batch": lambda m, x: torch.softmax(m.bn(m.linear(x)), 0),
        "uniform": lambda m, x: torch.full_like(x, 1 / x.shape[1]),
        "last rows uniform": lambda m, x: with_rows(m(x), slice(-2, None), 1 / x.shape[1]),
    }
    return common_wrong(problem)


def attention_flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tile: int, stored: torch.dtype) -> torch.Tensor:
    """Tiles of keys, running maximum, float32 accumulators, probabilities stored in `stored` for the second product."""
    scale = 1 / math.sqrt(q.shape[-1])
    top = torch.full((*q.shape[:-1], 1), -math.inf)
    total, out = torch.zeros_like(top), torch.zeros(q.shape)
    for keys, values in zip(k.split(tile, -2), v.split(tile, -2), strict=True):
        scores = q.float() @ keys.float().transpose(-1, -2) * scale
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        p = torch.exp(scores - higher)
        fade = torch.exp(top - higher)
        total = total * fade + p.sum(-1, keepdim=True)
        out = out * fade + p.to(stored).float() @ values.float()
        top = higher
    return (out / total).to(q.dtype)


def attention(n: int, dtype: torch.dtype, uniform: bool) -> Problem:
    name = f"sdpa {str(dtype).removeprefix('torch.')}{', inputs in [0, 1)' if uniform else ''}"
    draw = torch.rand if uniform else torch.randn

    def inputs() -> list[Any]:
        return [draw(2, 2, 2 * n, n).to(dtype) for _ in range(3)]

    def composed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1])), -1) @ v

    problem = Problem(name, Lambda(F.scaled_dot_product_attention), inputs)
    problem.right = {
        "composed": lambda m, q, k, v: composed(q, k, v),
        "queries scaled first": lambda m, q, k, v: composed(q / math.sqrt(q.shape[-1]), k, v, 1.0),
        "tiles, online": lambda m, q, k, v: attention_flash(q, k, v, 16, torch.float32),
        "tiles, stored as the input": lambda m, q, k, v: attention_flash(q, k, v, 32, dtype),
        "float32 inside": lambda m, q, k, v: composed(q.float(), k.float(), v.float()).to(dtype),
    }
    problem.wrong = {
        "mean of V": lambda m, q, k, v: v.float().mean(2, keepdim=True).expand_as(q).to(dtype).clone(),
        "no scale": lambda m, q, k, v: composed(q, k, v, 1.0),
        "scale 1/D": lambda m, q, k, v: composed(q, k, v, 1 / q.shape[-1]),
        "bf16" if dtype != torch.bfloat16 else "fp8": lambda m, q, k, v: (
            composed(q.bfloat16(), k.bfloat16(), v.bfloat16()) if dtype != torch.bfloat16
            else composed(*(round_to(t, FLOAT8) for t in (q, k, v)))).to(dtype),
        "last key dropped": lambda m, q, k, v: composed(q, k[:, :, :-1], v[:, :, :-1]),
        "softmax over queries": lambda m, q, k, v: torch.softmax(
            q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -2) @ v,
        "first head for all": lambda m, q, k, v: m(q, k, v)[:, :1].expand_as(q).clone(),
        "one value of D": lambda m, q, k, v: m(q, k, v)[..., :1].expand_as(q).clone(),
    }  # fmt: skip
    return common_wrong(problem)


def reductions(n: int) -> Iterator[Problem]:
    length = 128 * n
    problem = Problem("sum fp32, normal", Lambda(lambda x: x.sum(-1)), lambda: [torch.randn(2 * n, length)])
    problem.right = {
        "running sum": lambda m, x: sum_serial(x),
        "blocks of 256": lambda m, x: sum_blocked(x, 256),
        "128 threads": lambda m, x: sum_strided(x, 128),
        "backwards": lambda m, x: sum_serial(x.flip(-1)),
        "float64": lambda m, x: x.double().sum(-1).float(),
    }
    problem.wrong = {
        "TF32 terms": lambda m, x: tf32(x).sum(-1),
        "bf16 terms": lambda m, x: x.bfloat16().float().sum(-1),
        "fp16 accumulator": lambda m, x: sum_in(x, torch.float16),
        "last dropped": lambda m, x: x[:, :-1].sum(-1),
        "mean": lambda m, x: x.mean(-1),
        "last output unwritten": lambda m, x: with_last(x.sum(-1), 1),
    }
    yield common_wrong(problem)

    problem = Problem("sum fp32, uniform", Lambda(lambda x: x.sum(-1)), lambda: [torch.rand(2 * n, length)])
    problem.right = {
        "running sum": lambda m, x: sum_serial(x),
        "blocks of 256": lambda m, x: sum_blocked(x, 256),
        "128 threads": lambda m, x: sum_strided(x, 128),
    }
    problem.wrong = {
        "TF32 terms": lambda m, x: tf32(x).sum(-1),
        "bf16 terms": lambda m, x: x.bfloat16().float().sum(-1),
        "fp16 accumulator": lambda m, x: sum_in(x, torch.float16),
        "half the length": lambda m, x: torch.full_like(x[:, 0], x.shape[1] / 2),
        "last dropped": lambda m, x: x[:, :-1].sum(-1),
    }
    yield problem

    problem = Problem("mean of all, one number", Lambda(torch.mean), lambda: [torch.rand(n, length)])
    problem.right = {
        "running sums": lambda m, x: sum_serial(sum_serial(x)) / x.numel(),
        "threads": lambda m, x: sum_strided(sum_strided(x, 64), 64) / x.numel(),
        "mean of means": lambda m, x: x.mean(-1).mean(),
    }
    problem.wrong = {
        "a half": lambda m, x: torch.tensor(0.5),
        "bf16": lambda m, x: x.bfloat16().mean().float(),
        "sum": lambda m, x: x.sum(),
        "every second row": lambda m, x: x[::2].mean(),
        "one per cent more": lambda m, x: x.mean() * 1.01,
        "one-element tensor": lambda m, x: x.mean().reshape(1),
    }
    yield problem

    problem = Problem("max with indices", Lambda(lambda x: tuple(torch.max(x, 1))), lambda: [torch.randn(n, n, 8)])
    problem.right = {
        "argmax and gather": lambda m, x: (x.amax(1), x.argmax(1)),
        "a list, not a tuple": lambda m, x: list(torch.max(x, 1)),
        "from the end": lambda m, x: (x.amax(1), x.shape[1] - 1 - x.flip(1).argmax(1)),
    }
    problem.wrong = {
        "min": lambda m, x: tuple(torch.min(x, 1)),
        "index off by one": lambda m, x: (x.amax(1), (x.argmax(1) + 1) % x.shape[1]),
        "bf16 comparison": lambda m, x: (x.amax(1), x.bfloat16().argmax(1)),
        "int32 indices": lambda m, x: (x.amax(1), x.argmax(1).int()),
        "values only": lambda m, x: x.amax(1),
        "maximum from zero": lambda m, x: (x.amax(1).clamp_min(0), x.argmax(1)),
    }
    yield problem

    problem = Problem("argmax of scores", Lambda(lambda x, w: (x @ w).argmax(1)),
                      lambda: [torch.randn(8 * n, n), torch.randn(n, 2 * n)])  # fmt: skip
    problem.right = {
        "running sums": lambda m, x, w: product_serial(x, w).argmax(1),
        "float64": lambda m, x, w: (x.double() @ w.double()).argmax(1),
    }
    problem.wrong = {
        "bf16 scores": lambda m, x, w: (x.bfloat16() @ w.bfloat16()).argmax(1),
        "first column": lambda m, x, w: (x @ w).argmax(1) * 0,
        "without the last class": lambda m, x, w: (x @ w)[:, :-1].argmax(1),
    }
    yield problem

    problem = Problem("cumsum fp32", Lambda(lambda x: x.cumsum(1)), lambda: [torch.randn(n, 8 * n)])

    def scan(x: torch.Tensor, block: int) -> torch.Tensor:
        parts = [part.cumsum(1) for part in x.split(block, 1)]
        offsets = torch.stack([part[:, -1] for part in parts], 1).cumsum(1)
        return torch.cat([parts[0], *(part + offsets[:, i, None] for i, part in enumerate(parts[1:]))], 1)

    def doubling(x: torch.Tensor) -> torch.Tensor:
        step = 1
        while step < x.shape[1]:
            x = x + F.pad(x, (step, 0))[:, : x.shape[1]]
            step *= 2
        return x

    problem.right = {
        "blocks of 64": lambda m, x: scan(x, 64),
        "doubling": lambda m, x: doubling(x),
        "float64": lambda m, x: x.double().cumsum(1).float(),
    }
    problem.wrong = {
        "exclusive": lambda m, x: x.cumsum(1) - x,
        "restarts each tile": lambda m, x: torch.cat([part.cumsum(1) for part in x.split(64, 1)], 1),
        "fp16": lambda m, x: x.half().cumsum(1).float(),
        "over rows": lambda m, x: x.cumsum(0),
    }
    yield common_wrong(problem)

    problem = Problem("variance", Lambda(lambda x: x.var(1)), lambda: [torch.randn(4 * n, 8 * n) * 2 + 1])
    problem.right = {
        "two passes": lambda m, x: sum_serial((x - x.mean(1, True)) ** 2) / (x.shape[1] - 1),
        "one pass": lambda m, x: ((x * x).sum(1) - x.sum(1) ** 2 / x.shape[1]) / (x.shape[1] - 1),
    }
    problem.wrong = {
        "biased": lambda m, x: x.var(1, correction=0),
        "deviation": lambda m, x: x.std(1),
        "fp16": lambda m, x: x.half().var(1).float(),
        "TF32": lambda m, x: tf32(x).var(1),
    }
    yield problem


def elementwise(n: int) -> Iterator[Problem]:
    problem = Problem("relu fp32", Lambda(torch.relu), lambda: [torch.randn(n, 16 * n)])
    problem.right = {
        "maximum": lambda m, x: torch.maximum(x, torch.zeros(())),
        "times a mask": lambda m, x: x * (x > 0),
        "half of x and |x|": lambda m, x: (x + x.abs()) * 0.5,
    }
    problem.wrong = {
        "the input": lambda m, x: x.clone(),
        "absolute": lambda m, x: x.abs(),
        "leaky": lambda m, x: F.leaky_relu(x, 0.001),
        "TF32": lambda m, x: tf32(x).relu(),
        "bf16": lambda m, x: x.bfloat16().relu().float(),
        "tail unwritten": lambda m, x: with_last(x.relu(), 3, 1.0),
        "one element off": lambda m, x: one_off(x.relu(), 0.01),
        "clipped at 6": lambda m, x: F.relu6(x),
        "wrong shape": lambda m, x: x.relu().flatten(),
    }
    yield common_wrong(problem)

    problem = Problem("gelu fp32", Lambda(F.gelu), lambda: [torch.randn(n, 16 * n)])
    problem.right = {
        "erf": lambda m, x: 0.5 * x * (1 + torch.erf(x * 0.70710678)),
        "erfc": lambda m, x: 0.5 * x * torch.erfc(-x * 0.70710678),
        "normal distribution": lambda m, x: x * torch.special.ndtr(x),
    }
    problem.wrong = {
        "tanh form": lambda m, x: F.gelu(x, approximate="tanh"),
        "sigmoid form": lambda m, x: x * torch.sigmoid(1.702 * x),
        "relu": lambda m, x: x.relu(),
        "fp16": lambda m, x: F.gelu(x.half()).float(),
    }
    yield common_wrong(problem)

    problem = Problem("gelu fp16", Lambda(F.gelu), lambda: [torch.randn(n, 16 * n).half()])
    problem.right = {
        "fp32 inside": lambda m, x: (0.5 * x.float() * (1 + torch.erf(x.float() * 0.70710678))).half(),
        "composed in fp16": lambda m, x: 0.5 * x * (1 + torch.erf(x * 0.70710678)),
    }
    problem.wrong = {
        "bf16": lambda m, x: F.gelu(x.bfloat16()).half(),
        "bf16 result": lambda m, x: F.gelu(x.float()).bfloat16().half(),
        "sigmoid form": lambda m, x: x * torch.sigmoid(1.702 * x),
    }
    yield common_wrong(problem)

    problem = Problem("swish fp32", Lambda(lambda x: x * torch.sigmoid(x)), lambda: [torch.rand(n, 16 * n)])
    problem.right = {
        "by division": lambda m, x: x / (1 + torch.exp(-x)),
        "fast exp": lambda m, x: x / (1 + exp_fast(-x)),
        "tanh": lambda m, x: 0.5 * x * (1 + torch.tanh(0.5 * x)),
    }
    problem.wrong = {
        "two thirds of x": lambda m, x: x * 0.65,
        "hard": lambda m, x: F.hardswish(x),
        "positive inputs assumed": lambda m, x: x * torch.sigmoid(x.abs()),
        "bf16 sigmoid": lambda m, x: x * torch.sigmoid(x.bfloat16()).float(),
    }
    yield common_wrong(problem)


def pooling(n: int) -> Iterator[Problem]:
    problem = Problem("max_pool2d", Lambda(lambda x: F.max_pool2d(x, 3, 2, 1)), lambda: [torch.randn(4, n, 17, 17)])
    problem.right = {
        "windows": lambda m, x: F.pad(x, (1, 1, 1, 1), value=-math.inf).unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2)),
        "rows, then columns": lambda m, x: F.max_pool2d(
            F.max_pool2d(x, (3, 1), (2, 1), (1, 0)), (1, 3), (1, 2), (0, 1)
        ),
    }
    problem.wrong = {
        "padded with zeros": lambda m, x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2),
        "average": lambda m, x: F.avg_pool2d(x, 3, 2, 1),
        "window of two": lambda m, x: F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=-math.inf), 2, 2),
        "bf16": lambda m, x: m(x.bfloat16()).float(),
        "last row unwritten": lambda m, x: torch.cat([m(x)[:, :, :-1], m(x)[:, :, -1:] * 0], 2),
    }
    yield common_wrong(problem)

    problem = Problem("avg_pool2d", Lambda(lambda x: F.avg_pool2d(x, 4)), lambda: [torch.rand(4, n, 32, 32)])
    problem.right = {
        "serial": lambda m, x: sum_serial(x.unfold(2, 4, 4).unfold(3, 4, 4).flatten(-2)) / 16,
        "rows, then columns": lambda m, x: F.avg_pool2d(F.avg_pool2d(x, (4, 1)), (1, 4)),
        "times the reciprocal": lambda m, x: x.unfold(2, 4, 4).unfold(3, 4, 4).sum((-1, -2)) * 0.0625,
    }
    problem.wrong = {
        "a half": lambda m, x: torch.full_like(m(x), 0.5),
        "fifteen of sixteen": lambda m, x: x.unfold(2, 4, 4).unfold(3, 4, 4).flatten(-2)[..., :15].mean(-1),
        "max": lambda m, x: F.max_pool2d(x, 4),
        "TF32": lambda m, x: m(tf32(x)),
    }
    yield common_wrong(problem)


def losses(n: int) -> Iterator[Problem]:
    problem = Problem("cross_entropy", Lambda(F.cross_entropy),
                      lambda: [torch.randn(16 * n, 4 * n), torch.randint(4 * n, (16 * n,))])  # fmt: skip

    def each(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(x, 1) - x.gather(1, y[:, None])[:, 0]

    def by_hand(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        top = x.amax(1, keepdim=True)
        return top[:, 0] + torch.log(sum_serial(torch.exp(x - top))) - x.gather(1, y[:, None])[:, 0]

    problem.right = {
        "log-sum-exp": lambda m, x, y: each(x, y).mean(),
        "serial": lambda m, x, y: sum_serial(by_hand(x, y)) / len(y),
        "blocks": lambda m, x, y: sum_blocked(each(x, y), 32) / len(y),
    }
    problem.wrong = {
        "log of the number of classes": lambda m, x, y: torch.tensor(math.log(x.shape[1])),
        "sum": lambda m, x, y: each(x, y).sum(),
        "last sample missing": lambda m, x, y: each(x, y)[:-1].sum() / len(y),
        "label ignored": lambda m, x, y: (torch.logsumexp(x, 1) - x[:, 0]).mean(),
        "bf16 logits": lambda m, x, y: each(x.bfloat16().float(), y).mean(),
        "no maximum subtracted": lambda m, x, y: (
            torch.log(torch.exp(x).sum(1)) - x.gather(1, y[:, None])[:, 0]
        ).mean(),
        "fp16": lambda m, x, y: each(x.half(), y).mean().float(),
    }
    yield problem

    problem = Problem("mse, one number", Lambda(F.mse_loss), lambda: [torch.rand(n, 64 * n), torch.rand(n, 64 * n)])
    problem.right = {
        "serial": lambda m, x, y: sum_serial(sum_serial((x - y) ** 2)) / x.numel(),
        "threads": lambda m, x, y: sum_strided(sum_strided((x - y) ** 2, 64), 32) / x.numel(),
    }
    problem.wrong = {
        "one sixth": lambda m, x, y: torch.tensor(1 / 6),
        "absolute": lambda m, x, y: (x - y).abs().mean(),
        "bf16": lambda m, x, y: ((x.bfloat16() - y.bfloat16()) ** 2).float().mean(),
    }
    yield problem


def of_strands(x: torch.Tensor, count: int, kept: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest `k`, and where, of the `kept` largest of each of `count` strands of a row."""
    values, steps = x.unflatten(1, (-1, count)).topk(kept, 1)
    best, at = values.flatten(1).topk(k, 1)
    return best, (steps * count + torch.arange(count)).flatten(1).gather(1, at)


def lookups(n: int) -> Iterator[Problem]:
    module = nn.Embedding(32 * n, n)
    problem = Problem("embedding", module, lambda: [torch.randint(32 * n, (4, 8 * n))])
    problem.right = {
        "gather": lambda m, i: m.weight.gather(0, i.flatten()[:, None].expand(-1, n)).view(*i.shape, n),
        "one-hot product": lambda m, i: F.one_hot(i, 32 * n).float() @ m.weight,
    }
    problem.wrong = {
        "next row": lambda m, i: m.weight[(i + 1) % (32 * n)],
        "bf16 table": lambda m, i: m.weight.bfloat16().float()[i],
        "TF32 table": lambda m, i: tf32(m.weight)[i],
        "row 0 zeroed": lambda m, i: m.weight[i] * (i > 8)[..., None],
        "transposed batch": lambda m, i: m.weight[i.roll(1, 0)],
    }
    yield common_wrong(problem)

    problem = Problem("topk", Lambda(lambda x: torch.topk(x, 5, 1)), lambda: [torch.randn(4 * n, 8 * n).half()])
    problem.right = {
        "sort": lambda m, x: tuple(t[:, :5] for t in torch.sort(x, 1, descending=True)),
        "ties from the end": lambda m, x: tuple(
            t if i == 0 else x.shape[1] - 1 - t for i, t in enumerate(torch.topk(x.flip(1), 5, 1))),
        "five of each strand": lambda m, x: of_strands(x, n, 5, 5),
    }  # fmt: skip
    problem.wrong = {
        "smallest": lambda m, x: torch.topk(x, 5, 1, largest=False),
        "ascending": lambda m, x: tuple(t.flip(1) for t in torch.topk(x, 5, 1)),
        "second five": lambda m, x: tuple(t[:, 5:] for t in torch.topk(x, 10, 1)),
        "four": lambda m, x: torch.topk(x, 4, 1),
        "first index repeated": lambda m, x: (
            torch.topk(x, 5, 1).values,
            torch.topk(x, 5, 1).indices[:, :1].expand(-1, 5),
        ),
        "of the first half": lambda m, x: torch.topk(x[:, : x.shape[1] // 2], 5, 1),
        "three of each strand": lambda m, x: of_strands(x, n, 3, 5),
    }
    yield problem

    problem = Problem("sort", Lambda(lambda x: torch.sort(x, -1)), lambda: [torch.randn(n, 8 * n)])
    problem.right = {"topk": lambda m, x: tuple(torch.topk(x, x.shape[-1], -1, largest=False))}
    problem.wrong = {
        "unsorted": lambda m, x: (x.clone(), torch.arange(x.shape[-1]).expand_as(x)),
        "descending": lambda m, x: torch.sort(x, -1, descending=True),
        "by tiles": lambda m, x: (torch.cat([p.sort(-1).values for p in x.split(64, -1)], -1), x.argsort(-1)),
        "wrong indices": lambda m, x: (x.sort(-1).values, x.argsort(-1).roll(1, -1)),
    }
    yield problem


class Layers(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(n, 4 * n), nn.Linear(4 * n, n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def networks(n: int) -> Iterator[Problem]:
    problem = Problem("two layers bf16", Layers(2 * n).bfloat16(), lambda: [torch.randn(2 * n, 2 * n).bfloat16()])

    def in_float(m: Any, x: torch.Tensor) -> torch.Tensor:
        hidden = F.linear(x.float(), m.first.weight.float(), m.first.bias.float()).relu()
        return F.linear(hidden, m.second.weight.float(), m.second.bias.float()).bfloat16()

    def bias_apart(m: Any, x: torch.Tensor) -> torch.Tensor:
        return (x @ m.first.weight.T + m.first.bias).relu() @ m.second.weight.T + m.second.bias

    problem.right = {"float32 inside": in_float, "biases added apart": bias_apart}
    problem.wrong = {
        "fp8 weights": lambda m, x: F.linear(
            F.linear(x, round_to(m.first.weight, FLOAT8), m.first.bias).relu(), m.second.weight, m.second.bias),
        "fp8 hidden": lambda m, x: m.second(round_to(m.first(x).relu(), FLOAT8)),
        "no bias": lambda m, x: F.linear(m.first(x).relu(), m.second.weight),
        "no relu": lambda m, x: m.second(m.first(x)),
    }  # fmt: skip
    yield common_wrong(problem)

    problem = Problem("two layers fp32", Layers(4 * n), lambda: [torch.randn(2 * n, 4 * n)])
    problem.right = {
        "running sums": lambda m, x: product_serial(
            (product_serial(x, m.first.weight.T, 4) + m.first.bias).relu(), m.second.weight.T, 4) + m.second.bias,
    }  # fmt: skip
    problem.wrong = {
        "first layer TF32": lambda m, x: m.second(
            F.linear(tf32(x), tf32(m.first.weight), m.first.bias).relu()),
        "fp16 hidden": lambda m, x: m.second(m.first(x).relu().half().float()),
        "bf16": lambda m, x: F.linear(F.linear(x.bfloat16(), m.first.weight.bfloat16(), m.first.bias.bfloat16()).relu(),
                                      m.second.weight.bfloat16(), m.second.bias.bfloat16()).float(),
    }  # fmt: skip
    yield common_wrong(problem)

    problem = Problem("rms_norm fp16", nn.RMSNorm(16 * n, eps=1e-6).half(), lambda: [torch.randn(n, 16 * n).half()])
    problem.right = {
        "float32 inside": lambda m, x: (
            x.float() * torch.rsqrt(x.float().square().mean(-1, True) + 1e-6)).half() * m.weight,
        "composed": lambda m, x: x * torch.rsqrt(x.float().square().mean(-1, True) + 1e-6).half(),
    }  # fmt: skip
    problem.wrong = {
        "fp16 accumulator": lambda m, x: (
            x.float() * torch.rsqrt(sum_in(x.float() ** 2, torch.float16)[:, None] / x.shape[1])).half(),
        "bf16": lambda m, x: m.weight.bfloat16().mul(x.bfloat16()).mul(
            torch.rsqrt(x.bfloat16().float().square().mean(-1, True)).bfloat16()).half(),
        "of the whole": lambda m, x: (x.float() * torch.rsqrt(x.float().square().mean())).half(),
        "l1": lambda m, x: (x.float() / x.float().abs().mean(-1, True)).half(),
    }  # fmt: skip
    yield common_wrong(problem)


def activations(n: int) -> Iterator[Problem]:
    """What kernels write in exponentials, and the cheaper functions that are not these."""

    def draw() -> list[Any]:
        return [torch.randn(n, 16 * n)]

    def below_20(x: torch.Tensor, function: Kernel) -> torch.Tensor:
        return torch.where(x > 20, x, function(torch.exp(x.clamp_max(20))))

    problem = Problem("softplus", Lambda(F.softplus), draw)
    problem.right = {
        "stable": lambda m, x: torch.log1p(torch.exp(-x.abs())) + x.clamp_min(0),
        "log of one more": lambda m, x: below_20(x, lambda e: torch.log(1 + e)),
        "log1p": lambda m, x: below_20(x, torch.log1p),
    }
    problem.wrong = {
        "overflows": lambda m, x: torch.log(1 + torch.exp(x)),
        "relu": lambda m, x: x.relu(),
        "bf16": lambda m, x: F.softplus(x.bfloat16()).float(),
    }
    yield common_wrong(problem)

    for name, function, scale, alpha in (
        ("elu", F.elu, 1.0, 1.0),
        ("selu", F.selu, 1.0507009873554805, 1.6732632423543772),
    ):
        problem = Problem(name, Lambda(function), draw)
        problem.right = {
            "expm1": lambda m, x, s=scale, a=alpha: s * torch.where(x > 0, x, a * torch.expm1(x)),
            "exp less one": lambda m, x, s=scale, a=alpha: s * torch.where(x > 0, x, a * (torch.exp(x) - 1)),
        }
        problem.wrong = {
            "leaky": lambda m, x: F.leaky_relu(x, 0.4),
            "first terms": lambda m, x, s=scale, a=alpha: s * torch.where(x > 0, x, a * (x + x * x / 2)),
            "fp16": lambda m, x, f=function: f(x.half()).float(),
        }
        yield common_wrong(problem)

    problem = Problem("tanh", Lambda(torch.tanh), draw)
    problem.right = {
        "by exponentials": lambda m, x: x.sign() * (1 - torch.exp(-2 * x.abs())) / (1 + torch.exp(-2 * x.abs())),
        "by a sigmoid": lambda m, x: 2 * torch.sigmoid(2 * x) - 1,
    }
    problem.wrong = {
        "softsign": lambda m, x: F.softsign(x),
        "clipped": lambda m, x: x.clamp(-1, 1),
        "overflows": lambda m, x: (torch.exp(2 * x) - 1) / (torch.exp(2 * x) + 1),
        "bf16": lambda m, x: torch.tanh(x.bfloat16()).float(),
    }
    yield common_wrong(problem)

    problem = Problem("mish", Lambda(F.mish), draw)
    problem.right = {
        "a ratio": lambda m, x: (lambda e: x * (e * e + 2 * e) / (e * e + 2 * e + 2))(torch.exp(x.clamp_max(20))),
        "composed": lambda m, x: x * torch.tanh(torch.log1p(torch.exp(x.clamp_max(30)))),
    }
    problem.wrong = {
        "swish": lambda m, x: F.silu(x),
        "overflows": lambda m, x: (lambda e: x * (e * e + 2 * e) / (e * e + 2 * e + 2))(torch.exp(x)),
        "fp16": lambda m, x: F.mish(x.half()).float(),
    }
    yield common_wrong(problem)

    problem = Problem("log_softmax", Lambda(lambda x: F.log_softmax(x, -1)), draw)

    def below_maximum(x: torch.Tensor) -> torch.Tensor:
        return x - x.amax(-1, keepdim=True)

    problem.right = {
        "less log-sum-exp": lambda m, x: x - torch.logsumexp(x, -1, keepdim=True),
        "serial": lambda m, x: below_maximum(x) - torch.log(sum_serial(below_maximum(x).exp()))[:, None],
        "fast exp": lambda m, x: below_maximum(x) - torch.log(exp_fast(below_maximum(x)).sum(-1, keepdim=True)),
    }
    problem.wrong = {
        "log of softmax": lambda m, x: torch.log(torch.softmax(x, -1).clamp_min(1e-38)),
        "no maximum subtracted": lambda m, x: x - torch.log(torch.exp(x).sum(-1, keepdim=True)),
        "wrong axis": lambda m, x: F.log_softmax(x, 0),
        "bf16": lambda m, x: F.log_softmax(x.bfloat16(), -1).float(),
    }
    yield common_wrong(problem)


def norms(n: int) -> Iterator[Problem]:
    problem = Problem("l2 norm", Lambda(lambda x: x / x.norm(dim=1, keepdim=True)), lambda: [torch.randn(n, 16 * n)])
    problem.right = {
        "rsqrt": lambda m, x: x * torch.rsqrt(sum_serial(x * x))[:, None],
        "1e-12 for safety": lambda m, x: x / (x.norm(dim=1, keepdim=True) + 1e-12),
    }
    problem.wrong = {
        "l1": lambda m, x: x / x.abs().sum(1, keepdim=True),
        "of the whole": lambda m, x: x / x.norm(),
        "0.01 for safety": lambda m, x: x / (x.norm(dim=1, keepdim=True) + 0.01),
        "fp16 sum": lambda m, x: x * torch.rsqrt(sum_in(x * x, torch.float16).float())[:, None],
    }
    yield common_wrong(problem)

    groups = nn.GroupNorm(8, n)

    def one_pass(m: Any, x: torch.Tensor, count: int, correction: float = 0.0) -> torch.Tensor:
        grouped = x.reshape(x.shape[0], count, -1)
        mean = grouped.mean(-1, keepdim=True)
        variance = (grouped * grouped).mean(-1, keepdim=True) - mean * mean
        variance = variance * (1 + correction)
        normed = ((grouped - mean) * torch.rsqrt(variance + 1e-5)).reshape(x.shape)
        return normed * m.weight[:, None, None] + m.bias[:, None, None]

    problem = Problem("group_norm", groups, lambda: [torch.randn(4, n, 8, 8)])
    problem.right = {"one pass": lambda m, x: one_pass(m, x, 8)}
    problem.wrong = {
        "each channel": lambda m, x: one_pass(m, x, n),
        "half the groups": lambda m, x: one_pass(m, x, 4),
        "unbiased": lambda m, x: one_pass(m, x, 8, 1 / (n * 8)),
        "fp16": lambda m, x: one_pass(m, x.half().float(), 8),
    }
    yield common_wrong(problem)


def distances(n: int) -> Iterator[Problem]:
    def pair() -> list[Any]:
        return [torch.randn(4 * n, 8 * n), torch.randn(4 * n, 8 * n)]

    def cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        lengths = [torch.sqrt(sum_serial(x * x)).clamp_min(1e-8) for x in (a, b)]
        return sum_serial(a * b) / (lengths[0] * lengths[1])

    def by_rsqrt(a: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
        return (a * b).sum(1) * torch.rsqrt((a * a).sum(1).clamp_min(eps) * (b * b).sum(1).clamp_min(eps))

    problem = Problem("cosine distance", Lambda(lambda a, b: 1 - F.cosine_similarity(a, b)), pair)
    problem.right = {
        "serial": lambda m, a, b: 1 - cosine(a, b),
        "rsqrt": lambda m, a, b: 1 - by_rsqrt(a, b, 1e-16),
    }
    problem.wrong = {
        "without eps": lambda m, a, b: 1 - by_rsqrt(a, b, 0.0),
        "similarity": lambda m, a, b: cosine(a, b),
        "unnormalised": lambda m, a, b: 1 - (a * b).sum(1) / a.shape[1],
        "TF32": lambda m, a, b: 1 - F.cosine_similarity(tf32(a), tf32(b)),
    }
    yield common_wrong(problem)

    direct = "donot_use_mm_for_euclid_dist"
    problem = Problem("cdist", Lambda(lambda a, b: torch.cdist(a, b, compute_mode=direct)),
                      lambda: [torch.randn(n, 2 * n), torch.randn(n, 2 * n)])  # fmt: skip

    def by_product(a: torch.Tensor, b: torch.Tensor, product: Kernel) -> torch.Tensor:
        squares = (a * a).sum(1)[:, None] + (b * b).sum(1)
        return torch.sqrt((squares - 2 * product(a, b.T)).clamp_min(0))

    problem.right = {"by a product": lambda m, a, b: by_product(a, b, torch.matmul)}
    problem.wrong = {
        "by a TF32 product": lambda m, a, b: by_product(a, b, lambda x, y: tf32(x) @ tf32(y)),
        "squared": lambda m, a, b: torch.cdist(a, b) ** 2,
        "l1": lambda m, a, b: torch.cdist(a, b, p=1.0),
    }
    yield common_wrong(problem)


def far_out(n: int) -> Iterator[Problem]:
    """What holds for ordinary numbers and no further, beside limits that are where the format's own are."""

    def uniform() -> list[Any]:
        return [torch.rand(n, 16 * n)]

    def cut(function: Kernel, below: float) -> Kernel:
        return lambda m, x: torch.where(x < below, 0.0, function(x))

    problem = Problem("swish, cut off", Lambda(F.silu), uniform)
    problem.right = {
        "by division": lambda m, x: x / (1 + torch.exp(-x)),
        "fast exp": lambda m, x: x / (1 + exp_fast(-x)),
        "zero below -90": cut(F.silu, -90.0),
        "x above 40": lambda m, x: torch.where(x > 40, x, F.silu(x)),
    }
    problem.wrong = {
        "zero below -6": cut(F.silu, -6.0),
        "zero below -10": cut(F.silu, -10.0),
        "x above 10": lambda m, x: torch.where(x > 10, x, F.silu(x)),
        "zero below 0": cut(F.silu, 0.0),
    }
    yield common_wrong(problem)

    problem = Problem("gelu, cut off", Lambda(F.gelu), uniform)
    problem.right = {
        "erf": lambda m, x: 0.5 * x * (1 + torch.erf(x * 0.70710678)),
        "zero below -8": cut(F.gelu, -8.0),
        "x above 6": lambda m, x: torch.where(x > 6, x, F.gelu(x)),
    }
    problem.wrong = {
        "zero below -3": cut(F.gelu, -3.0),
        "x above 3": lambda m, x: torch.where(x > 3, x, F.gelu(x)),
    }
    yield common_wrong(problem)

    problem = Problem("sigmoid, cut off", Lambda(torch.sigmoid), uniform)
    problem.right = {
        "by division": lambda m, x: 1 / (1 + torch.exp(-x)),
        "tanh": lambda m, x: 0.5 * (1 + torch.tanh(0.5 * x)),
        "one above 20": lambda m, x: torch.where(x > 20, 1.0, torch.sigmoid(x)),
    }
    problem.wrong = {
        "one above 10": lambda m, x: torch.where(x > 10, 1.0, torch.sigmoid(x)),
        "zero below -10": lambda m, x: torch.where(x < -10, 0.0, torch.sigmoid(x)),
    }
    yield common_wrong(problem)

    problem = Problem("linear and swish", nn.Sequential(nn.Linear(8 * n, 2 * n), nn.SiLU()),
                      lambda: [torch.rand(2 * n, 8 * n)])  # fmt: skip
    problem.right = {
        "running sums": lambda m, x: F.silu(product_serial(x, m[0].weight.T, 4) + m[0].bias),
        "three TF32 products": lambda m, x: F.silu(product_split(x, m[0].weight.T, tf32) + m[0].bias),
        "three fp16 products": lambda m, x: F.silu(product_split_fp16(x, m[0].weight.T) + m[0].bias),
        "six bf16 products": lambda m, x: F.silu(product_split_bf16(x, m[0].weight.T) + m[0].bias),
    }
    problem.wrong = {
        "zero below -6": lambda m, x: cut(F.silu, -6.0)(m, m[0](x)),
        "zero below -10": lambda m, x: cut(F.silu, -10.0)(m, m[0](x)),
        "sums clamped at 65504": lambda m, x: F.silu(m[0](x).clamp(-65504.0, 65504.0)),
        "TF32": lambda m, x: F.silu(tf32(x) @ tf32(m[0].weight.T) + m[0].bias),
    }
    yield common_wrong(problem)

    for name, draw in (("uniform", torch.rand), ("normal", torch.randn)):
        problem = Problem(f"softmax, {name}", Lambda(lambda x: torch.softmax(x, -1)),
                          lambda draw=draw: [draw(n, 16 * n)])  # fmt: skip

        def shifted_by(top: Kernel) -> Kernel:
            def by(m: Any, x: torch.Tensor) -> torch.Tensor:
                e = torch.exp(x - top(x))
                return e / e.sum(-1, keepdim=True)

            return by

        def started(least: float) -> Kernel:
            return shifted_by(lambda x: x.amax(-1, keepdim=True).clamp_min(least))

        problem.right = {
            "online": lambda m, x: softmax_online(x),
            "shifted by the maximum": shifted_by(lambda x: x.amax(-1, keepdim=True)),
            "maximum started at -inf": started(-math.inf),
            "maximum started at -FLT_MAX": started(torch.finfo(torch.float32).min),
            "maximum started at the first element": shifted_by(
                lambda x: torch.maximum(x[..., :1], x[..., 1:].amax(-1, keepdim=True))),
            "through large logarithms": lambda m, x: torch.exp(x - torch.logsumexp(x, -1, keepdim=True)),
            "fast exp, serial sum": lambda m, x: (lambda e: e / sum_serial(e)[:, None])(
                exp_fast(x - x.amax(-1, keepdim=True))),
        }  # fmt: skip
        problem.wrong = {
            "shifted by the mean": shifted_by(lambda x: x.mean(-1, keepdim=True)),
            "shifted by the maximum of half the row": shifted_by(
                lambda x: x[..., : x.shape[-1] // 2].amax(-1, keepdim=True)),
            "shifted by the maximum of the other half": shifted_by(
                lambda x: x[..., x.shape[-1] // 2 :].amax(-1, keepdim=True)),
            "shifted by the maximum of all but the last": shifted_by(
                lambda x: x[..., :-1].amax(-1, keepdim=True)),
            "shifted by the maximum of all but the first": shifted_by(
                lambda x: x[..., 1:].amax(-1, keepdim=True)),
            "shifted by the first element": shifted_by(lambda x: x[..., :1]),
            "maximum started at 0": started(0.0),
            "maximum started at -100": started(-100.0),
            "maximum started at -1000": started(-1000.0),
            "not shifted": shifted_by(lambda x: torch.zeros(())),
        }  # fmt: skip
        yield common_wrong(problem)

    def padded(x: torch.Tensor, value: float) -> torch.Tensor:
        return F.pad(x, (1, 1, 1, 1), value=value).unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))

    for name, draw in (("uniform", torch.rand), ("normal", torch.randn)):
        problem = Problem(f"max_pool2d, {name}", Lambda(lambda x: F.max_pool2d(x, 3, 2, 1)),
                          lambda draw=draw: [draw(4, n, 17, 17)])  # fmt: skip
        problem.right = {
            "started at -inf": lambda m, x: padded(x, -math.inf),
            "started at -FLT_MAX": lambda m, x: padded(x, torch.finfo(torch.float32).min),
        }
        problem.wrong = {
            "started at 0": lambda m, x: padded(x, 0.0),
            "started at -1": lambda m, x: padded(x, -1.0),
            "started at -1000": lambda m, x: padded(x, -1000.0),
            "started at -1e4": lambda m, x: m(x).clamp_min(-1e4),
            "stopped at 1e4": lambda m, x: m(x).clamp_max(1e4),
        }
        yield common_wrong(problem)

    problem = Problem("maximum and minimum", Lambda(lambda x: (x.amax(-1), x.amin(-1))), lambda: [torch.rand(4 * n, n)])
    problem.right = {
        "by sorting": lambda m, x: (x.sort(-1).values[..., -1], x.sort(-1).values[..., 0]),
        "halves": lambda m, x: (torch.maximum(x[:, ::2].amax(-1), x[:, 1::2].amax(-1)), x.amin(-1)),
    }
    problem.wrong = {
        "started at -1000 and 1000": lambda m, x: (x.amax(-1).clamp_min(-1000.0), x.amin(-1).clamp_max(1000.0)),
        "maximum started at -1e4": lambda m, x: (x.amax(-1).clamp_min(-1e4), x.amin(-1)),
        "minimum started at 1e4": lambda m, x: (x.amax(-1), x.amin(-1).clamp_max(1e4)),
    }
    yield problem

    for name, draw in (("uniform", torch.rand), ("normal", torch.randn)):
        problem = Problem(f"matmul, far, {name}", Lambda(torch.matmul),
                          lambda draw=draw: [draw(n, 64 * n), draw(64 * n, n)])  # fmt: skip
        problem.right = {
            "tiles of 32": lambda m, a, b: product_serial(a, b, 32),
            "three TF32 products": lambda m, a, b: product_split(a, b, tf32),
            "three fp16 products": lambda m, a, b: product_split_fp16(a, b),
            "six bf16 products": lambda m, a, b: product_split_bf16(a, b),
        }
        problem.wrong = {
            "clamped at 65504": lambda m, a, b: (a @ b).clamp(-65504.0, 65504.0),
            "fp16 result": lambda m, a, b: (a @ b).half().float(),
            "1 + 1e-5 times": lambda m, a, b: (a @ b) * (1 + 1e-5),
            "1 - 1e-5 times": lambda m, a, b: (a @ b) * (1 - 1e-5),
            "TF32": lambda m, a, b: tf32(a) @ tf32(b),
        }
        yield common_wrong(problem)


def factors(n: int) -> Iterator[Problem]:
    """Factors near one, beside sums that err as much in their own way."""
    for name, length, draw in (
        ("sum of 65536, uniform", 1 << 16, torch.rand),
        ("sum of 65536, normal", 1 << 16, torch.randn),
        ("sum of a few, uniform", 4 * n, torch.rand),
    ):
        problem = Problem(name, Lambda(lambda x: x.sum(-1)), lambda d=draw, k=length: [d(n, k)])
        problem.right = {
            "running sum": lambda m, x: running(x),
            "blocks of 256": lambda m, x: sum_blocked(x, 256),
            "1024 threads": lambda m, x: sum_strided(x, 1024),
        }
        problem.wrong = {
            "1 + 1e-5 times": lambda m, x: x.sum(-1) * (1 + 1e-5),
            "1 - 1e-5 times": lambda m, x: x.sum(-1) * (1 - 1e-5),
        }
        yield problem

    module = nn.LayerNorm(1 << 16)
    problem = Problem("layer_norm, 65536 uniform", module, lambda: [torch.rand(8, 1 << 16)])

    def normed(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return (x - mean[:, None]) * torch.rsqrt(variance[:, None] + 1e-5)

    def two_pass(x: torch.Tensor, total: Kernel) -> torch.Tensor:
        mean = total(x) / x.shape[1]
        return normed(x, mean, total((x - mean[:, None]) ** 2) / x.shape[1])

    def one_pass(x: torch.Tensor, total: Kernel) -> torch.Tensor:
        mean = total(x) / x.shape[1]
        return normed(x, mean, (total(x * x) / x.shape[1] - mean * mean).clamp_min(0))

    problem.right = {
        "two passes, running sums": lambda m, x: two_pass(x, running),
        "one pass, running sums": lambda m, x: one_pass(x, running),
        "one pass, 256 threads": lambda m, x: one_pass(x, lambda t: sum_strided(t, 256)),
        "two passes, 256 threads": lambda m, x: two_pass(x, lambda t: sum_strided(t, 256)),
    }
    problem.wrong = {
        "1 + 1e-5 times": lambda m, x: m(x) * (1 + 1e-5),
        "of half the row": lambda m, x: normed(
            x, x[:, ::2].mean(1), x[:, ::2].var(1, correction=0)),
        "TF32": lambda m, x: m(tf32(x)),
    }  # fmt: skip
    yield common_wrong(problem)

    problem = Problem(
        "matvec, long", Lambda(lambda a, b: a @ b), lambda: [torch.rand(n, 1 << 16), torch.rand(1 << 16, 1)]
    )
    problem.right = {
        "running sum": lambda m, a, b: running(a * b[:, 0])[:, None],
        "256 threads": lambda m, a, b: sum_strided(a * b[:, 0], 256)[:, None],
    }
    problem.wrong = {
        "1 + 1e-5 times": lambda m, a, b: (a @ b) * (1 + 1e-5),
        "half the length": lambda m, a, b: 2 * (a[:, ::2] @ b[::2]),
    }
    yield problem


def running(x: torch.Tensor) -> torch.Tensor:
    """One float32 accumulator over the last dimension, for long rows: NumPy adds up a cumulative sum one by one."""
    return torch.from_numpy(np.cumsum(x.numpy(), -1, dtype=np.float32)[..., -1].copy())


def problems(n: int, seed: int) -> Iterator[Problem]:
    """All of them, for sizes that grow with `n`; weights and inputs are the same each time for a seed."""
    torch.manual_seed(seed)
    yield matmul(n)
    yield matmul_uniform(n)
    yield matmul_half(n)
    yield conv(n)
    yield softmax(n)
    yield layer_norm(n)
    yield batch_norm(n)
    yield gemm_tail(n)
    for dtype, uniform in (
        (torch.float16, False),
        (torch.float16, True),
        (torch.float32, True),
        (torch.bfloat16, False),
    ):
        yield attention(n, dtype, uniform)
    yield from reductions(n)
    yield from elementwise(n)
    yield from pooling(n)
    yield from losses(n)
    yield from lookups(n)
    yield from networks(n)
    yield from activations(n)
    yield from norms(n)
    yield from distances(n)
    yield from far_out(n)
    yield from factors(n)


# --- Judging -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """How a candidate fared: figures of the first draw, and what refused it where (or nothing)."""

    error: float | None
    ratio: float | None
    refused: str
    where: str
    message: str = ""


def judge(oracle: Oracle, sets: list[tuple[str, Expected]], module: nn.Module, kernel: Kernel) -> Result:
    """The verdict over drawn and stress inputs; the first refusal counts."""
    error: float | None = None
    ratio: float | None = None
    factors = Factors()
    for where, expected in sets:
        try:
            output = kernel(module, *expected.inputs)
        except Exception as exception:
            return Result(error, ratio, type(exception).__name__, where, str(exception))
        finding = oracle.check(expected, output)
        if where == "draw 1":
            error, ratio = finding.error, finding.error_ratio
        if not finding.passed:
            return Result(error, ratio, finding.reason, where, finding.message)
        factors.add(where, finding)
    refusal = factors.refusal()
    if refusal is not None:
        return Result(error, ratio, refusal.reason, "all", refusal.message)
    return Result(error, ratio, "", "")


def expectations(oracle: Oracle, problem: Problem, seed: int) -> list[tuple[str, Expected]]:
    draws = [problem.draw(), problem.draw()]
    sets: list[tuple[str, Expected]] = [(f"draw {i + 1}", oracle.expect(inputs)) for i, inputs in enumerate(draws)]
    if not LARGE:
        return sets + [(stress.name, told) for stress, told in oracle.stress(draws[0], seed) if stress.binding]
    with mock.patch.dict(exact.MUCH, cpu=0), mock.patch.multiple(chunks, **LARGE):
        for stress, inputs in oracle.stress_inputs(draws[0], seed, SETS):
            told = oracle.sampled_stress(stress, inputs, draws[0], seed) if stress.binding else None
            if told is not None:
                sets.append((stress.name, told))
    return sets


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--small", action="store_true", help="sizes for CI, under a minute on two cores")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--seeds", type=int, default=1, help="how many weights and inputs to try each problem with (1)")
    parser.add_argument("--large", action="store_true", help="hard inputs as those of problems that are large")
    parser.add_argument("--verbose", action="store_true", help="the oracle's sentence under each refusal")
    options = parser.parse_args()
    LARGE.update(AS_LARGE if options.large else {})
    torch.set_num_threads(1)
    counts, misjudged = Counter[str](), Counter[str]()
    start = time.perf_counter()
    with torch.no_grad():
        for seed in range(options.seeds):
            for problem in problems(32 if options.small else 64, seed):
                if options.only in problem.name:
                    tried, missed = try_out(problem, seed, options.verbose)
                    counts += tried
                    misjudged += missed
    return report(counts, misjudged, time.perf_counter() - start)


def report(counts: Counter[str], misjudged: Counter[str], seconds: float) -> int:
    """Print the last lines; the exit status."""
    print(f"{seconds:.0f} s")
    print(f"wrong_accepted={misjudged['wrong']}/{counts['wrong']} right_refused={misjudged['right']}/{counts['right']}")
    return int(bool(misjudged))


def try_out(problem: Problem, seed: int, verbose: bool) -> tuple[Counter[str], Counter[str]]:
    """Judge all candidates of a problem and print a row for each; how many there are by label, and misjudged ones."""
    counts, misjudged = Counter[str](), Counter[str]()
    oracle = Oracle(problem.module, promises=promises.find(problem.draw(), problem.draw))
    sets = expectations(oracle, problem, seed)
    for label, kernels in (("right", problem.right), ("wrong", problem.wrong)):
        for name, kernel in kernels.items():
            result = judge(oracle, sets, problem.module, kernel)
            counts[label] += 1
            missed = (label == "right") == bool(result.refused)
            if missed:
                misjudged[label] += 1
            if seed and not missed:
                continue
            figures = [f"{value:9.2e}" if value is not None else "        -" for value in (result.error, result.ratio)]
            verdict = f"{result.refused} ({result.where})" if result.refused else "passed"
            remark = f"   <-- MISJUDGED, seed {seed}" if missed else ""
            print(f"{problem.name:32} {name:40} {label:6} {' '.join(figures)}  {verdict}{remark}", flush=True)
            if verbose and result.message:
                print(f"    {result.message}")
    return counts, misjudged


if __name__ == "__main__":
    sys.exit(main())
