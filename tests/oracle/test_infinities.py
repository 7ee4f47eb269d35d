"""NaN and infinities that belong in an output, a mask's among them, keep no hard input from being tried."""

import pytest
import torch

from harness.oracle.oracle import Oracle
from tests.oracle.references import Of
from tests.oracle.test_fills import passes


def draw():
    mask = torch.rand(32, 64) < 0.4
    # Nothing is left of one row.
    mask[3] = True
    return [torch.randn(32, 64), mask]


def without_maximum(x, mask):
    y = x.masked_fill(mask, -torch.inf).exp()
    return y / y.sum(-1, keepdim=True)


def by_hand(x, mask):
    y = x.masked_fill(mask, -torch.inf)
    z = (y - y.amax(-1, keepdim=True)).exp()
    return z / z.sum(-1, keepdim=True)


MASKED = {
    "nan in rows": (lambda x, m: x.masked_fill(m, -torch.inf).softmax(-1), by_hand, without_maximum),
    "-inf at elements": (
        lambda x, m: x.tanh().mul(x).masked_fill(m, -torch.inf),
        lambda x, m: torch.where(m, -torch.inf, x * x.tanh()),
        lambda x, m: torch.where(m, -torch.inf, (x * x.tanh()).clamp(max=20)),
    ),
    "divided by zero": (
        lambda x, m: x / m.float(),
        lambda x, m: x * (1 / m.float()),
        lambda x, m: x.clamp(-20, 20) / m.float(),
    ),
}


@pytest.mark.parametrize("kind", MASKED)
def test_hard_inputs_are_tried_all_the_same(kind):
    reference, honest, wrong = MASKED[kind]
    inputs = draw()
    oracle = Oracle(Of(reference))
    expected = oracle.expect(inputs)
    assert expected.meaningful
    assert len(list(oracle.stress(inputs))) > 5
    assert oracle.check(expected, wrong(*inputs)).passed
    assert passes(oracle, honest, inputs).passed
    assert not passes(oracle, wrong, inputs).passed


def test_what_overflows_is_asked_of_nobody():
    """No drawn input has it, so it is no mask's."""
    oracle = Oracle(Of(torch.exp))
    inputs = [torch.randn(32, 64)]
    assert oracle.expect(inputs).meaningful
    names = [stress.name for stress, _ in oracle.stress(inputs)]
    assert names
    assert "huge_above" not in names


def test_infinities_at_other_places_than_drawn_ones():
    """Which element is zero, and its logarithm infinite, depends on the numbers themselves."""
    oracle = Oracle(Of(lambda x: x.relu().log()))
    inputs = [torch.randn(32, 64)]
    assert oracle.expect(inputs).meaningful
    for stress, expected in oracle.stress(inputs):
        assert torch.equal(expected.native.isinf(), inputs[0] <= 0), stress.name
