"""A Triton program for each 1024 elements: Triton chooses threads and vector width itself.

Masked loads and stores take care of the end. 4 bytes moved and about 30 FLOP for each element. Limit: memory.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    result = 0.5 * value * (1.0 + tl.erf(value * 0.70710678))
    tl.store(out + at, result.to(out.dtype.element_ty), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
