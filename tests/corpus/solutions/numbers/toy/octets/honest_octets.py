# {kind: honest, row: precision, status: passed}
"""By the reciprocal of the scale, which rounds otherwise: a few numbers half-way between two go to the other one."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = x.abs().amax(1, keepdim=True) / 448
        return (x * (1 / scale)).clamp(-448, 448).to(torch.float8_e4m3fn), scale
