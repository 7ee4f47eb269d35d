"""Errors that rows or columns of a float32 product share, and what is left of them, in roundings of its size: the
figures behind `rule.SHARED` and `rule.apart`.

    python benchmarks/shared_errors.py                    1024, 4096 and 16384 products
    python benchmarks/shared_errors.py 2048

Simulated on a CPU for several kinds of operands. Honest: a plain running sum; tensor cores that take eight or sixteen
products at a time and cut off the sum to 24 bits, or to 23, which is coarser than they are; split operands on those.
Dishonest: operands, or one of them, with the digits of float16 or bfloat16, behind a factor, or of eight bits without
their means, which are put back behind the product. The last column is the limit of what is left.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.oracle import rule
from harness.oracle.formats import FLOAT32, TF32, round_to
from harness.oracle.shared_errors import sizes
from harness.oracle.slices import rms

ROWS, COLUMNS = 128, 96
FACTOR = 1.37

Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
OPERANDS: dict[str, Callable[..., torch.Tensor]] = {
    "rand": torch.rand,
    "randn": torch.randn,
    "randn+1": lambda *shape: torch.randn(*shape) + 1,
    "relu": lambda *shape: torch.randn(*shape).relu(),
}


def running_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(ROWS, COLUMNS)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


def tensor_cores(step: int, bits: int) -> Kernel:
    def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(ROWS, COLUMNS, dtype=torch.float64)
        for k in range(0, a.shape[1], step):
            mantissa, exponent = torch.frexp(total + a[:, k : k + step].double() @ b[k : k + step].double())
            total = torch.ldexp(torch.trunc(mantissa * 2.0**bits) / 2.0**bits, exponent)
        return total

    return kernel


def split(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    kernel, (high_a, high_b) = tensor_cores(8, 24), (round_to(a, TF32), round_to(b, TF32))
    low_a, low_b = round_to(a - high_a, TF32), round_to(b - high_b, TF32)
    return kernel(high_a, high_b) + kernel(low_a, high_b) + kernel(high_a, low_b)


def rounded(dtype: torch.dtype, *, both: bool = True) -> Kernel:
    def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        left = (a * FACTOR).to(dtype).double() / FACTOR
        return left @ ((b * FACTOR).to(dtype).double() / FACTOR if both else b.double())

    return kernel


def centred(dtype: torch.dtype) -> Kernel:
    """Operands without their means are rounded, and the means put back."""

    def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        of_a, of_b = float(a.mean()), float(b.mean())
        small_a, small_b = a - of_a, b - of_b
        low = (small_a.to(dtype).double() @ small_b.to(dtype).double()).add_(of_a * of_b * a.shape[1])
        return low + of_a * small_b.double().sum(0) + of_b * small_a.double().sum(1, keepdim=True)

    return kernel


WAYS: dict[str, Kernel] = {
    "running sum": running_sum,
    "8 at a time": tensor_cores(8, 24),
    "16 at a time": tensor_cores(16, 24),
    "8, 23 bits": tensor_cores(8, 23),
    "split": split,
    "float16": rounded(torch.float16),
    "one float16": rounded(torch.float16, both=False),
    "bfloat16": rounded(torch.bfloat16),
    "centred f16": centred(torch.float16),
    "centred bf16": centred(torch.bfloat16),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("terms", nargs="*", type=int, default=[1024, 4096, 16384])
    torch.manual_seed(0)
    print(f"{'terms operands':16}" + "".join(f"{way:>16}" for way in WAYS) + f"{'limit':>9}")
    for terms in parser.parse_args().terms:
        for name, draw in OPERANDS.items():
            a, b = draw(ROWS, terms), draw(terms, COLUMNS)
            exact = a.double() @ b.double()
            size, spread = rms(exact), float(exact.std())
            unit = FLOAT32.roundoff * size
            most = rule.apart(terms, unit, size, spread) / unit
            found = [sizes(kernel(a, b).float(), exact, float(exact.mean())) for kernel in WAYS.values()]
            told = "".join(f"{one.shared / unit:8.1f}{one.apart / unit:8.1f}" for one in found)
            print(f"{terms:<6}{name:10}{told}{most:9.1f}", flush=True)


if __name__ == "__main__":
    main()
