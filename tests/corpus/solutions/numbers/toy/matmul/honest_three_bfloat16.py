# {kind: honest, row: precision, status: passed}
"""Twin of `float16_inputs`: each factor as the sum of three bfloat16 numbers, which loses next to nothing."""

import torch
from torch import nn


def parts(x: torch.Tensor) -> list[torch.Tensor]:
    """Three bfloat16 numbers that add up to each float32."""
    found = []
    for _ in range(3):
        found.append(x.bfloat16().float())
        x = x - found[-1]
    return found


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        lefts, rights = parts(a), parts(b)
        products = [lefts[i] @ rights[j] for i in range(3) for j in range(3 - i)]
        return sum(reversed(products))
