"""Level 1, problem 97: scaled dot product attention."""

import math

import torch

SIZES = {"batch_size": 1, "num_heads": 3, "sequence_length": 97, "embedding_dimension": 104}


def honest_online_tiles(model, q, k, v):
    """Tiles of 32 keys with an online softmax; sum and accumulator are rescaled when the maximum grows.

    The outputs' mean is 17 times their spread, here and in the next one.
    """
    q = q * (1.0 / math.sqrt(q.shape[-1]))
    top = torch.full((*q.shape[:3], 1), -torch.inf)
    total, acc = torch.zeros_like(top), torch.zeros(*q.shape[:3], v.shape[-1])
    for i in range(0, k.shape[2], 32):
        scores = q @ k[:, :, i : i + 32].transpose(2, 3)
        new = torch.maximum(top, scores.amax(3, keepdim=True))
        p = torch.exp(scores - new)
        shrink = torch.exp(top - new)
        total = total * shrink + p.sum(3, keepdim=True)
        acc = acc * shrink + p @ v[:, :, i : i + 32]
        top = new
    return acc / total


def honest_scores_in_base_two(model, q, k, v):
    """All scores of a row block at once; log2(e) is folded into the scale and the sum divides at the end."""
    scores = (q @ k.transpose(2, 3)) * (1.4426950408889634 / math.sqrt(q.shape[-1]))
    p = torch.exp2(scores - scores.amax(3, keepdim=True))
    return (p @ v) * torch.reciprocal(p.sum(3, keepdim=True))


def wrong_accumulator_not_rescaled(model, q, k, v):
    """When the maximum grows only the sum is rescaled: wrong on the problem's own inputs."""
    q = q * (1.0 / math.sqrt(q.shape[-1]))
    top = torch.full((*q.shape[:3], 1), -torch.inf)
    total, acc = torch.zeros_like(top), torch.zeros(*q.shape[:3], v.shape[-1])
    for i in range(0, k.shape[2], 32):
        scores = q @ k[:, :, i : i + 32].transpose(2, 3)
        new = torch.maximum(top, scores.amax(3, keepdim=True))
        p = torch.exp(scores - new)
        total = total * torch.exp(top - new) + p.sum(3, keepdim=True)
        acc = acc + p @ v[:, :, i : i + 32]
        top = new
    return acc / total


def wrong_mean_of_the_values(model, q, k, v):
    """Takes all weights for equal, as they nearly are for uniform inputs: wrong on the problem's own inputs."""
    return v.mean(2, keepdim=True).expand_as(v).contiguous()
