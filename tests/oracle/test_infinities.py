"""NaN and infinities that belong in an output, a mask's among them, keep no hard input from being tried."""

import pytest
import torch
import torch.nn.functional as F

from harness.oracle.oracle import Oracle
from harness.oracle.stress import SETS
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
    names = set()
    for stress, expected in oracle.stress(inputs, sets=[one for one in SETS if one.binding]):
        assert torch.equal(expected.native.isinf(), expected.inputs[0] <= 0), stress.name
        names.add(stress.name)
    assert {"signs", "rolled", "one_row_far_up"} <= names


def cross_entropy(x, y):
    return F.binary_cross_entropy(torch.sigmoid(x), y)


def from_logits(x, y):
    return F.binary_cross_entropy_with_logits(x, y)


def test_a_cross_entropy_may_be_computed_from_logits():
    """Of probabilities that have become zero or one PyTorch takes -100 for the logarithm; of logits there is no end."""
    inputs = [torch.randn(256, 128), torch.rand(256, 128)]
    oracle = Oracle(Of(cross_entropy))
    finding = passes(oracle, from_logits, inputs)
    assert finding.passed, finding.message
    names = {stress.name for stress, _ in oracle.stress(inputs)}
    assert {"signs", "negative", "rolled"} <= names
    assert not passes(oracle, lambda x, y: from_logits(x.clamp(-3, 3), y), inputs).passed


def test_what_the_reference_raises_for_stays_as_it_was_drawn():
    """Targets that a hard input takes out of their range would keep the other inputs from being hard."""
    x, y = torch.randn(256, 128), torch.rand(256, 128)
    oracle = Oracle(Of(cross_entropy))
    oracle.expect([x, y])
    assert oracle.held == [1]
    for _, expected in oracle.stress([x, y]):
        assert torch.equal(expected.inputs[1], y)
    oracle = Oracle(Of(F.mse_loss))
    oracle.expect([x, y])
    assert oracle.held == []


def test_where_drawn_inputs_have_such_probabilities_the_reference_is_right():
    inputs = [100 * torch.randn(256, 128), torch.rand(256, 128)]
    oracle = Oracle(Of(cross_entropy))
    assert not passes(oracle, from_logits, inputs).passed
    assert passes(oracle, cross_entropy, inputs).passed


def test_a_nan_that_is_compared_decides_nothing():
    """A row of equal numbers is divided by nothing, and what is compared with that is nobody's to get right."""

    def spread(x):
        return x - x.amin(-1, keepdim=True), x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True)

    def lower_half(x):
        above, width = spread(x)
        return (above / width <= 0.5).float() * x

    def without_division(x):
        above, width = spread(x)
        return (above <= 0.5 * width).float() * x

    inputs = [torch.randn(16, 64)]
    oracle = Oracle(Of(lower_half))
    oracle.expect(inputs)
    sets = {stress.name: these for stress, these in oracle.stress(inputs) if stress.binding}
    assert "constant_rows" not in sets
    assert {"signs", "negative", "spike"} <= set(sets)
    for name, these in sets.items():
        assert oracle.check(these, without_division(*these.inputs)).passed, name
