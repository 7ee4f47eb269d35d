"""Where an output jumps, rounding decides about a few elements: either answer is right there, and nowhere else."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.oracle.exact import ExactReference
from harness.oracle.formats import Format, round_to
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of


def in_two_parts(x):
    """The sums of rows in another order."""
    return x[:, ::2].sum(1) + x[:, 1::2].sum(1)


def expected_near_a_jump(jump, at=0.0):
    """The oracle, and what to expect of inputs for which two orders of summation jump differently, at one row, and the
    reference's own run as the exact one."""
    oracle = Oracle(Of(lambda x: jump(x.sum(1))))
    for _ in range(1000):
        x = torch.randn(2048, 64)
        x[77, 0] -= x[77].sum() - at
        one, other = jump(x.sum(1)), jump(in_two_parts(x))
        # A sum of exactly zero is no side of it.
        if not torch.equal(one, other) and in_two_parts(x)[77] != at != x[77].sum():
            expected = oracle.expect([x])
            if torch.equal(one.sign(), expected.exact["output"].float().sign()):
                return oracle, expected
    raise AssertionError("no such inputs among so many")


def test_rounding_decides_about_a_sign():
    oracle, expected = expected_near_a_jump(torch.sign)
    x = expected.inputs[0]
    right = torch.sign(in_two_parts(x))
    finding = oracle.check(expected, right)
    assert finding.passed
    assert finding.evidence["decided_by_rounding"] == 1
    assert oracle.check(oracle.glance([x]), right).passed
    # A sum that rounds to zero has no sign.
    assert oracle.check(expected, torch.where(right == expected.native, right, 0.0)).passed
    # About no other element, nor for another value than those that it jumps between.
    wrong = right.clone()
    wrong[x.sum(1).argmax()] *= -1
    assert not oracle.check(expected, wrong).passed
    assert not oracle.check(expected, torch.where(right == expected.native, right, 0.5)).passed
    # And what a lower precision decides is no rounding.
    assert not oracle.check(expected, torch.sign(x.bfloat16().float().sum(1))).passed


@pytest.mark.parametrize("fill", [-torch.inf, -1e9])
def test_a_masked_element_may_be_a_fill_value_or_a_number(fill):
    def kept(y):
        return y.masked_fill(y < 0.5, fill)

    oracle, expected = expected_near_a_jump(kept, at=0.5)
    x = expected.inputs[0]
    one = kept(in_two_parts(x))
    assert oracle.check(expected, one).passed
    one[x.sum(1).argmin()] = 0.5
    assert not oracle.check(expected, one).passed


class Experts(nn.Module):
    """Each token goes through the two experts of sixteen that its router likes best."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.gate, self.weight = (
            nn.Parameter((torch.randn(16, *shape, generator=generator) / 8).bfloat16()) for shape in ((64,), (64, 64))
        )

    def forward(self, x):
        return self.sent(x, F.linear(x, self.gate).softmax(-1))

    def sent(self, x, liking, change=lambda t: t):
        weight, index = liking.topk(2, -1)
        made = torch.einsum("tkdi,ti->tkd", change(self.weight.to(x.dtype))[index], change(x))
        return (made * (weight / weight.sum(-1, keepdim=True)).to(x.dtype)[..., None]).sum(1)

    def wide(self, x, change=lambda t: t):
        wide = x.float()
        return self.sent(wide, F.linear(wide, self.gate.float()).softmax(-1), change).to(x.dtype)


def short(t):
    return round_to(t, Format("short", 4))


@pytest.mark.parametrize("seed", range(4))
def test_a_few_tokens_that_go_elsewhere_set_no_limit_for_the_others(seed):
    torch.manual_seed(seed)
    module = Experts()
    oracle = Oracle(module)
    with torch.no_grad():
        for _ in range(100):
            x = torch.randn(256, 64).bfloat16()
            off = (module(x).double() - module.double()(x.double())).abs().amax(1)
            module.bfloat16()
            if (off > 0.1).sum() >= 2:
                break
        expected = oracle.expect([x])
        yard, right = expected.yards["output"], module.wide(x)
        assert 0 < yard.jumped < 0.1
        assert yard.own < 0.01 * yard.scale.spread
        assert oracle.check(expected, right).passed
        # The reference's own way of each token is right, too; so is that of another sum in the router.
        assert oracle.check(expected, module(x)).evidence["decided_by_rounding"] > 0
        halves = F.linear(x[:, ::2], module.gate[:, ::2]) + F.linear(x[:, 1::2], module.gate[:, 1::2])
        assert oracle.check(expected, module.sent(x, halves.softmax(-1))).passed
        dropped = right.clone()
        dropped[77:80] = 0
        assert not oracle.check(expected, dropped).passed
        assert not oracle.check(expected, module.wide(x, short)).passed


def test_where_nothing_jumps_no_further_runs_are_made_nor_limits_changed(monkeypatch):
    ways = (
        lambda x: torch.softmax(x, -1),
        lambda x: x / x.roll(1, 0),
        lambda x: (x - x.roll(1, 0)).log1p().nan_to_num(),
        lambda x: x @ x.T,
    )
    inputs = [torch.randn(256, 128), torch.randn(256, 128).bfloat16()]
    made = []
    monkeypatch.setattr(ExactReference, "jittered_throughout", lambda *_args, **_more: made.append(1))
    before = [Oracle(Of(way)).expect([x]).yards["output"] for way in ways for x in inputs]
    assert not made
    monkeypatch.setattr("harness.oracle.yardstick._jumps", lambda *_: False)
    after = [Oracle(Of(way)).expect([x]).yards["output"] for way in ways for x in inputs]
    assert [yard.limits for yard in before] == [yard.limits for yard in after]
    assert all(yard.jumped is None for yard in before)
