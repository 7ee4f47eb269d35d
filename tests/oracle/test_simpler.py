"""Functions that are taken for simpler ones: all of a kind, and those of one line alone."""

import sys

import torch
from torch import nn

from harness.oracle import auditing, controls
from harness.oracle.mistakes.linear_softmax import LinearSoftmax
from harness.oracle.mistakes.simpler import Lines, line
from harness.oracle.oracle import Oracle


class TwoSoftmaxes(nn.Module):
    """The first one is all but linear, the second is not."""

    def forward(self, x):
        near = torch.softmax(1e-4 * x, -1)
        return near, nn.Softmax(-1)(4 * x)


FIRST = TwoSoftmaxes.forward.__code__.co_firstlineno + 1
INPUTS = [torch.randn(64, 64)]


def test_a_line_is_the_innermost_that_is_not_pytorch_s():
    with Lines({"linear_softmax": LinearSoftmax}) as lines:
        TwoSoftmaxes()(*INPUTS)
    assert list(lines.found["linear_softmax"]) == [f"test_simpler.py:{FIRST}", f"test_simpler.py:{FIRST + 1}"]
    assert line() == f"test_simpler.py:{sys._getframe().f_lineno}"


def test_those_of_a_line_alone():
    right = TwoSoftmaxes()(*INPUTS)
    for number in (0, 1):
        with LinearSoftmax(at=f"test_simpler.py:{FIRST + number}") as mode:
            found = TwoSoftmaxes()(*INPUTS)
        assert mode.met
        assert [torch.equal(one, other) for one, other in zip(found, right, strict=True)] == [number == 1, number == 0]


def test_one_line_does_not_tell_of_another():
    oracle = Oracle(TwoSoftmaxes())
    expected = oracle.expect(INPUTS)
    other = oracle.reference.native([torch.randn(64, 64)], 0)
    tried = auditing.negative(oracle, other, [(auditing.DRAWN, expected)])
    hidden = {one.control.name for one in tried if not one.refused_on}
    assert f"linear_softmax:{FIRST}" in hidden
    assert not hidden & {"linear_softmax", f"linear_softmax:{FIRST + 1}"}
    assert all(map(controls.is_linear, hidden - {"lower_precision", "lower_inputs"}))


def test_what_has_none_of_them_costs_nothing_more():
    oracle = Oracle(nn.Linear(64, 64))
    assert controls.simpler(oracle.reference, oracle.expect(INPUTS)) == []


def test_a_reference_that_cannot_be_taken_apart_has_none():
    class Whole(nn.Module):
        def forward(self, x):
            assert torch.backends.cuda.flash_sdp_enabled(), "no other way"
            return torch.softmax(x, -1)

    oracle = Oracle(Whole())
    assert controls.simpler(oracle.reference, oracle.expect(INPUTS)) == []
