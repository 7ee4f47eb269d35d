"""Level 1, problem 63: 2D convolution with a square kernel."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 1, "out_channels": 29, "width": 51, "height": 49}

INPUT = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
KERNEL = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
OUTPUT = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])


def _winograd(x, weight, store):
    h, w = x.shape[2] - 2, x.shape[3] - 2
    x = F.pad(x, (0, w % 2, 0, h % 2))
    tiles = x.unfold(2, 4, 2).unfold(3, 4, 2)
    v = store(INPUT @ tiles @ INPUT.T)
    u = store(KERNEL @ weight @ KERNEL.T)
    m = torch.einsum("ocij,nchwij->nohwij", u, v)
    out = OUTPUT @ m @ OUTPUT.T
    return out.permute(0, 1, 2, 4, 3, 5).flatten(4, 5).flatten(2, 3)[:, :, :h, :w]


def honest_winograd(model, x):
    """Winograd's F(2x2, 3x3) in float32 throughout."""
    return _winograd(x, model.conv2d.weight, lambda t: t)


def honest_taps_as_matmuls(model, x):
    """Nine matrix products over channels, one a tap, added to the same accumulators."""
    weight = model.conv2d.weight
    h, w = x.shape[2] - 2, x.shape[3] - 2
    acc = torch.zeros(x.shape[0], weight.shape[0], h * w)
    for r in range(3):
        for s in range(3):
            acc = acc + weight[:, :, r, s] @ x[:, :, r : r + h, s : s + w].flatten(2)
    return acc.view(x.shape[0], -1, h, w)


def wrong_winograd_in_bf16(model, x):
    """Winograd with the transformed tiles and kernels stored as bf16: wrong on the problem's own inputs."""
    return _winograd(x, model.conv2d.weight, lambda t: t.bfloat16().float())


def wrong_odd_edge_unwritten(model, x):
    """Whole 2x2 output tiles only, so the last row and column stay zero: wrong on the problem's own inputs."""
    out = F.conv2d(x, model.conv2d.weight)
    out[:, :, out.shape[2] // 2 * 2 :] = 0
    out[:, :, :, out.shape[3] // 2 * 2 :] = 0
    return out
