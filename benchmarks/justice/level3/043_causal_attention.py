"""Level 3, problem 43: causal self-attention of several heads with projections."""

import math

import torch

SIZES = {"batch_size": 2, "max_seqlen": 64, "seq_len": 45, "n_embd": 54, "n_head": 3}


def _heads(model, x):
    n, steps, width = x.shape
    qkv = model.c_attn(x).view(n, steps, 3, model.n_head, width // model.n_head)
    return qkv.permute(2, 0, 3, 1, 4)


def _attend(model, x, scale, offset=0):
    q, k, v = _heads(model, x)
    steps = x.shape[1]
    mask = torch.ones(steps, steps, dtype=torch.bool).tril(offset)
    scores = (q @ k.transpose(-2, -1) * scale).masked_fill(~mask, float("-inf"))
    return model.c_proj((torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2))


def honest_flash(model, x):
    """Tiles of 16 queries and 16 keys: online softmax with a rescaled accumulator, scale folded into base 2."""
    q, k, v = _heads(model, x)
    steps = x.shape[1]
    scale = 1.4426950408889634 / math.sqrt(q.shape[-1])
    out = torch.empty_like(q)
    for row in range(0, steps, 16):
        queries = q[:, :, row : row + 16] * scale
        count = queries.shape[2]
        top = torch.full((*queries.shape[:3], 1), float("-inf"))
        total, sums = torch.zeros_like(top), torch.zeros_like(queries)
        for col in range(0, row + count, 16):
            keys, values = k[:, :, col : col + 16], v[:, :, col : col + 16]
            scores = queries @ keys.transpose(-2, -1)
            later = torch.arange(col, col + keys.shape[2]) > torch.arange(row, row + count)[:, None]
            scores = scores.masked_fill(later, float("-inf"))
            higher = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights, fade = torch.exp2(scores - higher), torch.exp2(top - higher)
            total = total * fade + weights.sum(-1, keepdim=True)
            sums = sums * fade + weights @ values
            top = higher
        out[:, :, row : row + 16] = sums * (1.0 / total)
    return model.c_proj(out.transpose(1, 2).flatten(2))


def honest_projection_by_head(model, x):
    """Scaled queries, division after the product with the values, projection summed head by head."""
    q, k, v = _heads(model, x)
    steps, size = x.shape[1], q.shape[-1]
    scores = (q * size**-0.5) @ k.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones(steps, steps, dtype=torch.bool).triu(1), float("-inf"))
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    mixed = (weights @ v) / weights.sum(-1, keepdim=True)
    out = model.c_proj.bias.expand(*x.shape)
    for head in range(model.n_head):
        out = out + mixed[:, head] @ model.c_proj.weight[:, head * size : (head + 1) * size].T
    return out


def wrong_scale_of_whole_width(model, x):
    """Divides by the root of the whole width, not a head's; seen on the drawn inputs, plainly on normal ones."""
    return _attend(model, x, 1.0 / math.sqrt(x.shape[-1]))


def wrong_mask_off_by_one(model, x):
    """The mask lets each step see the next one; seen on the drawn inputs."""
    return _attend(model, x, 1.0 / math.sqrt(x.shape[-1] // model.n_head), 1)
