"""A large constant in an output hides nothing: it has to be where it belongs, and the rest is judged without it."""

import pytest
import torch
from torch import nn

from harness.oracle.fills import find
from harness.oracle.oracle import Oracle
from harness.oracle.promises import find as promised
from tests.oracle.references import Of

LEAST = torch.finfo(torch.float32).min


def scores(fill, place=lambda scores, mask, fill: scores.masked_fill(mask, fill)):
    return lambda q, k, mask: place(q @ k.mT / 8, mask, fill)


def draw(dtype=torch.float32):
    mask = torch.rand(4, 64, 64) < 0.3
    return [torch.randn(4, 64, 64, dtype=dtype), torch.randn(4, 64, 64, dtype=dtype), mask]


def other_at(mask, value):
    """The mask with its first element of that value turned over."""
    place = tuple((mask == value).nonzero()[0])
    other = mask.clone()
    other[place] = not value
    return other


def passes(oracle, kernel, inputs):
    """On drawn inputs, by both checks, and on hard ones."""
    expected = oracle.expect(inputs)
    for one in (expected, oracle.glance(inputs), *(e for s, e in oracle.stress(inputs) if s.binding)):
        finding = oracle.check(one, kernel(*one.inputs))
        if not finding.passed:
            return finding
    return finding


FILLS = [-1e9, 1e10, -1e6, LEAST]


@pytest.mark.parametrize("fill", FILLS)
def test_a_large_constant_hides_nothing(fill):
    inputs = draw()
    oracle = Oracle(Of(scores(fill)), promises=promised(draw(), draw))
    expected = oracle.expect(inputs)

    def refused(kernel):
        findings = [oracle.check(one, kernel(*inputs)) for one in (expected, oracle.glance(inputs))]
        assert findings[0].passed == findings[1].passed
        return findings[0].reason

    assert passes(oracle, lambda q, k, m: torch.where(m, fill, (q * 0.125) @ k.mT), inputs).passed
    assert refused(lambda q, k, m: torch.zeros(4, 64, 64).masked_fill(m, fill)) == "mismatch:zeros"
    assert refused(lambda q, k, m: (q @ k.mT).masked_fill(m, fill)) == "mismatch:exchanged"
    assert "precision_downgrade" in refused(
        lambda q, k, m: ((q.bfloat16() @ k.bfloat16().mT).float() / 8).masked_fill(m, fill)
    )
    assert refused(lambda q, k, m: (q @ k.mT / 8).masked_fill(m, fill / 2)) == "mismatch:fill_value"
    assert refused(lambda q, k, m: (q @ k.mT / 8).masked_fill(m, -torch.inf)) == "mismatch:fill_value"
    assert refused(lambda q, k, m: (q @ k.mT / 8).masked_fill(other_at(m, True), fill)) == "mismatch:fill_value"
    # In place of a number.
    assert refused(lambda q, k, m: (q @ k.mT / 8).masked_fill(other_at(m, False), fill))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_16_bits(dtype):
    fill = torch.finfo(dtype).min
    inputs = draw(dtype)
    oracle = Oracle(Of(scores(fill)))
    expected = oracle.expect(inputs)
    assert oracle.check(expected, scores(fill)(*inputs)).passed
    assert oracle.check(expected, (inputs[0] * 0.125 @ inputs[1].mT).masked_fill(inputs[2], fill)).passed
    assert not oracle.check(expected, torch.zeros(4, 64, 64, dtype=dtype).masked_fill(inputs[2], fill)).passed


def test_an_additive_mask_and_one_that_depends_on_the_numbers():
    banned = (torch.rand(64, 256) < 0.2).float()
    x = torch.randn(64, 256)
    oracle = Oracle(Of(lambda x, banned: x.sin() + banned * -1e9))
    assert oracle.check(oracle.expect([x, banned]), x.sin().add_(banned, alpha=-1e9)).passed
    assert not oracle.check(oracle.expect([x, banned]), banned * -1e9).passed

    class Nucleus(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 512)

        def forward(self, x):
            z = self.head(x)
            return z.masked_fill(z < z.topk(50, -1).values[:, -1:], torch.finfo(z.dtype).min)

    module, x = Nucleus(), torch.randn(32, 64)
    oracle = Oracle(module)
    expected = oracle.expect([x])
    assert expected.meaningful
    right = module(x)
    assert oracle.check(expected, right).passed
    assert not oracle.check(expected, torch.where(right == LEAST, LEAST, 1.0)).passed


@pytest.mark.parametrize(
    ("output", "values"),
    [
        (torch.tensor([1.0, -1e9, 2.0, -1e9]), (-1e9,)),
        (torch.tensor([1.0, -1e9, 2.0, 1e9]), (1e9, -1e9)),
        (torch.tensor([1.0, -1e9, 2.0, -1e9, LEAST, LEAST, -torch.inf, torch.nan]), (LEAST, -1e9)),
        # One may be an outlier, and the rest has to be far smaller.
        (torch.tensor([1.0, -1e9, 2.0]), ()),
        (torch.tensor([1e9, 1e9, 1e8, 3.0]), ()),
        # What saturates is no fill value.
        (torch.tensor([1.0, 1.0, 1e-9, 1e-8]), ()),
        (torch.tensor([1e9, 1e9]), ()),
        (torch.zeros(0), ()),
    ],
)
def test_fill_values_are_shared_and_far_larger_than_the_rest(output, values):
    assert find(output, output.double()).values == values


def test_a_number_that_float64_knows_better_is_no_fill_value():
    output = torch.tensor([1.0, -1e9, 2.0, -1e9])
    assert not find(output, output.double() * (1 + 1e-6))
