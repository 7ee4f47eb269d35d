"""A gated linear recurrence: h[t] = a[t] h[t-1] + (1 - a[t]) x[t], with gates from a sigmoid."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, gate):
        a = torch.sigmoid(gate)
        h, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = a[:, t] * h + (1 - a[:, t]) * x[:, t]
            out.append(h)
        return torch.stack(out, 1)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(5, 301, 17), torch.randn(5, 301, 17) + 1]


def honest_step_towards_the_input(model, x, gate):
    """One fused multiply-add a step: h + (1 - a) (x - h)."""
    share = 1 / (1 + torch.exp(gate))
    h, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = torch.addcmul(h, share[:, t], x[:, t] - h)
        out.append(h)
    return torch.stack(out, 1)


def honest_parallel_scan(model, x, gate):
    """A scan by doubling distances over pairs of a factor and a sum."""
    a = torch.sigmoid(gate)
    b, step = torch.sigmoid(-gate) * x, 1
    while step < x.shape[1]:
        b = torch.cat([b[:, :step], a[:, step:] * b[:, :-step] + b[:, step:]], 1)
        a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], 1)
        step *= 2
    return b


def wrong_divided_by_products(model, x, gate):
    """Divides by running products of gates, which vanish in a long sequence: wrong on the problem's own inputs."""
    a = torch.sigmoid(gate)
    product = torch.cumprod(a, 1)
    return product * torch.cumsum((1 - a) * x / product, 1)


def wrong_chunks_start_afresh(model, x, gate):
    """Each chunk of 64 steps starts from zero: wrong on the problem's own inputs."""
    return torch.cat([model(b, g) for b, g in zip(x.split(64, 1), gate.split(64, 1), strict=True)], 1)
