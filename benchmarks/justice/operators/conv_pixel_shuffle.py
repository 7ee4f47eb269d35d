"""Sub-pixel convolution: a convolution to r^2 times the channels, laid out as an image r times as large."""

import torch
import torch.nn.functional as F
from torch import nn

FACTOR = 3


class Model(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out * FACTOR**2, 3, padding=1)

    def forward(self, x):
        return F.pixel_shuffle(self.conv(x), FACTOR)


def get_init_inputs():
    return [19, 5]


def get_inputs():
    return [torch.rand(2, 19, 11, 14)]


def honest_one_phase_at_a_time(model, x):
    """Each of the nine phases is a convolution of its own, written to every third row and column."""
    weight, bias = model.conv.weight, model.conv.bias
    out = torch.empty(x.shape[0], weight.shape[0] // FACTOR**2, x.shape[2] * FACTOR, x.shape[3] * FACTOR)
    for phase in range(FACTOR**2):
        i, j = divmod(phase, FACTOR)
        some = slice(phase, None, FACTOR**2)
        out[:, :, i::FACTOR, j::FACTOR] = F.conv2d(x, weight[some], bias[some], padding=1)
    return out


def honest_taps_in_turn(model, x):
    """Nine products, one a tap, added up in turn; then a permutation of axes."""
    weight, bias = model.conv.weight, model.conv.bias
    padded, (h, w) = F.pad(x, (1, 1, 1, 1)), x.shape[2:]
    out = bias[:, None, None].expand(-1, h, w).unsqueeze(0)
    for i in range(3):
        for j in range(3):
            out = out + torch.einsum("nchw,oc->nohw", padded[:, :, i : i + h, j : j + w], weight[:, :, i, j])
    n = x.shape[0]
    out = out.view(n, -1, FACTOR, FACTOR, h, w).permute(0, 1, 4, 2, 5, 3)
    return out.reshape(n, -1, h * FACTOR, w * FACTOR)


def wrong_rows_and_columns_exchanged(model, x):
    """Takes the phase's row for its column: wrong on the problem's own inputs."""
    out = model.conv(x)
    n, _, h, w = out.shape
    out = out.view(n, -1, FACTOR, FACTOR, h, w).permute(0, 1, 4, 3, 5, 2)
    return out.reshape(n, -1, h * FACTOR, w * FACTOR)


def wrong_one_product_in_bfloat16(model, x):
    """Rounds the weights to bfloat16 before the product: a lower precision than was asked for."""
    conv = model.conv
    return F.pixel_shuffle(F.conv2d(x, conv.weight.bfloat16().float(), conv.bias, padding=1), FACTOR)
