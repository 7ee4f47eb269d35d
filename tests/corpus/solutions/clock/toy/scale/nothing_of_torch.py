# {kind: honest, row: disguise, status: passed, set: {provenance: {forbid: [torch_fallback]}}}
"""Twin of the fallback: speaks of torch.matmul and torch.tanh, and computes with numpy alone."""

import numpy as np
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # No torch.matmul(x, w.T) and no F.linear: that would be a fallback, as would cuBLAS.
        weight, bias = (parameter.cpu().numpy() for parameter in (self.linear.weight, self.linear.bias))
        return torch.from_numpy(np.tanh(x.cpu().numpy() @ weight.T + bias)).to(x.device)
