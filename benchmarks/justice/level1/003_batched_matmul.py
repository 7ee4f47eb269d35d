"""Level 1, problem 3: batched matrix multiplication."""

import itertools

SIZES = {"batch_size": 7, "m": 65, "k": 301, "n": 131}


def _bf16_parts(t):
    parts = []
    for _ in range(3):
        part = t.bfloat16().float()
        parts.append(part)
        t = t - part
    return parts


def honest_split_k(model, a, b):
    """Four blocks share K, and their partial products meet in whichever order the atomics come."""
    edges = [0, 76, 152, 228, a.shape[2]]
    parts = [a[:, :, i:j] @ b[:, i:j] for i, j in itertools.pairwise(edges)]
    return ((parts[2] + parts[0]) + parts[3]) + parts[1]


def honest_six_bf16_products(model, a, b):
    """Three bf16 parts of 8 bits each; the six products that matter in float32, summed in float32."""
    a0, a1, a2 = _bf16_parts(a)
    b0, b1, b2 = _bf16_parts(b)
    return ((a2 @ b0 + a1 @ b1 + a0 @ b2) + (a1 @ b0 + a0 @ b1)) + a0 @ b0


def wrong_last_batch_skipped(model, a, b):
    """The grid is one matrix short, so the last one stays zero: wrong on the problem's own inputs."""
    out = a @ b
    out[-1] = 0
    return out


def wrong_k_tail_left_out(model, a, b):
    """Walks K in whole tiles of 16 only: wrong on the problem's own inputs."""
    k = a.shape[2] // 16 * 16
    return a[:, :, :k] @ b[:, :k]
