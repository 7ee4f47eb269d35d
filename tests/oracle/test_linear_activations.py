"""Activations to first order: for small numbers nearly right, and never for large ones."""

import pytest
import torch
from torch.nn import functional as F

from harness.oracle.mistakes.linear_activations import BOUNDED, FIRST_ORDER, LinearActivations

FUNCTIONS = {
    **{name: getattr(torch, name) for name in ("tanh", "sin", "sigmoid", "erf", "atan", "asinh")},
    **{name: getattr(F, name) for name in ("gelu", "silu", "mish", "elu", "celu", "hardtanh", "softplus")},
    **{name: getattr(F, name) for name in ("hardsigmoid", "hardswish")},
    "clamp": lambda x: x.clamp(-1, 1),
    "clamp_min": lambda x: x.clamp_min(-0.5),
    "clamp_max": lambda x: x.clamp_max(0.5),
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
    assert {name.removesuffix("_") for name in FUNCTIONS} == FIRST_ORDER.keys() | BOUNDED.keys()
    with LinearActivations() as mode:
        assert torch.equal(torch.relu(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))
    assert not mode.met


@pytest.mark.parametrize(
    "bounded", [F.relu6, lambda x: x.clamp(min=0), lambda x: x.clamp(1e-6, 1), lambda x: x.clamp(-torch.ones(2))]
)
def test_what_has_a_bound_at_zero_or_beyond_is_not_linear_there(bounded):
    numbers = torch.tensor([-2.0, 2.0])
    right = bounded(numbers)
    with LinearActivations() as mode:
        assert torch.equal(bounded(numbers), right)
    assert not mode.met
