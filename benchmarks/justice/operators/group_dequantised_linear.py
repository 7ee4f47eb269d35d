"""A product with weights of four bits: a scale and a zero point for each group of 32 inputs."""

import torch
from torch import nn

GROUP = 32


class Model(nn.Module):
    def __init__(self, inputs, out):
        super().__init__()
        self.register_buffer("codes", torch.randint(0, 16, (out, inputs)))
        self.register_buffer("zeros", torch.randint(6, 10, (out, inputs // GROUP)))
        self.scales = nn.Parameter(torch.rand(out, inputs // GROUP) * 0.01 + 0.005)

    def forward(self, x):
        centred = self.codes - self.zeros.repeat_interleave(GROUP, 1)
        return x @ (centred.to(x.dtype) * self.scales.repeat_interleave(GROUP, 1)).T


def get_init_inputs():
    return [320, 61]


def get_inputs():
    return [torch.randn(19, 320)]


def _groups(model, x):
    return x.unflatten(1, (-1, GROUP)), model.codes.unflatten(1, (-1, GROUP)).to(x.dtype)


def honest_scale_after_each_group(model, x):
    """Products of whole numbers within a group, scaled and added up group by group."""
    x, codes = _groups(model, x)
    total = torch.zeros(x.shape[0], codes.shape[0])
    for g in range(x.shape[1]):
        centred = codes[:, g] - model.zeros[:, g : g + 1]
        total = torch.addcmul(total, x[:, g] @ centred.T, model.scales[:, g])
    return total


def honest_zero_points_apart(model, x):
    """Products with the codes as they are; zero points times the sum of the group's inputs are taken off."""
    x, codes = _groups(model, x)
    products = torch.einsum("ngk,ogk->ngo", x, codes)
    products = products - x.sum(2)[..., None] * model.zeros.T.to(x.dtype)
    return (products * model.scales.T).sum(1)


def wrong_scales_of_the_next_group(model, x):
    """Takes the next group's scale: wrong on the problem's own inputs."""
    centred = model.codes - model.zeros.repeat_interleave(GROUP, 1)
    return x @ (centred.to(x.dtype) * model.scales.roll(-1, 1).repeat_interleave(GROUP, 1)).T


def wrong_zero_point_of_eight(model, x):
    """Takes eight for every zero point: wrong on the problem's own inputs."""
    return x @ ((model.codes - 8).to(x.dtype) * model.scales.repeat_interleave(GROUP, 1)).T
