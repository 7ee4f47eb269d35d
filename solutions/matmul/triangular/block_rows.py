"""Library products of block rows, each only as wide as the triangle there: no kernel of one's own.

Cut into eight block rows, the products skip seven sixteenths of the multiplications; only the blocks on the diagonal
have their upper part zeroed first. About 1.1 * size² * columns FLOP. Limit: the library's rate on the smaller products.
"""

import torch
import torch.nn as nn

BLOCK_ROWS = 8


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        size = a.size(0)
        height = max(1, -(-size // BLOCK_ROWS))
        out = a.new_empty(size, b.size(1))
        for top in range(0, size, height):
            end = min(top + height, size)
            torch.mm(a[top:end, top:end].tril(), b[top:end], out=out[top:end])
            out[top:end].addmm_(a[top:end, :top], b[:top])
        return out
