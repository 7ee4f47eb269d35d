"""Whether an error is what one running sum loses, where the reference's output is a long sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from harness.oracle import patterns
from harness.oracle.case import Case, Cause
from harness.oracle.mistakes.call import Call, floating
from harness.oracle.slices import coordinates, sample

# Sums that are taken again, one term after another, on the host; the longest ones that are.
SUMS = 64
TERMS = 1 << 22
# Shorter sums lose too little to be refused for it.
FEWEST = 256
# The error is that of a running sum if such a share of it goes along with it, and it is as large up to that factor.
ALIKE, SIZE = 0.5, 4.0
_PRODUCTS = ("matmul", "mm", "bmm", "mv", "linear")
_DTYPES = {torch.float16: "float16", torch.float32: "float32"}


class _Last(TorchFunctionMode):
    """Keeps the last sum or product that is called, and its result, so that nothing else comes to lie there."""

    def __init__(self) -> None:
        super().__init__()
        self.call: Call | None = None
        self.result: torch.Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = Call.of(func, tuple(args), dict(kwargs or {}))
        result = call.result()
        if call.name in (*_PRODUCTS, "sum", "mean") and floating(result):
            self.call, self.result = call, result
        return result


def running_sum(case: Case) -> Cause | None:
    """Whether the errors are those of one accumulator in the output's precision; one run of the reference."""
    last = _Last()
    try:
        leaf = case.leaf(case.reference.native(case.expected.inputs, case.expected.seed, mode=last))
        if leaf is None or last.call is None or last.result is None or leaf.dtype not in _DTYPES:
            return None
        if leaf.data_ptr() != last.result.data_ptr():
            return None
        places = sample(leaf.numel(), leaf.device, SUMS)
        added = [_in_turn(last.call, leaf.shape, int(place)) for place in places]
    except Exception:
        # Foreign code; or arguments of another overload than is known here.
        return None
    terms = min(length for length, _ in added)
    if not FEWEST <= terms <= TERMS:
        return None
    true = patterns.at(case.exact, places)
    error = patterns.at(case.got, places) - true
    lost = torch.tensor([value for _, value in added], dtype=torch.float64, device=true.device) - true
    if not _alike(error, lost):
        return None
    dtype = _DTYPES[leaf.dtype]
    clause = f"the errors are those of one running sum of {terms} terms in {dtype}"
    return Cause("mismatch:running_sum", clause, {"terms": terms}, "add up in blocks, then the blocks")


def _alike(error: torch.Tensor, lost: torch.Tensor) -> bool:
    """Whether two errors go along with each other; of few, whether they are nearly the same."""
    if error.numel() >= SUMS:
        # What goes one way everywhere goes along with any other such error.
        error, lost = error - error.mean(), lost - lost.mean()
    one, other = float(error.norm()), float(lost.norm())
    if not one or not other or not math.isfinite(one * other):
        return False
    if error.numel() < SUMS:
        return float((error - lost).norm()) <= ALIKE * one
    return float(error @ lost) >= ALIKE * one * other and 1 / SIZE <= one / other <= SIZE


def _in_turn(call: Call, shape: torch.Size, place: int) -> tuple[int, float]:
    """How many terms the result at a flat place has, and their sum, one after another in the operands' precision."""
    index = [int(i) for i in coordinates(torch.tensor(place), shape)]
    if call.name in _PRODUCTS:
        left, right, bias = _operands(call)
        terms = _row(left, index, right.dim() == 1) * _column(right, index)
    else:
        terms, bias = _summed(call, shape, index), None
    if terms.numel() > TERMS:
        return terms.numel(), math.nan
    total = float(np.add.accumulate(terms.cpu().numpy())[-1])
    if call.name == "mean":
        total /= terms.numel()
    return terms.numel(), total + (0.0 if bias is None else float(bias[index[-1]]))


def _operands(call: Call) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    if call.name == "linear":
        return call.input, call.get("weight").mT, call.get("bias")
    # torch.mv and torch.mm name their second argument otherwise.
    return call.args[0], call.args[1], None


def _row(left: torch.Tensor, index: list[int], by_vector: bool) -> torch.Tensor:
    if left.dim() == 1:
        return left
    rows = index if by_vector else index[:-1]
    return left[_within(rows, left.shape[:-1])]


def _column(right: torch.Tensor, index: list[int]) -> torch.Tensor:
    if right.dim() == 1:
        return right
    return right[_within(index[:-2], right.shape[:-2])][:, index[-1]]


def _within(index: list[int], shape: Sequence[int]) -> tuple[int, ...]:
    """An index of the result in an operand whose leading dimensions may be missing or one."""
    last = index[len(index) - len(shape) :]
    return tuple(0 if length == 1 else i for i, length in zip(last, shape, strict=True))


def _summed(call: Call, shape: torch.Size, index: list[int]) -> torch.Tensor:
    """The terms of a sum or a mean, in the order of the memory."""
    x: torch.Tensor = call.input
    dim = call.get("dim")
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % x.dim() for d in dims}
    kept = [d for d in range(x.dim()) if d not in gone]
    # With keepdim, what is gone is at 0.
    places = index if len(index) == len(kept) else [index[d] for d in kept]
    for d, place in reversed(list(zip(kept, places, strict=True))):
        x = x.select(d, place)
    return x.reshape(-1)
