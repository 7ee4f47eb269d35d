# {kind: honest, row: form, status: passed}
"""Twin of the non-tensor: computes with numpy, and returns a tensor on numpy's memory."""

import numpy as np
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.cpu().numpy() @ self.linear.weight.cpu().numpy().T + self.linear.bias.cpu().numpy()
        return torch.from_numpy(np.tanh(y)).to(x.device)
