"""Level 2, problem 45: linear layer, sigmoid, linear layer, log-sum-exp over features."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 43, "input_size": 211, "hidden_size": 307, "output_size": 101}


def honest_sigmoid_folded(model, x):
    """Sigmoid is half plus half a tanh: the halves go into the second layer's bias and weight."""
    first, second = model.linear1, model.linear2
    hidden = torch.tanh(F.linear(x, 0.5 * first.weight, 0.5 * first.bias))
    out = F.linear(hidden, 0.5 * second.weight, second.bias + 0.5 * second.weight.sum(1))
    top = out.amax(1, keepdim=True)
    return (top + torch.log(torch.exp(out - top).sum(1, keepdim=True))).squeeze(1)


def honest_fused_hidden_blocks(model, x):
    """Blocks of 32 hidden units feed the second product at once; log-sum-exp merged over blocks of 16."""
    first, second = model.linear1, model.linear2
    out = second.bias.expand(x.shape[0], -1)
    for start in range(0, first.out_features, 32):
        part = x @ first.weight[start : start + 32].T + first.bias[start : start + 32]
        part = 1.0 / (1.0 + torch.exp2(part * -1.4426950408889634))
        out = out + part @ second.weight[:, start : start + 32].T
    top = torch.full((x.shape[0],), float("-inf"))
    total = torch.zeros_like(top)
    for block in out.split(16, 1):
        higher = torch.maximum(top, block.amax(1))
        total = total * torch.exp(top - higher) + torch.exp(block - higher[:, None]).sum(1)
        top = higher
    return top + torch.log(total)


def wrong_bfloat16_hidden(model, x):
    """Keeps the hidden layer in bfloat16 between the products; seen on the drawn inputs."""
    hidden = torch.sigmoid(model.linear1(x)).bfloat16().float()
    return torch.logsumexp(model.linear2(hidden), 1)


def wrong_tail_features_left_out(model, x):
    """Only whole blocks of 32 features enter the log-sum-exp; seen on the drawn inputs."""
    out = model.linear2(torch.sigmoid(model.linear1(x)))
    return torch.logsumexp(out[:, : out.shape[1] // 32 * 32], 1)
