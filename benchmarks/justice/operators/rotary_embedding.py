"""Rotary position embedding of queries and keys in half precision, halves of a head rotated together."""

import torch
from torch import nn

LENGTH, WIDTH = 67, 48


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        rates = 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        angles = torch.arange(LENGTH)[:, None] * rates
        self.register_buffer("cos", torch.cat((angles, angles), 1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), 1).sin())

    def forward(self, q, k):
        return self.rotated(q), self.rotated(k)

    def rotated(self, x):
        left, right = x.chunk(2, -1)
        return x * self.cos.to(x.dtype) + torch.cat((-right, left), -1) * self.sin.to(x.dtype)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 6, LENGTH, WIDTH).half(), torch.randn(2, 3, LENGTH, WIDTH).half()]


def _by_pairs(model, x, sign=1.0, step=0):
    cos, sin = (table.float().roll(step, 0)[:, : WIDTH // 2] for table in (model.cos, model.sin))
    left, right = x.float().chunk(2, -1)
    return torch.cat((left * cos - sign * right * sin, right * cos + sign * left * sin), -1).half()


def honest_in_float32(model, q, k):
    """A thread a pair of elements, in float32, rounded once."""
    return _by_pairs(model, q), _by_pairs(model, k)


def honest_complex_product(model, q, k):
    """Pairs as complex numbers times a rotation."""
    rotation = torch.complex(model.cos.float(), model.sin.float())[:, : WIDTH // 2]

    def rotated(x):
        left, right = x.float().chunk(2, -1)
        turned = torch.complex(left, right) * rotation
        return torch.cat((turned.real, turned.imag), -1).half()

    return rotated(q), rotated(k)


def wrong_other_direction(model, q, k):
    """Rotates backwards: wrong on the problem's own inputs."""
    return _by_pairs(model, q, -1.0), _by_pairs(model, k, -1.0)


def wrong_neighbours_for_halves(model, q, k):
    """Rotates neighbours together, as the other convention has it: wrong on the problem's own inputs."""
    cos, sin = (table.float()[:, : WIDTH // 2] for table in (model.cos, model.sin))

    def rotated(x):
        even, odd = x.float()[..., ::2], x.float()[..., 1::2]
        return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2).half()

    return rotated(q), rotated(k)
