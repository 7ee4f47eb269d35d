"""A ReLU that is left out: nothing changes where it does not act."""

import pytest
import torch
from torch.nn import functional as F

from harness.oracle.mistakes.without_relu import FrozenRelu, WithoutRelu

EACH = pytest.mark.parametrize(
    "act",
    [
        F.relu,
        F.relu6,
        F.leaky_relu,
        lambda x: x.clamp(min=0),
        lambda x: x.clamp_min(0.0),
        lambda x: F.prelu(x, torch.full((1,), 0.25)),
        lambda x: F.threshold(x, 0.0, 0.0),
        lambda x: x.clone().relu_(),
    ],
)


@EACH
def test_it_hands_on_what_it_is_given(act):
    numbers = torch.tensor([-2.0, 3.0])
    assert not torch.equal(act(numbers), numbers)
    with WithoutRelu() as mode:
        assert torch.equal(act(numbers), numbers)
    assert mode.met


@EACH
def test_what_is_frozen_acts_as_on_the_first_entry(act):
    alike = torch.tensor([[-2.0, 3.0], [-1.0, 4.0]])
    right, slope = act(alike), -act(torch.tensor([[-1.0]]))
    with FrozenRelu() as mode:
        found = act(torch.cat([alike, alike.flip(1)]))
    assert mode.met
    assert torch.equal(found[:2], right)
    # Each goes on as it began, on the other side of zero, too.
    assert torch.equal(found[2:], torch.tensor([[3.0, -2.0], [4.0, -1.0]]) * torch.cat([slope, torch.ones(1, 1)], 1))


@pytest.mark.parametrize("act", [F.relu, lambda x: x.clone().relu_()])
def test_of_a_single_entry_nothing_is_frozen(act):
    with FrozenRelu() as mode:
        act(torch.randn(1, 9))
        act(torch.randn(()))
    assert not mode.met


@pytest.mark.parametrize("act", [torch.tanh, F.gelu, lambda x: x.clamp(min=1e-6), lambda x: x.clamp(-1, 1)])
def test_nothing_else_is_met(act):
    numbers = torch.tensor([-2.0, 3.0])
    right = act(numbers)
    with WithoutRelu() as mode:
        assert torch.equal(act(numbers), right)
    assert not mode.met
