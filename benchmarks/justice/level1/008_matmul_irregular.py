"""Level 1, problem 8: matrix multiplication with irregular shapes."""

import torch
import torch.nn.functional as F

SIZES = {"M": 141, "K": 749, "N": 229}


def honest_padded_tiles(model, a, b):
    """Zero fill beyond every edge up to tiles of 64, then two interleaved accumulators along K."""
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    a = F.pad(a, (0, -k % 64, 0, -m % 64))
    b = F.pad(b, (0, -n % 64, 0, -k % 64))
    acc = [torch.zeros(a.shape[0], b.shape[1]) for _ in range(2)]
    for i, k0 in enumerate(range(0, a.shape[1], 64)):
        acc[i % 2] = acc[i % 2] + a[:, k0 : k0 + 64] @ b[k0 : k0 + 64]
    return (acc[0] + acc[1])[:m, :n]


def honest_running_sum(model, a, b):
    """One thread an output and a plain running sum along K.

    Its error is that of 749 roundings of a sum thirty times its spread.
    """
    acc = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        acc.addr_(a[:, k], b[k])
    return acc


def wrong_edge_columns_unwritten(model, a, b):
    """The grid has N / 64 tiles rounded down, so the last columns stay zero: wrong on the problem's own inputs."""
    out = a @ b
    out[:, out.shape[1] // 64 * 64 :] = 0
    return out


def wrong_reads_into_the_next_row(model, a, b):
    """The last K tile is not guarded: A runs on into its next row, B stays at its last: wrong on own inputs."""
    m, k = a.shape
    over = -k % 16
    flat = torch.cat([a.reshape(-1), torch.zeros(over)])
    index = torch.arange(m)[:, None] * k + torch.arange(k, k + over)[None, :]
    return a @ b + flat[index] @ b[-1:].expand(over, -1)
