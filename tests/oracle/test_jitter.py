"""Inputs that are moved by a few roundings, to see which decisions rounding makes, keep what inputs promise."""

import pytest
import torch

from harness.oracle.formats import on_grid
from harness.oracle.jitter import Mover, Stepwise
from harness.oracle.oracle import Oracle
from harness.oracle.promises import find
from tests.oracle.references import Of

LABELS = torch.arange(8.0)


def whole_numbers(*shape):
    return torch.randint(0, 5, shape).float()


def signs(*shape):
    return (torch.randint(0, 2, shape) * 2 - 1).float()


def judged(function, draw, *kernels):
    """Whether each kernel passes on drawn inputs."""
    reference = function if isinstance(function, torch.nn.Module) else Of(function)
    oracle = Oracle(reference, promises=find(draw(), draw))
    inputs = draw()
    expected = oracle.expect(inputs)
    return [oracle.check(expected, kernel(*inputs)).passed for kernel in kernels]


W = torch.randn(64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("function", "draw", "wrong"),
    [
        (
            lambda x, y: torch.sign(x @ W) == y,
            lambda: [torch.randn(256, 64), signs(256)],
            lambda x, y: torch.zeros(256, dtype=torch.bool),
        ),
        (
            lambda x, y: (torch.sign(x @ W) == y).float().mean(),
            lambda: [torch.randn(256, 64), signs(256)],
            lambda x, y: torch.tensor(0.0),
        ),
        (lambda a: a.long(), lambda: [whole_numbers(64, 64)], lambda a: (a.long() - 1).clamp_min(0)),
        (lambda a, b: a == b, lambda: [whole_numbers(64, 64), whole_numbers(64, 64)], lambda a, b: a != a),
        (
            lambda a: torch.round(a).to(torch.int32),
            lambda: [torch.randint(-20, 20, (64, 64)) / 2],
            lambda a: torch.floor(a + 0.5).to(torch.int32),
        ),
        (
            lambda x, y: x.gather(1, y.long()[:, None])[:, 0],
            lambda: [torch.randn(32, 8), whole_numbers(32)],
            lambda x, y: x[:, 0],
        ),
        (
            lambda x, m: torch.where(m == 1, x, 0.0).sum(1),
            lambda: [torch.randn(32, 64), (torch.rand(32, 64) < 0.5).float()],
            lambda x, m: x.sum(1),
        ),
        # Multiples of a tenth are on no grid of powers of two, and more than few.
        (
            lambda a, b: a == b,
            lambda: [torch.randint(0, 17, (64, 512)) / 10, torch.randint(0, 17, (64, 512)) / 10],
            lambda a, b: a != a,
        ),
        (
            lambda a, b: (a == b).float().mean(),
            lambda: [torch.randint(0, 100, (64, 64)) / 10, torch.randint(0, 100, (64, 64)) / 10],
            lambda a, b: torch.tensor(0.0),
        ),
        # Equal where they are made so.
        (lambda a, b: a == b, lambda: [x := torch.randn(64, 64), x.clone()], lambda a, b: a != a),
        (
            lambda a: a.long(),
            lambda: [torch.randint(0, 1000, (64, 64)).bfloat16()],
            lambda a: (a.long() - 1).clamp_min(0),
        ),
    ],
)
def test_what_inputs_promise_excuses_nothing(function, draw, wrong):
    assert judged(function, draw, function, wrong) == [True, False]


