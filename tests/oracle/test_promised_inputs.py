"""A kernel may use what the inputs promise, and nothing beyond: that is refused on hard inputs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from harness.oracle.oracle import Oracle
from harness.oracle.promises import find
from tests.oracle.references import Of

N, M = 48, 40


@dataclass
class Promised:
    """A reference, its inputs, a kernel that uses what they promise, and those that use more, right on drawn inputs."""

    reference: Callable[..., Any]
    draw: Callable[[], list[Any]]
    honest: Callable[..., Any]
    more: dict[str, Callable[..., Any]]
    # Wrong on drawn inputs as well.
    wrong: dict[str, Callable[..., Any]] = field(default_factory=dict)


def product(a, b):
    return torch.relu(a @ b)


def mirrored(a):
    return a.tril() + a.tril(-1).mT


def divergence(z, p):
    return F.kl_div(F.log_softmax(z, -1), p, reduction="none").sum(-1)


def divergence_of_ones(z, p):
    """What stands before the logarithm of z's sum is the sum of p."""
    return torch.xlogy(p, p).sum(-1) - (p * z).sum(-1) + z.logsumexp(-1)


def boxes():
    corner = torch.rand(N, 2)
    return [torch.cat([corner, corner + torch.rand(N, 2)], 1)]


def bounds():
    low = torch.rand(N, M)
    return [torch.randn(N, M), low, low + torch.rand(N, M)]


def hinge(x, y):
    return (1 - x * y).clamp_min(0)


