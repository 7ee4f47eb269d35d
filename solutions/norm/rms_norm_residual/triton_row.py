"""A Triton program for each row: sum, its store, and the norm while the row is in registers.

8 bytes moved for each element, both outputs from one kernel. Limit: memory.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_norm_kernel(x, residual, weight, out, total, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    column = tl.arange(0, BLOCK)
    inside = column < hidden
    a = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(residual + row + column, mask=inside, other=0.0).to(tl.float32)
    rounded = (a + b).to(total.dtype.element_ty)
    tl.store(total + row + column, rounded, mask=inside)
    value = rounded.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / hidden + eps)
    w = tl.load(weight + column, mask=inside).to(tl.float32)
    tl.store(out + row + column, (value * scale * w).to(out.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, hidden = x.shape
        out, total = torch.empty_like(x), torch.empty_like(x)
        add_norm_kernel[(tokens,)](
            x.contiguous(),
            residual.contiguous(),
            self.weight,
            out,
            total,
            hidden,
            self.eps,
            BLOCK=triton.next_power_of_2(hidden),
            num_warps=8,
        )
        return out, total
