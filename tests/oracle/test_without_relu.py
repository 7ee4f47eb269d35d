"""A ReLU that is left out: nothing changes where it does not act."""

import pytest
import torch
from torch.nn import functional as F

from harness.oracle.mistakes.without_relu import WithoutRelu


@pytest.mark.parametrize(
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
def test_it_hands_on_what_it_is_given(act):
    numbers = torch.tensor([-2.0, 3.0])
    assert not torch.equal(act(numbers), numbers)
    with WithoutRelu() as mode:
        assert torch.equal(act(numbers), numbers)
    assert mode.met


@pytest.mark.parametrize("act", [torch.tanh, F.gelu, lambda x: x.clamp(min=1e-6), lambda x: x.clamp(-1, 1)])
def test_nothing_else_is_met(act):
    numbers = torch.tensor([-2.0, 3.0])
    right = act(numbers)
    with WithoutRelu() as mode:
        assert torch.equal(act(numbers), right)
    assert not mode.met
