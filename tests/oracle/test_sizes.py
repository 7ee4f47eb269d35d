"""Numbers of different sizes in one output: each is held to its own."""

import pytest
import torch

from harness.oracle.oracle import Oracle
from tests.oracle.references import Of


def figures(x, mean=lambda x: x.mean(1), variance=lambda x: x.var(1)):
    return torch.stack([x.sum(1), mean(x), variance(x), x.amax(1)], 1)


def boxes(p, score=torch.sigmoid):
    return torch.cat([(p[..., :4].sigmoid() + 7) * 80, score(p[..., 4:])], -1)


def losses(x, y, product=lambda x, y: (x * y).mean()):
    d = x - y
    return torch.stack([(d * d).sum(), d.abs().mean(), product(x, y)])


CASES = {
    "a sum beside a mean": (
        figures,
        [torch.randn(256, 1024)],
        lambda x: figures(x, lambda x: x.sum(1) / 1024, lambda x: (x - x.mean(1, keepdim=True)).square().sum(1) / 1023),
        lambda x: figures(x, lambda x: x.sum(1) / 1025),
    ),
    "boxes beside scores": (
        boxes,
        [torch.randn(4, 400, 9)],
        lambda p: boxes(p, lambda s: 1 / (1 + torch.exp(-s))),
        lambda p: boxes(p, lambda s: s.sigmoid() + 5e-5),
    ),
    "three losses": (
        losses,
        [torch.randn(256, 512), torch.randn(256, 512)],
        lambda x, y: losses(x, y, lambda x, y: (x * y).sum(0).sum() / x.numel()),
        lambda x, y: losses(x, y, lambda x, y: (x * y).mean() + 1e-4),
    ),
    "few elements of each size": (
        lambda x: x.t() @ x,
        [torch.randn(4096, 5) * torch.tensor([1.0, 10, 100, 0.1, 0.01])],
        lambda x: sum(part.t() @ part for part in x.split(64)),
        lambda x: torch.where(torch.arange(25).view(5, 5) == 24, 1.01, 1.0) * (x.t() @ x),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_small_number_beside_a_large_one(case):
    reference, inputs, honest, wrong = CASES[case]
    oracle = Oracle(Of(reference))
    expected = oracle.expect(inputs)
    assert oracle.check(expected, honest(*inputs)).passed
    finding = oracle.check(expected, wrong(*inputs))
    assert not finding.passed
    # No run of the reference explains it only because the large numbers are right.
    assert finding.reason not in ("mismatch:eval_mode", "mismatch:exchanged")


def test_a_column_of_zeros():
    """Another way to zero leaves some of the other columns' rounding there."""
    columns = torch.arange(513, dtype=torch.float64)
    angles = torch.outer(torch.arange(1024, dtype=torch.float64), columns) * (2 * torch.pi / 1024)
    oracle = Oracle(Of(torch.fft.rfft))
    x = torch.randn(64, 1024)
    by_sums = torch.complex(x @ angles.cos().float(), x @ -angles.sin().float())
    assert by_sums[:, -1].imag.any()
    expected = oracle.expect([x])
    assert oracle.check(expected, by_sums).passed
    by_sums[:, -1] += 1e-2j
    assert not oracle.check(expected, by_sums).passed


def test_what_is_rare_and_far_larger_errs_by_as_much_more():
    """The exponential of a running sum: one element of millions is most of the output, and hardly ever in a sample."""
    torch.manual_seed(4)
    drawn = torch.randn(4096, 1280) / 4

    def grown(x):
        return torch.exp(torch.cumsum(x, -1))

    oracle = Oracle(Of(grown))
    expected = oracle.expect([drawn])
    yard = expected.yards["output"]
    seen = yard.scale.size / float(expected.exact["output"].square().mean().sqrt())
    assert seen == pytest.approx(1.0)
    for other in (lambda x: grown(x.double()).float(), lambda x: torch.exp(torch.cumsum(x.flip(0), -1)).flip(0)):
        assert oracle.check(expected, other(drawn)).passed
    assert not oracle.check(expected, grown(drawn.bfloat16().float())).passed
