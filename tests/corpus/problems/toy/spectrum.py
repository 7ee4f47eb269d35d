"""The sizes of a Fourier transform: a step makes real numbers of complex ones in the same shape."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, 64, 16, window=torch.hann_window(64, device=x.device), return_complex=True).abs()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 640)]


def get_init_inputs() -> list[int]:
    return []
