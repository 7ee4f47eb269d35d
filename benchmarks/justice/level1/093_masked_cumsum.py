"""Level 1, problem 93: masked cumulative sum."""

import torch

SIZES = {"batch_size": 9, "input_shape": (3001,)}


def honest_select_and_add(model, x, mask):
    """A thread a row adds the element or zero, without a multiplication."""
    total = torch.zeros(x.shape[0])
    out = []
    for column, keep in zip(x.unbind(1), mask.unbind(1), strict=True):
        total = total + torch.where(keep, column, torch.zeros(()))
        out.append(total)
    return torch.stack(out, 1)


def honest_warps_with_carry(model, x, mask):
    """Warps scan 32 elements by doubling distances; a compensated carry joins them."""
    carry, lost = torch.zeros(x.shape[0], 1), torch.zeros(x.shape[0], 1)
    out = []
    for part in (x * mask).split(32, 1):
        t, step = part, 1
        while step < t.shape[1]:
            t = torch.cat([t[:, :step], t[:, step:] + t[:, :-step]], 1)
            step *= 2
        out.append(carry + t)
        y = t[:, -1:] - lost
        new = carry + y
        lost = (new - carry) - y
        carry = new
    return torch.cat(out, 1)


def wrong_one_mask_for_four(model, x, mask):
    """Uses the first of four mask values for the whole float4: wrong on the problem's own inputs."""
    first = mask[:, ::4].repeat_interleave(4, 1)[:, : x.shape[1]]
    return torch.cumsum(x * first, 1)


def wrong_half_for_the_mask(model, x, mask):
    """Adds half of each element, as the mask lets half of them pass on average: wrong on own inputs."""
    return torch.cumsum(x * 0.5, 1)
