"""The verdict belongs to the kernel, not to the magnitude, the order or the number of what it is shown."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.oracle.oracle import Oracle
from tests.oracle.references import Of, composed, tf32


def running_sum(a, b):
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k]
    return total


# Candidates for a product, and whether they are right.
PRODUCTS = {
    "the library": (torch.matmul, True),
    "a running sum": (running_sum, True),
    "two halves": (lambda a, b: a[:, ::2] @ b[::2] + a[:, 1::2] @ b[1::2], True),
    "TF32": (lambda a, b: tf32(a) @ tf32(b), False),
    "bf16": (lambda a, b: (a.bfloat16() @ b.bfloat16()).float(), False),
    "zeros": (lambda a, b: torch.zeros(a.shape[0], b.shape[1]), False),
    "the mean over rows": (lambda a, b: (a @ b).mean(0, keepdim=True).repeat(a.shape[0], 1), False),
    "one per cent off": (lambda a, b: (a @ b) * 1.01, False),
    "a term missing": (lambda a, b: a[:, 1:] @ b[1:], False),
    "the last row missing": (lambda a, b: torch.cat([(a @ b)[:-1], torch.zeros(1, b.shape[1])]), False),
}
QUICK = settings(max_examples=15, deadline=None)


def verdict(kernel, inputs):
    oracle = Oracle(Of(torch.matmul))
    return oracle.check(oracle.expect(inputs), kernel(*inputs))


@pytest.mark.parametrize("name", PRODUCTS)
@QUICK
@given(left=st.integers(-40, 40), right=st.integers(-40, 40), seed=st.integers(0, 99))
def test_scaling_by_powers_of_two(name, left, right, seed):
    kernel, right_answer = PRODUCTS[name]
    torch.manual_seed(seed)
    a, b = torch.randn(24, 96), torch.randn(96, 40)
    plain, scaled = verdict(kernel, [a, b]), verdict(kernel, [a * 2.0**left, b * 2.0**right])
    assert plain.passed == scaled.passed == right_answer
    assert plain.reason == scaled.reason
    assert scaled.error == pytest.approx(plain.error, rel=1e-6)
    assert scaled.error_ratio == pytest.approx(plain.error_ratio, rel=1e-6)


@pytest.mark.parametrize("name", PRODUCTS)
@QUICK
@given(seed=st.integers(0, 999))
def test_permuting_the_batch(name, seed):
    kernel, right_answer = PRODUCTS[name]
    torch.manual_seed(seed)
    a, b = torch.randn(24, 96), torch.randn(96, 40)
    order = torch.randperm(24)
    plain, permuted = verdict(kernel, [a, b]), verdict(kernel, [a[order], b])
    assert plain.passed == permuted.passed == right_answer


@pytest.mark.parametrize("name", PRODUCTS)
@QUICK
@given(rows=st.integers(1, 200), terms=st.integers(16, 600), columns=st.integers(1, 200), seed=st.integers(0, 999))
def test_changing_the_sizes(name, rows, terms, columns, seed):
    kernel, right_answer = PRODUCTS[name]
    torch.manual_seed(seed)
    if rows < 8 and name == "the mean over rows":
        rows += 8
    if rows * columns < 64:
        # Of a few elements, a lower precision can hit each by luck.
        columns = 64
    assert verdict(kernel, [torch.randn(rows, terms), torch.randn(terms, columns)]).passed == right_answer


@QUICK
@given(
    batch=st.integers(1, 3),
    queries=st.integers(8, 200),
    width=st.sampled_from([16, 64, 200]),
    seed=st.integers(0, 999),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
def test_attention_of_any_size(batch, queries, width, seed, dtype):
    torch.manual_seed(seed)
    inputs = [torch.randn(batch, 2, queries, width).to(dtype) for _ in range(3)]
    oracle = Oracle(Of(torch.nn.functional.scaled_dot_product_attention))
    expected = oracle.expect(inputs)
    assert oracle.check(expected, composed(*inputs)).passed
    assert not oracle.check(expected, inputs[2].mean(2, keepdim=True).expand_as(inputs[2]).clone()).passed
    assert not oracle.check(expected, composed(inputs[0] * 1.5, *inputs[1:])).passed
