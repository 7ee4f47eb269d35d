"""Many outputs checked at once: each is accepted exactly where it is by itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from harness.oracle import checks
from harness.oracle.oracle import Oracle


class Model(nn.Module):
    def __init__(self, far):
        super().__init__()
        self.far = far

    def forward(self, x):
        return x * 0.01 + 100 if self.far else torch.sigmoid(x) * x


def off(native, by, how, generator):
    exact = native.double().clone()
    if how == "everywhere":
        return (exact * (1 + by * torch.randn(exact.shape, generator=generator, dtype=torch.float64))).to(native.dtype)
    if how == "one element":
        exact.reshape(-1)[0] += 10 * by
    if how == "some":
        exact.reshape(-1)[: max(1, exact.numel() // 10)] *= 1 + by
    if how == "nan":
        exact.reshape(-1)[-1] = torch.nan
    return exact.to(native.dtype)


@given(
    shape=st.sampled_from([(), (1,), (3,), (16, 10), (7, 70), (65, 64), (2, 3, 4, 5), (64, 3), (5, 100, 2)]),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.float64]),
    far=st.booleans(),
    how=st.sampled_from(["not", "everywhere", "one element", "some", "nan"]),
    exponents=st.lists(st.integers(-8, 0), min_size=1, max_size=4),
    seed=st.integers(0, 1 << 20),
)
@settings(deadline=None, max_examples=60)
def test_what_is_accepted_with_others_is_accepted_alone(shape, dtype, far, how, exponents, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for _ in exponents]
    oracle = Oracle(Model(far).to(dtype))
    oracle.expect([drawn[0]], 0)
    glances = [oracle.glance([one], 0) for one in drawn]
    outputs = [off(one.native, 10.0**n, how, generator) for one, n in zip(glances, exponents, strict=True)]
    together = oracle.check_together(glances, outputs)
    alone = [
        checks.fast(oracle.reference, one.inputs, one.native, output, oracle._fast) is not None
        for one, output in zip(glances, outputs, strict=True)
    ]
    assert together == alone


@pytest.mark.parametrize("wrong", ["shape", "dtype", "kind"])
def test_an_output_of_another_form_is_for_the_check_of_one(wrong):
    x = torch.randn(4, 8)
    oracle = Oracle(Model(False))
    oracle.expect([x], 0)
    glance = oracle.glance([x], 0)
    other = {"shape": glance.native[:2], "dtype": glance.native.half(), "kind": [glance.native]}[wrong]
    assert oracle.check_together([glance, glance], [glance.native, other]) == [False, False]


def test_leaves_that_are_no_floats_count():
    class Both(nn.Module):
        def forward(self, x):
            return x * 2, x > 0, 3

    x = torch.randn(4, 8)
    oracle = Oracle(Both())
    oracle.expect([x], 0)
    glances = [oracle.glance([x], 0)] * 3
    values, mask, number = glances[0].native
    outputs = [(values, mask, number), (values, ~mask, number), (values, mask, 4)]
    assert oracle.check_together(glances, outputs) == [True, False, False]


def test_keys_may_come_in_another_order():
    class Named(nn.Module):
        def forward(self, x):
            return {"values": x * 2, "places": x.argmax(-1)}

    x = torch.randn(4, 8)
    oracle = Oracle(Named())
    oracle.expect([x], 0)
    glance = oracle.glance([x], 0)
    other = dict(reversed(glance.native.items()))
    assert oracle.check_together([glance, glance], [other, glance.native]) == [True, True]
