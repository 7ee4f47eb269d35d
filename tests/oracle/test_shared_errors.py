"""Operands with fewer digits leave errors that rows and columns share; adding up in any order does not."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from harness.oracle import shared_errors, slices
from harness.oracle.oracle import Oracle

ROWS, TERMS, COLUMNS = 64, 4096, 48


class Product(nn.Module):
    def forward(self, a, b):
        return a @ b


class Then(nn.Module):
    """Something behind the product."""

    def __init__(self, then):
        super().__init__()
        self.then = then

    def forward(self, a, b):
        return self.then(a @ b)


class Normalised(nn.Module):
    def forward(self, a, b):
        return torch.softmax(a @ b - TERMS / 4, -1)


# What leaves each element for itself.
BEHIND = {
    "relu": torch.relu,
    "half of it": torch.tril,
    "scaled and more": lambda x: 0.75 * x + 0.5 * torch.linspace(0, TERMS / 4, COLUMNS),
    "sigmoid": lambda x: torch.sigmoid(x - TERMS / 4),
    "gelu": lambda x: nn.functional.gelu(x - TERMS / 4),
    "square": lambda x: x * x,
    "exponential": lambda x: torch.exp(x / TERMS),
}


def rounded(factor, dtype):
    return lambda a, b: ((a * factor).to(dtype).double() @ (b * factor).to(dtype).double() / factor**2).float()


def only_one_rounded(a, b):
    return ((a * 1.37).half().double() @ b.double() / 1.37).float()


def seven_bits(a, b):
    return ((a * 127).round().double() @ (b * 127).round().double() / 127**2).float()


def rounded_about_the_mean(a, b):
    """The means are taken out before, and put back."""
    small_a, small_b = (one - 0.5 for one in (a, b))
    product = small_a.bfloat16().double() @ small_b.bfloat16().double()
    small_a, small_b = small_a.double(), small_b.double()
    return (product + small_a.sum(1, keepdim=True) / 2 + small_b.sum(0) / 2 + TERMS / 4).float()


def plain_sum(a, b):
    total = torch.zeros(ROWS, COLUMNS)
    for k in range(TERMS):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


def tensor_cores(a, b, step=8):
    """Sums of eight products, cut off to 24 bits each time."""
    total = torch.zeros(ROWS, COLUMNS, dtype=torch.float64)
    for k in range(0, TERMS, step):
        mantissa, exponent = torch.frexp(total + a[:, k : k + step].double() @ b[k : k + step].double())
        total = torch.ldexp(torch.trunc(mantissa * 2.0**24) / 2.0**24, exponent)
    return total.float()


def split_in_three(a, b):
    def parts(x):
        high = x.bfloat16().float()
        middle = (x - high).bfloat16().float()
        return high, middle, (x - high - middle).bfloat16().float()

    some = [(i, j) for i in range(3) for j in range(3) if i + j < 3]
    return sum(tensor_cores(parts(a)[i], parts(b)[j]) for i, j in reversed(some))


def drawn(like):
    return like(ROWS, TERMS), like(TERMS, COLUMNS)


def verdicts(a, b, got, module=None):
    """Of the full check, the fast one, and that of several outputs together."""
    oracle = Oracle(module or Product())
    full = oracle.check(oracle.expect([a, b]), got)
    glance = oracle.glance([a, b])
    return full, oracle.check(glance, got, explained=False).passed, oracle.check_together([glance] * 2, [got, got])


@pytest.mark.parametrize(
    "cheat",
    [
        rounded(1.37, torch.float16),
        rounded(0.83, torch.float16),
        only_one_rounded,
        seven_bits,
        rounded_about_the_mean,
    ],
    ids=["float16", "another factor", "only one", "integers", "about the mean"],
)
def test_operands_with_fewer_digits_are_told_whatever_they_were_scaled_by(cheat):
    a, b = drawn(torch.rand)
    full, fast, together = verdicts(a, b, cheat(a, b))
    assert (full.passed, fast, together) == (False, False, [False, False])


@pytest.mark.parametrize(
    ("cheat", "said"),
    [
        (only_one_rounded, "rows or columns err alike"),
        (rounded_about_the_mean, "each element by itself errs by more than adding up"),
    ],
)
def test_the_reason_is_a_lower_precision(cheat, said):
    a, b = drawn(torch.rand)
    full, *_ = verdicts(a, b, cheat(a, b))
    assert full.reason == "precision_downgrade"
    assert said in full.message


@pytest.mark.parametrize("way", [plain_sum, tensor_cores, split_in_three])
@pytest.mark.parametrize("like", [torch.rand, torch.randn, lambda *shape: torch.randn(shape).relu()])
def test_whatever_order_they_are_added_up_in_is_right(way, like):
    a, b = drawn(like)
    full, *_ = verdicts(a, b, way(a, b))
    assert full.passed, full.message


def test_rows_of_other_sizes_are_no_reason():
    a, b = drawn(torch.rand)
    a *= torch.logspace(-3, 3, ROWS)[:, None]
    full, *_ = verdicts(a, b, tensor_cores(a, b))
    assert full.passed, full.message


@pytest.mark.parametrize("then", BEHIND.values(), ids=BEHIND)
def test_fewer_digits_are_told_behind_what_leaves_each_element_for_itself(then):
    a, b = drawn(torch.rand)
    for cheat in (only_one_rounded, rounded_about_the_mean):
        full, fast, together = verdicts(a, b, then(cheat(a, b)), Then(then))
        assert (full.passed, fast, together) == (False, False, [False, False])


@pytest.mark.parametrize("then", BEHIND.values(), ids=BEHIND)
@pytest.mark.parametrize("like", [torch.rand, torch.randn])
def test_a_plain_sum_is_right_there_too(then, like):
    a, b = drawn(like)
    full, *_ = verdicts(a, b, then(plain_sum(a, b)), Then(then))
    assert full.passed, full.message


@pytest.mark.parametrize(("module", "limited"), [(Product(), True), (Normalised(), False)])
def test_it_is_asked_only_where_nothing_else_is_added_up(module, limited):
    yard = Oracle(module).expect([*drawn(torch.rand)]).yards["output"]
    assert math.isfinite(yard.limits.shared) == limited


def test_hard_inputs_have_no_such_limit():
    oracle, inputs = Oracle(Product()), [*drawn(torch.rand)]
    oracle.expect(inputs)
    for _, expected in oracle.stress(inputs):
        assert expected.yards["output"].limits.shared == math.inf


@settings(deadline=None)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    most=st.integers(20, 200),
    offset=st.floats(-1e3, 1e3),
    seed=st.integers(0, 999),
)
def test_blocks_make_no_difference_and_neither_does_an_offset_or_a_factor(shape, most, offset, seed):
    generator = torch.Generator().manual_seed(seed)
    exact, error = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    whole = shared_errors.sizes(exact + error, exact, 0.0).shared
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(slices.SLICE, "cpu", most)
        assert shared_errors.sizes(exact + error, exact, 0.5).shared == pytest.approx(whole, abs=1e-6)
    other = exact + error + offset + 0.25 * exact
    assert shared_errors.sizes(other, exact, 0.0).shared == pytest.approx(whole, abs=1e-4)


@given(seed=st.integers(0, 999), size=st.floats(1.0, 1e3))
def test_what_a_row_shares_is_found(seed, size):
    generator = torch.Generator().manual_seed(seed)
    exact, error = (torch.randn(50, 60, generator=generator, dtype=torch.float64) for _ in range(2))
    row = torch.randn(50, 1, generator=generator, dtype=torch.float64)
    assert shared_errors.sizes(exact + error, exact, 0.0).shared < 0.2
    found = shared_errors.sizes(exact + error + size * row, exact, 0.0).shared
    assert found == pytest.approx(size * float(row.std(correction=0)), rel=0.3)
