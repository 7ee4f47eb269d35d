"""Activations to first order: for small numbers nearly right, and never for large ones."""

import pytest
import torch
from torch.nn import functional as F

from harness.oracle.mistakes.linear_activations import FIRST_ORDER, LinearActivations

FUNCTIONS = {
    **{name: getattr(torch, name) for name in ("tanh", "sin", "sigmoid", "erf", "atan", "asinh")},
    **{name: getattr(F, name) for name in ("gelu", "silu", "mish", "elu", "hardtanh", "softplus")},
    "tanh_": lambda x: x.clone().tanh_(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_near_for_small_numbers_and_far_for_large_ones(name):
    numbers = torch.randn(1000, dtype=torch.float64)
    for size, near in ((1e-4, True), (2.0, False)):
        right = FUNCTIONS[name](size * numbers)
        with LinearActivations() as mode:
            found = FUNCTIONS[name](size * numbers)
        assert mode.met
        assert torch.allclose(found, right, rtol=1e-3, atol=0) is near


def test_all_of_them_are_tried_and_nothing_else_is_met():
    assert {name.removesuffix("_") for name in FUNCTIONS} == FIRST_ORDER.keys()
    with LinearActivations() as mode:
        assert torch.equal(torch.relu(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))
    assert not mode.met
