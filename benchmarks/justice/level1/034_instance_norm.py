"""Level 1, problem 34: instance normalisation."""

import torch

SIZES = {"batch_size": 3, "features": 5, "dim1": 45, "dim2": 47}


def honest_two_passes(model, x):
    """One pass for the mean in rows and then over rows, one for the squared deviations; multiplies by rsqrt."""
    mean = x.mean(3, keepdim=True).mean(2, keepdim=True)
    d = x - mean
    var = (d * d).mean(3, keepdim=True).mean(2, keepdim=True)
    return d * torch.rsqrt(var + model.inorm.eps)


def honest_welford_lanes(model, x):
    """Welford's update in 32 lanes of a warp, merged pairwise at the end."""
    flat = x.flatten(2)
    n, lanes = flat.shape[2], 32
    mean = torch.zeros(*flat.shape[:2], lanes)
    m2, count = torch.zeros_like(mean), torch.zeros(lanes)
    for i in range(0, n, lanes):
        step = flat[:, :, i : i + lanes]
        w = step.shape[2]
        count[:w] += 1
        delta = step - mean[:, :, :w]
        mean[:, :, :w] += delta / count[:w]
        m2[:, :, :w] += delta * (step - mean[:, :, :w])
    while mean.shape[2] > 1:
        half = mean.shape[2] // 2
        a, b = count[:half], count[half:]
        delta = mean[:, :, half:] - mean[:, :, :half]
        m2 = m2[:, :, :half] + m2[:, :, half:] + delta * delta * (a * b / (a + b))
        mean = mean[:, :, :half] + delta * (b / (a + b))
        count = a + b
    rstd = torch.rsqrt(m2 / n + model.inorm.eps)
    return ((flat - mean) * rstd).view(x.shape)


def wrong_eps_outside_the_root(model, x):
    """Divides by sqrt(var) + eps: wrong on tiny inputs, whose variance is of the order of eps."""
    var, mean = torch.var_mean(x, (2, 3), unbiased=False, keepdim=True)
    return (x - mean) / (torch.sqrt(var) + model.inorm.eps)


def wrong_statistics_from_a_sample(model, x):
    """Takes mean and variance from every fourth row only: wrong on the problem's own inputs."""
    var, mean = torch.var_mean(x[:, :, ::4], (2, 3), unbiased=False, keepdim=True)
    return (x - mean) * torch.rsqrt(var + model.inorm.eps)
