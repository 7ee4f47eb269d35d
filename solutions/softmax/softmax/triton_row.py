"""A Triton program for each row, the row in registers.

The block is the next power of two, what lies beyond the row counts as minus infinity. 8 bytes moved for each element.
Limit: memory.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row + column, mask=column < columns, other=-float("inf"))
    weight = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row + column, weight / tl.sum(weight, axis=0), mask=column < columns)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        out = torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        softmax_kernel[(rows,)](x.contiguous(), out, columns, BLOCK=block, num_warps=8 if block > 2048 else 4)
        return out