def test_decisions_of_rounding_go_either_way():
    """Of what inputs on a grid are multiplied with, the weights move; of what is cast, the number itself."""
    linear = torch.nn.Linear(4096, 8, bias=False).requires_grad_(False)
    linear.weight.copy_(torch.randn(8, 4096))

    class Positive(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear

        def forward(self, x):
            # Rows that sum to nothing but rounding.
            return self.linear(torch.cat([x, -x.flip(1)], 1)[:, :4096]) > self.linear(x)

    x = whole_numbers(512, 4096)
    oracle = Oracle(Positive(), promises=find([x], lambda: [whole_numbers(512, 4096)]))
    assert oracle.check(oracle.expect([x]), torch.zeros(512, 8, dtype=torch.bool)).passed


@pytest.mark.parametrize("seed", range(4))
def test_a_cast_by_another_formula_is_right(seed):
    torch.manual_seed(seed)
    passed = judged(
        lambda x: (torch.sigmoid(x) * 255).to(torch.uint8),
        lambda: [torch.randn(512, 512)],
        lambda x: (255.0 / (1.0 + torch.exp(-x))).to(torch.uint8),
        lambda x: (torch.sigmoid(x.double()) * 255).to(torch.uint8),
        lambda x: (torch.sigmoid(x) * 256).to(torch.uint8),
        lambda x: (torch.sigmoid(x) * 255).round().to(torch.uint8),
    )
    assert passed == [True, True, False, False]


@pytest.mark.parametrize(
    ("tensor", "whether"),
    [
        (LABELS, True),
        (LABELS / 2, True),
        (torch.tensor(2.0), True),
        (torch.eye(8, dtype=torch.bfloat16), True),
        (torch.zeros(8), True),
        (torch.tensor([1.0, torch.inf, -torch.inf, torch.nan, 3.0]), True),
        (torch.linspace(0, 1, 11), False),
        (torch.randn(64).half().float(), False),
        (torch.randn(1 << 10).bfloat16(), False),
        (torch.rand(64, dtype=torch.float16), False),
        (torch.tensor(0.7), False),
        (torch.randn(64, dtype=torch.float64), False),
        (torch.cat([torch.zeros(1 << 15), torch.tensor([0.3])]), False),
    ],
)
def test_a_grid_is_a_step_far_above_the_last_digit(tensor, whether):
    assert on_grid(tensor) == whether


def test_integers_that_were_rounded_before_do_not_move_as_they_are_converted():
    x = torch.randn(64, 64) * 1e3
    with Stepwise(Mover(16, 0)):
        whole = (x / 3).round().clamp(-127, 127).to(torch.int8)
    saturated = (x / 3).abs() > 130
    assert torch.equal(whole[saturated], (x / 3).sign()[saturated].mul(127).to(torch.int8))


def steps_until_it_leaves(product_and_sum, within=4.0):
    """Of z * z + c, by how a product and a sum are rounded."""

    def count(real, imaginary):
        a, b = torch.zeros_like(real), torch.zeros_like(imaginary)
        steps = torch.zeros(real.shape, dtype=torch.int32)
        for _ in range(60):
            a, b = product_and_sum(a, a, -(b * b)) + real, product_and_sum(2 * a, b, imaginary)
            steps += (product_and_sum(a, a, b * b) <= within).int()
            a, b = a.clamp(-1e6, 1e6), b.clamp(-1e6, 1e6)
        return steps

    return count


def one_after_the_other(x, y, z):
    return x * y + z


def fused(x, y, z):
    """As a kernel's compiler has it."""
    return (x.double() * y.double() + z.double()).float()


@pytest.mark.parametrize("seed", range(3))
def test_what_a_loop_makes_of_fused_operations_is_right(seed):
    torch.manual_seed(seed)
    inputs = [torch.rand(256, 1024) * 3 - 2, torch.rand(256, 1024) * 2 - 1]
    oracle = Oracle(Of(steps_until_it_leaves(one_after_the_other)))
    expected = oracle.expect(inputs)
    got = steps_until_it_leaves(fused)(*inputs)
    assert not torch.equal(got, expected.native)
    assert oracle.check(expected, got).passed
    for wrong in (steps_until_it_leaves(fused, within=4.1)(*inputs), got + (torch.arange(1024) == 7).int()):
        assert not oracle.check(expected, wrong).passed