CASES = {
    "lower triangle": Promised(
        product,
        lambda: [torch.rand(N, N).tril(), torch.rand(N, M)],
        lambda a, b: torch.relu(a.tril() @ b),
        {"no number is negative": lambda a, b: a.tril() @ b},
        {"zeros on the diagonal": lambda a, b: product(a.tril(-1), b), "ones": lambda a, b: product(a.tril(-1), b) + b},
    ),
    "upper triangle": Promised(
        product,
        lambda: [torch.rand(N, N).triu(), torch.rand(N, M)],
        lambda a, b: torch.relu(a.triu() @ b),
        {"no number is negative": lambda a, b: a.triu() @ b},
        {"the other triangle": lambda a, b: product(a.tril(), b)},
    ),
    "unit diagonal": Promised(
        product,
        lambda: [torch.rand(N, N).tril(-1) + torch.eye(N), torch.rand(N, M)],
        lambda a, b: torch.relu(a.tril(-1) @ b + b),
        {"no number is negative": lambda a, b: a.tril(-1) @ b + b},
    ),
    "symmetric": Promised(
        product,
        lambda: [mirrored(torch.rand(N, N)), torch.rand(N, M)],
        lambda a, b: torch.relu(mirrored(a) @ b),
        {"no number is negative": lambda a, b: mirrored(a) @ b},
        {"a triangle": lambda a, b: product(a.tril(), b)},
    ),
    "diagonal": Promised(
        product,
        lambda: [torch.rand(N).diag(), torch.rand(N, M)],
        lambda a, b: torch.relu(a.diagonal()[:, None] * b),
        {"no number is negative": lambda a, b: a.diagonal()[:, None] * b},
        {"the identity": lambda a, b: b.clone()},
    ),
    "ascending": Promised(
        lambda x: torch.relu(x.sort(-1).values),
        lambda: [torch.rand(N, M).sort(-1).values],
        torch.relu,
        {"no number is negative": torch.clone},
        {"descending": lambda x: torch.relu(x.flip(-1))},
    ),
    "descending": Promised(
        lambda x: x.amax(-1) - x.amin(-1).abs(),
        lambda: [torch.rand(N, M).sort(-1, descending=True).values],
        lambda x: x[..., 0] - x[..., -1].abs(),
        {"no number is negative": lambda x: x[..., 0] - x[..., -1]},
    ),
    "one-hot": Promised(
        product,
        lambda: [F.one_hot(torch.randint(M, (N,)), M).float(), torch.rand(M, N)],
        lambda x, w: torch.relu(w[x.argmax(-1)]),
        {"no number is negative": lambda x, w: w[x.argmax(-1)]},
    ),
    "probabilities": Promised(
        divergence,
        lambda: [torch.randn(N, M), torch.softmax(torch.randn(N, M), -1)],
        divergence_of_ones,
        {"none is above a half": lambda z, p: divergence_of_ones(z, p.clamp_max(0.5))},
        {"all are alike": lambda z, p: divergence(z, torch.full_like(p, 1 / M))},
    ),
    "probabilities of channels": Promised(
        lambda z, p: divergence(z.mT, p.mT),
        lambda: [torch.randn(3, M, N), torch.softmax(torch.randn(3, M, N), 1)],
        lambda z, p: divergence_of_ones(z.mT, p.mT),
        {"none is above a half": lambda z, p: divergence_of_ones(z.mT, p.mT.clamp_max(0.5))},
    ),
    "boxes": Promised(
        lambda b: (b[:, 2:] - b[:, :2]).clamp_min(0).prod(-1),
        boxes,
        lambda b: (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]),
        {"no corner is negative": lambda b: (b[:, 2:].abs() - b[:, :2].abs()).clamp_min(0).prod(-1)},
    ),
    "bounds": Promised(
        lambda x, low, high: x.maximum(low).minimum(high),
        bounds,
        lambda x, low, high: x.minimum(high).maximum(low),
        {"no bound is negative": lambda x, low, high: x.maximum(low.abs()).minimum(high)},
    ),
    "log-probabilities": Promised(
        lambda x: torch.softmax(x, -1),
        lambda: [torch.log_softmax(torch.rand(N, M), -1)],
        torch.exp,
        {"none is above a tenth": lambda x: x.exp().clamp_max(0.1)},
    ),
    "labels": Promised(
        hinge,
        lambda: [torch.rand(N, M), torch.randint(2, (N, M)).float() * 2 - 1],
        lambda x, y: torch.where(y > 0, 1 - x, 1 + x).clamp_min(0),
        {"no prediction is far off": lambda x, y: torch.where(y > 0, 1 - x, 1 + x)},
        {"all are right": lambda x, y: (1 - x).clamp_min(0)},
    ),
    "integers": Promised(
        torch.matmul,
        lambda: [torch.randint(-100, 100, (N, N)).float(), torch.randn(N, M)],
        lambda x, w: x.int().float() @ w,
        {"of 8 bits": lambda x, w: x.to(torch.int8).float() @ w},
    ),
    "equal rows": Promised(
        lambda x, b: torch.relu(x + b),
        lambda: [torch.rand(N, M), torch.rand(1, M).expand(N, M)],
        lambda x, b: torch.relu(x + b[:1]),
        {"no number is negative": lambda x, b: x + b[:1]},
        {"equal columns": lambda x, b: torch.relu(x + b[:1, :1])},
    ),
    "unit length": Promised(
        lambda a, b: F.cosine_similarity(a, b).abs(),
        lambda: [F.normalize(torch.rand(N, M)), F.normalize(torch.rand(N, M))],
        lambda a, b: (a * b).sum(-1).abs(),
        {"no number is negative": lambda a, b: (a * b).sum(-1)},
    ),
    "no promise": Promised(
        torch.relu, lambda: [torch.rand(N, M)], torch.relu, {"no number is negative": torch.clone}
    ),
}  # fmt: skip


def refused_on(oracle, expected, sets, kernel):
    for name, these in [("drawn", expected), *sets]:
        if not oracle.check(these, kernel(*these.inputs)).passed:
            return name
    return ""


@pytest.mark.parametrize("name", CASES)
def test_what_is_promised_may_be_used_and_nothing_more(name):
    case = CASES[name]
    inputs = case.draw()
    promises = find(inputs, case.draw)
    assert bool(promises) == (name != "no promise")
    oracle = Oracle(Of(case.reference), promises=promises)
    expected = oracle.expect(inputs)
    sets = [(stress.name, these) for stress, these in oracle.stress(inputs) if stress.binding]
    assert len(sets) >= 4
    assert refused_on(oracle, expected, sets, case.honest) == ""
    assert refused_on(oracle, expected, sets, case.reference) == ""
    for word, kernel in case.more.items():
        assert refused_on(oracle, expected, sets, kernel) not in ("", "drawn"), word
    for word, kernel in case.wrong.items():
        assert refused_on(oracle, expected, sets, kernel) == "drawn", word
    if promises and name not in ("one-hot", "diagonal"):
        # Without what was found, an honest kernel was refused: the bug this is about.
        blind = Oracle(Of(case.reference))
        blind.expect(inputs)
        hard = [(stress.name, these) for stress, these in blind.stress(inputs) if stress.binding]
        assert refused_on(blind, expected, hard, case.honest) != ""
