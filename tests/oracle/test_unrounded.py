"""What only moves or selects numbers is held to a few roundings, however much a lower precision would do to it."""

import pytest
import torch
import torch.nn.functional as F

from harness.oracle.formats import Format, round_to
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of


def cut(x, bits):
    """Without its last `bits`, rounded."""
    return round_to(x, Format("cut", 23 - bits))


def sort(x):
    return x.sort(-1).values


def nearly_sorted(x, bits):
    """The numbers themselves, in the order of all but their last `bits`."""
    keys = x.view(torch.int32)
    keys = torch.where(keys < 0, keys ^ 0x7FFFFFFF, keys) >> bits
    return x.gather(-1, keys.argsort(dim=-1, stable=True))


def findings(reference, kernel, inputs):
    """Of both checks on drawn inputs, and of the hard ones."""
    oracle = Oracle(Of(reference))
    drawn = [oracle.check(expected, kernel(*inputs)) for expected in (oracle.expect(inputs), oracle.glance(inputs))]
    hard = {
        stress.name: oracle.check(expected, kernel(*expected.inputs)) for stress, expected in oracle.stress(inputs, 1)
    }
    return drawn, hard


@pytest.mark.parametrize(
    ("reference", "kernel", "inputs"),
    [
        (sort, lambda x: cut(sort(x), 6), [torch.randn(32, 512)]),
        (torch.relu, lambda x: torch.relu(x * (1 + 2**-17)), [torch.randn(64, 128)]),
        (torch.t, lambda x: cut(x.t(), 6), [torch.randn(64, 128)]),
        (lambda x: F.max_pool2d(x, 2), lambda x: cut(F.max_pool2d(x, 2), 6), [torch.randn(2, 4, 32, 32)]),
        (lambda i, w: w[i], lambda i, w: cut(w[i], 6), [torch.randint(0, 100, (64, 8)), torch.randn(100, 64)]),
    ],
)
def test_rounded_numbers_are_refused(reference, kernel, inputs):
    drawn, hard = findings(reference, kernel, inputs)
    assert not any(finding.passed for finding in drawn)
    assert not all(finding.passed for finding in hard.values())


@pytest.mark.parametrize("bits", [7, 8])
@pytest.mark.parametrize("length", [256, 2048])
def test_who_orders_by_most_digits_meets_numbers_that_differ_in_the_others(length, bits):
    _, hard = findings(sort, lambda x: nearly_sorted(x, bits), [torch.randn(32, length)])
    assert not hard["neighbours"].passed


def roundf(x):
    """CUDA's: half away from zero."""
    return torch.sign(x) * torch.floor(x.abs() + 0.5)


def later_first(x):
    """Of equal numbers the last one first."""
    return x.shape[-1] - 1 - x.flip(-1).argsort(dim=-1, stable=True)


X, Y = torch.randn(64, 128), torch.rand(64, 128) + 0.5


@pytest.mark.parametrize(
    ("reference", "kernel", "inputs"),
    [
        (sort, lambda x: -torch.flip(sort(-x), (-1,)), [X]),
        (torch.relu, lambda x: x.clamp(min=0), [X]),
        (torch.round, roundf, [10 * X]),
        (torch.fmod, lambda x, y: x - torch.trunc(x / y) * y, [4 * X, Y]),
        (lambda x: F.leaky_relu(x, 0.25), lambda x: 0.625 * x + 0.375 * x.abs(), [X]),
        (lambda x: F.softshrink(x, 0.5), lambda x: x * (1 - 0.5 / x.abs()).clamp(min=0), [X]),
        (lambda x: x.float() ** 2, lambda x: torch.exp2(2 * torch.log2(x.float().abs())), [X.bfloat16()]),
        # Fast-math flushes subnormal numbers.
        (torch.relu, lambda x: torch.where(x < 2**-126, 0.0, x), [X * 2**-125]),
        (lambda x: x.argsort(-1)[:, :10], lambda x: later_first(x)[:, :10], [X]),
        (lambda x: x.argsort(-1)[:, :10], lambda x: later_first(x)[:, :10], [X.half()]),
    ],
)
def test_other_ways_to_the_same_numbers_pass(reference, kernel, inputs):
    drawn, hard = findings(reference, kernel, inputs)
    assert all(finding.passed for finding in drawn)
    assert [name for name, finding in hard.items() if not finding.passed] == []


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
    assert not any(yard.unrounded for yard in expected.yards.values())


def test_what_saturates_on_hard_inputs_alone_keeps_its_room():
    oracle, inputs = Oracle(Of(torch.tanh)), [torch.randn(64, 64)]
    oracle.expect(inputs)
    yards = [yard for _, expected in oracle.stress(inputs, 1) for yard in expected.yards.values()]
    assert yards
    assert not any(yard.unrounded for yard in yards)


def test_the_refusal_says_that_numbers_are_rounded():
    (full, _), _ = findings(sort, lambda x: cut(sort(x), 7), [torch.randn(32, 512)])
    assert full.reason == "mismatch:rounded"
    assert "rounds nothing here" in full.message


def test_complex_inputs_have_hard_ones():
    """No maximum subtracted, and numbers that are never negative taken for what they are."""
    z = [torch.complex(torch.rand(64, 128), torch.rand(64, 128))]

    def cheat(z):
        powers = torch.exp(z.real + z.imag)
        return powers / powers.sum(-1, keepdim=True)

    drawn, hard = findings(lambda z: torch.softmax(F.relu(z.real) + z.imag.abs(), -1), cheat, z)
    assert all(finding.passed for finding in drawn)
    assert sum(not finding.passed for finding in hard.values()) > 5
    drawn, hard = findings(
        torch.fft.fft, lambda z: z @ torch.fft.fft(torch.eye(128, dtype=torch.complex128)).to(z.dtype), z
    )
    assert all(finding.passed for finding in [*drawn, *hard.values()])
