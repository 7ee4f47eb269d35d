"""Level 2, problem 13: transposed 3D convolution, mean over depth, bias, softmax, tanh, scaling."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 2, "out_channels": 29, "depth": 17, "height": 13, "width": 11}


def _finish(model, out):
    out = torch.softmax(out + model.bias, 1)
    return torch.tanh(out) * model.scaling_factor


def honest_depth_summed_before(model, x):
    """The mean moves before the convolution: one plane of sums a depth tap, then 2D products; online softmax."""
    conv = model.conv_transpose
    depth, padding = x.shape[2], conv.padding[0]
    out = conv.bias.view(1, -1, 1, 1)
    for tap in range(conv.kernel_size[0]):
        # Depth d lands at d + tap - padding, which must be within the output.
        first, last = max(0, padding - tap), min(depth, depth + padding - tap)
        plane = x[:, :, first:last].sum(2)
        out = out + F.conv_transpose2d(plane, conv.weight[:, :, tap], padding=padding) / depth
    out = out[:, :, None] + model.bias
    top = torch.full_like(out[:, :1], float("-inf"))
    total = torch.zeros_like(top)
    for c in range(out.shape[1]):
        value = out[:, c : c + 1]
        higher = torch.maximum(top, value)
        total = total * torch.exp(top - higher) + torch.exp(value - higher)
        top = higher
    return torch.tanh(torch.exp(out - top) / total) * model.scaling_factor


def honest_running_mean_over_depth(model, x):
    """Turned kernel, a running sum along the depth, one product for the mean, exp2 for the softmax."""
    conv = model.conv_transpose
    turned = conv.weight.flip(2, 3, 4).transpose(0, 1)
    out = F.conv3d(x, turned, conv.bias, padding=conv.kernel_size[0] - 1 - conv.padding[0])
    total = torch.zeros_like(out[:, :, 0])
    for d in range(out.shape[2]):
        total = total + out[:, :, d]
    logits = (total * (1.0 / out.shape[2]))[:, :, None] + model.bias
    weights = torch.exp2((logits - logits.amax(1, keepdim=True)) * 1.4426950408889634)
    return torch.tanh(weights * (1.0 / weights.sum(1, keepdim=True))) * model.scaling_factor


def wrong_border_depths_ignored(model, x):
    """Every depth tap takes the sum over all depths, though the outer taps miss one plane; drawn inputs."""
    conv = model.conv_transpose
    weight = conv.weight.sum(2)
    out = F.conv_transpose2d(x.mean(2), weight, conv.bias, padding=conv.padding[0])
    return _finish(model, out[:, :, None])


def wrong_bias_cancelled_in_softmax(model, x):
    """Leaves out the bias as if a shift by channel cancelled in a softmax over channels; drawn inputs."""
    out = model.conv_transpose(x).mean(2, keepdim=True)
    return torch.tanh(torch.softmax(out, 1)) * model.scaling_factor
