"""Level 3, problem 13: batch norm, ReLU, 1x1 convolution without bias, average pool by 2."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 5, "num_input_features": 27, "num_output_features": 43, "height": 19, "width": 26}


def _normed(norm, x):
    if norm.training:
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
    else:
        mean, var = norm.running_mean, norm.running_var
    scale = (norm.weight * torch.rsqrt(var + norm.eps))[:, None, None]
    return (x - mean[:, None, None]) * scale + norm.bias[:, None, None]


def honest_pooled_before_product(model, x):
    """The pool commutes with the 1x1 convolution, so the product sees a quarter of the pixels."""
    norm, conv = model.transition[0], model.transition[2]
    pooled = F.avg_pool2d(torch.relu(_normed(norm, x)), 2)
    return torch.einsum("nchw,oc->nohw", pooled, conv.weight[:, :, 0, 0])


def honest_channels_last_merged_moments(model, x):
    """Channels-last; moments a sample by Chan's merge; product over all pixels, then four neighbours."""
    norm, conv = model.transition[0], model.transition[2]
    last = x.permute(0, 2, 3, 1).contiguous()
    if norm.training:
        size = last.shape[1] * last.shape[2]
        mean, squares, count = torch.zeros(x.shape[1]), torch.zeros(x.shape[1]), 0
        for sample in last.flatten(1, 2):
            sample_mean = sample.sum(0) / size
            delta = sample_mean - mean
            squares = squares + ((sample - sample_mean) ** 2).sum(0)
            squares = squares + delta * delta * (count * size / (count + size))
            mean = mean + delta * (size / (count + size))
            count += size
        var = squares / count
    else:
        mean, var = norm.running_mean, norm.running_var
    out = ((last - mean) / torch.sqrt(var + norm.eps) * norm.weight + norm.bias).clamp(min=0)
    out = out @ conv.weight[:, :, 0, 0].T
    out = out[:, : out.shape[1] // 2 * 2, : out.shape[2] // 2 * 2]
    out = (out[:, 0::2, 0::2] + out[:, 0::2, 1::2]) + (out[:, 1::2, 0::2] + out[:, 1::2, 1::2])
    return (out * 0.25).permute(0, 3, 1, 2)


def wrong_pooled_before_relu(model, x):
    """Moves the pool before ReLU, with which it does not commute; seen on the drawn inputs."""
    norm, conv = model.transition[0], model.transition[2]
    return F.conv2d(torch.relu(F.avg_pool2d(_normed(norm, x), 2)), conv.weight)


def wrong_sampled_moments(model, x):
    """The batch's moments come from every eighth column; seen on the drawn inputs."""
    norm, conv = model.transition[0], model.transition[2]
    var, mean = torch.var_mean(x[..., ::8], (0, 2, 3), correction=0, keepdim=True)
    out = (x - mean) * torch.rsqrt(var + norm.eps) * norm.weight[:, None, None] + norm.bias[:, None, None]
    return F.avg_pool2d(F.conv2d(torch.relu(out), conv.weight), 2)
