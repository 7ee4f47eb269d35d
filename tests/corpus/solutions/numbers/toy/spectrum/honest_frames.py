# {kind: honest, row: constants, status: passed}
"""Frame by frame, with the ends reflected."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = F.pad(x[:, None], (32, 32), mode="reflect")[:, 0].unfold(1, 64, 16)
        found = torch.fft.rfft(frames * torch.hann_window(64, device=x.device))
        return torch.hypot(found.real, found.imag).transpose(1, 2)
