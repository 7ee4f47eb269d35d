"""Level 1, problem 50: 2D convolution with stride and bias, AlexNet's first."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 1}


def _out_size(conv, size):
    return (size + 2 * conv.padding[0] - conv.kernel_size[0]) // conv.stride[0] + 1


def honest_im2col(model, x):
    """Unfolds the input to a matrix, multiplies in tiles along K and adds the bias in the epilogue."""
    conv = model.conv1
    columns = F.unfold(x, conv.kernel_size, padding=conv.padding, stride=conv.stride)
    weight = conv.weight.flatten(1)
    acc = torch.zeros(x.shape[0], weight.shape[0], columns.shape[2])
    for k in range(0, weight.shape[1], 64):
        acc = acc + weight[:, k : k + 64] @ columns[:, k : k + 64]
    h, w = _out_size(conv, x.shape[2]), _out_size(conv, x.shape[3])
    return acc.view(x.shape[0], -1, h, w) + conv.bias.view(1, -1, 1, 1)


def honest_kernel_rows(model, x):
    """Starts from the bias and adds one kernel row after another."""
    conv = model.conv1
    s = conv.stride[0]
    h = _out_size(conv, x.shape[2])
    x = F.pad(x, (conv.padding[1], conv.padding[1], conv.padding[0], conv.padding[0]))
    out = conv.bias.view(1, -1, 1, 1)
    for r in range(conv.kernel_size[0]):
        rows = x[:, :, r : r + (h - 1) * s + 1 : s].unfold(3, conv.kernel_size[1], s)
        out = out + torch.einsum("nchwk,ock->nohw", rows, conv.weight[:, :, r])
    return out


def wrong_bias_left_out(model, x):
    """Never adds the bias: wrong on the problem's own inputs."""
    conv = model.conv1
    return F.conv2d(x, conv.weight, None, conv.stride, conv.padding)


def wrong_padding_on_one_side(model, x):
    """All padding goes to the right and the bottom: wrong on the problem's own inputs."""
    conv = model.conv1
    x = F.pad(x, (0, 2 * conv.padding[1], 0, 2 * conv.padding[0]))
    return F.conv2d(x, conv.weight, conv.bias, conv.stride)
