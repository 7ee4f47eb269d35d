"""Level 1, problem 40: layer normalisation over all axes but the first."""

import torch

SIZES = {"batch_size": 5, "features": 3, "dim1": 41, "dim2": 43}


def honest_split_samples(model, x):
    """Several blocks a sample leave a mean and squared deviations, which a second kernel merges."""
    ln = model.ln
    flat = x.flatten(1)
    mean, m2, count = torch.zeros(x.shape[0], 1), torch.zeros(x.shape[0], 1), 0
    for chunk in flat.split(512, 1):
        k = chunk.shape[1]
        chunk_mean = chunk.mean(1, keepdim=True)
        delta = chunk_mean - mean
        m2 = m2 + ((chunk - chunk_mean) ** 2).sum(1, keepdim=True) + delta * delta * (count * k / (count + k))
        count += k
        mean = mean + delta * (k / count)
    y = (flat - mean) * torch.rsqrt(m2 / count + ln.eps)
    return y.view(x.shape) * ln.weight + ln.bias


def honest_two_passes_folded(model, x):
    """Mean and squared deviations in two passes over rows; the mean folded into the bias."""
    ln = model.ln
    mean = x.mean(3, keepdim=True).mean((1, 2), keepdim=True)
    var = ((x - mean) ** 2).mean(3, keepdim=True).mean((1, 2), keepdim=True)
    rstd = torch.rsqrt(var + ln.eps)
    return (x * rstd - mean * rstd) * ln.weight + ln.bias


def wrong_short_chunk_counts_in_full(model, x):
    """Averages the moments of chunks of 512 as if the short last one were whole: wrong on own inputs."""
    ln = model.ln
    chunks = x.flatten(1).split(512, 1)
    mean = torch.stack([c.mean(1) for c in chunks]).mean(0).view(-1, 1, 1, 1)
    square = torch.stack([(c * c).mean(1) for c in chunks]).mean(0).view(-1, 1, 1, 1)
    return (x - mean) * torch.rsqrt(square - mean * mean + ln.eps) * ln.weight + ln.bias


def wrong_eps_of_another_library(model, x):
    """Adds 1e-3 to the variance, another library's default: wrong on the problem's own inputs."""
    ln = model.ln
    var, mean = torch.var_mean(x, (1, 2, 3), unbiased=False, keepdim=True)
    return (x - mean) * torch.rsqrt(var + 1e-3) * ln.weight + ln.bias
