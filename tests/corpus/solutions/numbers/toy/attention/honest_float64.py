# {kind: honest, row: precision, status: passed}
"""Twin of `half_precision_scores`: a higher precision than the problem's."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double()).float()
