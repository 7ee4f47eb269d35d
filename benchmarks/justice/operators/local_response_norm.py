"""Local response normalisation over five neighbouring channels."""

import torch
import torch.nn.functional as F
from torch import nn

SIZE, ALPHA, BETA, K = 5, 1e-1, 0.75, 2.0


class Model(nn.Module):
    def forward(self, x):
        return F.local_response_norm(x, SIZE, ALPHA, BETA, K)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(3, 29, 13, 11) * 3]


def _window(x, before=SIZE // 2):
    squares = F.pad(x * x, (0, 0, 0, 0, before, SIZE - 1 - before))
    return [squares[:, i : i + x.shape[1]] for i in range(SIZE)]


def honest_five_squares(model, x):
    """A thread an element adds five squares; the power through logarithms."""
    total = torch.zeros_like(x)
    for squares in _window(x):
        total = total + squares
    return x * torch.exp(-BETA * torch.log(K + total * (ALPHA / SIZE)))


def honest_roots_for_the_power(model, x):
    """A power of three quarters as a root times the root of the root."""
    base = K + ALPHA * (sum(_window(x)) / SIZE)
    root = torch.sqrt(base)
    return x / (root * torch.sqrt(root))


def wrong_sum_for_the_mean(model, x):
    """Leaves out that the sum is divided by the size of the window: wrong on the problem's own inputs."""
    return x * (K + ALPHA * sum(_window(x))) ** -BETA


def wrong_window_begins_at_the_channel(model, x):
    """The window begins at the channel itself: wrong on the problem's own inputs."""
    return x * (K + ALPHA / SIZE * sum(_window(x, 0))) ** -BETA
