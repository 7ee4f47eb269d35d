"""A Triton program for each row, the row in registers as float32.

Elements beyond the row count as zero in the mean and are masked out of the variance. 4 bytes moved for each element.
Limit: memory.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x, weight, bias, out, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    column = tl.arange(0, BLOCK)
    inside = column < hidden
    value = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, value - tl.sum(value, axis=0) / hidden, 0.0)
    variance = tl.sum(centred * centred, axis=0) / hidden
    w = tl.load(weight + column, mask=inside).to(tl.float32)
    b = tl.load(bias + column, mask=inside).to(tl.float32)
    result = centred / tl.sqrt(variance + eps) * w + b
    tl.store(out + row + column, result.to(out.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens, hidden = x.shape
        out = torch.empty_like(x)
        block = triton.next_power_of_2(hidden)
        norm_kernel[(tokens,)](x.contiguous(), self.weight, self.bias, out, hidden, self.eps, BLOCK=block, num_warps=8)
        return out
