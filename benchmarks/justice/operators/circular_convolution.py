"""Circular convolution of long rows with learned filters, by Fourier transforms."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, length):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(channels, length) / length**0.5)

    def forward(self, x):
        spectrum = torch.fft.rfft(x) * torch.fft.rfft(self.filter)
        return torch.fft.irfft(spectrum, n=x.shape[-1])


def get_init_inputs():
    return [11, 240]


def get_inputs():
    return [torch.randn(6, 11, 240)]


def _turned(model):
    """Of each channel the matrix whose rows are the filter, reversed and turned by one more place each."""
    length = model.filter.shape[1]
    places = (torch.arange(length)[:, None] - torch.arange(length)) % length
    return model.filter[:, places]


def honest_product_with_turned_filters(model, x):
    """One product a channel with the filter in all its positions."""
    return torch.einsum("cts,ncs->nct", _turned(model), x)


def honest_direct_sums(model, x):
    """A running sum over the filter's taps."""
    out = torch.zeros_like(x)
    for tap in range(x.shape[-1]):
        out = torch.addcmul(out, model.filter[:, tap : tap + 1], x.roll(tap, -1))
    return out


def wrong_correlation(model, x):
    """Does not reverse the filter: wrong on the problem's own inputs."""
    return torch.einsum("cts,ncs->nct", _turned(model).mT, x)


def wrong_zeros_before_the_start(model, x):
    """Takes zeros for what comes before the start: wrong on the problem's own inputs."""
    length = x.shape[-1]
    spectrum = torch.fft.rfft(x, n=2 * length) * torch.fft.rfft(model.filter, n=2 * length)
    return torch.fft.irfft(spectrum, n=2 * length)[..., :length]
