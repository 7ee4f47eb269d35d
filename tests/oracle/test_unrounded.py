"""What only moves or selects numbers has no room for rounding."""

import pytest
import torch
import torch.nn.functional as F

from harness.oracle.formats import Format, round_to
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of


def cut(x, bits):
    """Without its last `bits`."""
    return round_to(x, Format("cut", 23 - bits))


def sort(x):
    return x.sort(-1).values


def exchanged(x):
    """In order, but for two neighbours in each row."""
    places = torch.arange(x.shape[-1])
    places[100], places[101] = 101, 100
    return sort(x)[..., places]


def findings(reference, kernel, inputs):
    """Of both checks on drawn inputs, and of the hard ones."""
    oracle = Oracle(Of(reference))
    drawn = [oracle.check(expected, kernel(*inputs)) for expected in (oracle.expect(inputs), oracle.glance(inputs))]
    return drawn, [oracle.check(expected, kernel(*expected.inputs)) for _, expected in oracle.stress(inputs, 1)]


@pytest.mark.parametrize(
    ("reference", "kernel", "inputs"),
    [
        (sort, lambda x: cut(sort(x), 7), [torch.randn(32, 512)]),
        (sort, lambda x: cut(sort(x), 1), [torch.rand(32, 512)]),
        (sort, exchanged, [torch.randn(1, 1 << 14)]),
        (torch.relu, lambda x: torch.relu(x * (1 + 2**-20)), [torch.randn(64, 128)]),
        (torch.relu, lambda x: torch.relu(x * 1.01), [torch.randn(64, 128, dtype=torch.bfloat16)]),
        (torch.t, lambda x: cut(x.t(), 4), [torch.randn(64, 128)]),
        (lambda x: F.max_pool2d(x, 2), lambda x: cut(F.max_pool2d(x, 2), 4), [torch.randn(2, 4, 32, 32)]),
        (lambda i, w: w[i], lambda i, w: cut(w[i], 3), [torch.randint(0, 100, (64, 8)), torch.randn(100, 64)]),
    ],
)
def test_other_numbers_are_refused(reference, kernel, inputs):
    drawn, hard = findings(reference, kernel, inputs)
    assert not any(finding.passed for finding in drawn)
    assert sum(finding.passed for finding in hard) < len(hard) / 2


@pytest.mark.parametrize(
    ("reference", "kernel", "inputs"),
    [
        (sort, lambda x: -torch.flip(sort(-x), (-1,)), [torch.randn(32, 512)]),
        (torch.relu, lambda x: x.clamp(min=0), [torch.randn(64, 128)]),
        (lambda x: F.softshrink(x, 0.5), lambda x: x - x.clamp(-0.5, 0.5), [torch.randn(64, 128)]),
        # Fast-math flushes subnormal numbers.
        (torch.relu, lambda x: torch.where(x < 2**-126, 0.0, x), [torch.randn(64, 128) * 2**-125]),
        # Zero has either sign.
        (torch.relu, lambda x: torch.where(x > 0, x, -0.0), [torch.randn(64, 128)]),
    ],
)
def test_the_same_numbers_by_another_way_pass(reference, kernel, inputs):
    drawn, hard = findings(reference, kernel, inputs)
    assert all(finding.passed for finding in [*drawn, *hard])


@pytest.mark.parametrize(
    ("reference", "inputs"),
    [
        (lambda x: x.sum(-1), [torch.randn(128, 64)]),
        (torch.sin, [torch.randn(64, 64)]),
        # The sums of integers are exact in any precision that holds them.
        (lambda x, y: x @ y, [torch.randint(0, 3, (64, 64)).float(), torch.randint(0, 3, (64, 64)).float()]),
        (lambda x: x**2, [torch.randint(0, 9, (64, 64)).float()]),
        (lambda x: x.max().reshape(1), [torch.randn(64, 64)]),
    ],
)
def test_what_computes_is_held_to_its_errors(reference, inputs):
    expected = Oracle(Of(reference)).expect(inputs)
    assert not any(yard.exacting for yard in expected.yards.values())


def test_what_saturates_on_hard_inputs_alone_keeps_its_room():
    oracle, inputs = Oracle(Of(torch.tanh)), [torch.randn(64, 64)]
    oracle.expect(inputs)
    yards = [yard for _, expected in oracle.stress(inputs, 1) for yard in expected.yards.values()]
    assert yards
    assert not any(yard.exacting for yard in yards)


def test_the_refusal_says_that_numbers_are_rounded():
    (full, _), _ = findings(sort, lambda x: cut(sort(x), 7), [torch.randn(32, 512)])
    assert full.reason == "mismatch:rounded"
    assert "only moves or selects numbers" in full.message
