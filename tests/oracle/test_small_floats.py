"""Outputs in 8-bit floats, which PyTorch stores and hardly calculates with, and outputs that are no plain tensors."""

import pytest
import torch
from torch import nn

from harness.oracle import auditing
from harness.oracle.expectation import InvalidReference
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of

DTYPES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_eight_bit_outputs_are_compared(dtype, size):
    oracle, x = Oracle(Of(lambda x: (x * size).to(dtype))), torch.randn(64, 256)
    expected, glance = oracle.expect([x]), oracle.glance([x])
    for known in (expected, glance):
        assert oracle.check(known, (x * size).to(dtype)).passed
        assert not oracle.check(known, (x * size * 1.5).to(dtype)).passed
        assert not oracle.check(known, torch.zeros_like(x).to(dtype)).passed
        assert oracle.check(known, x * size).reason == "wrong_dtype"
    nothing = torch.full_like(x, torch.nan).to(dtype)
    assert not oracle.check(expected, nothing, torch.nan).passed


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_too_large_for_eight_bits_is_the_reference_s_own(dtype):
    oracle, x = Oracle(Of(lambda x: (x * 300).to(dtype))), torch.randn(64, 256)
    assert oracle.check(oracle.expect([x]), (x * 300).to(dtype)).passed


def quantised(x, dtype):
    scale = x.abs().amax(-1, keepdim=True) / torch.finfo(dtype).max
    return (x / scale).to(dtype), scale


def a_digit_less(x, dtype):
    values, scale = quantised(x, dtype)
    return (values.view(torch.uint8) & 0xFE).view(dtype), scale


def by_the_reciprocal(x, dtype):
    scale = x.abs().amax(-1, keepdim=True) / torch.finfo(dtype).max
    return (x * (1 / scale)).clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max).to(dtype), scale


def towards_zero(x, dtype):
    values, scale = quantised(x, dtype)
    too_far = values.double().abs() > (x.double() / scale.double()).abs()
    return (values.view(torch.uint8) - too_far.to(torch.uint8)).view(dtype), scale


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
@pytest.mark.parametrize("inputs", [torch.float32, torch.bfloat16], ids=str)
def test_each_of_so_few_numbers_has_to_be_the_nearest(dtype, inputs):
    x = torch.randn(64, 256, generator=torch.Generator().manual_seed(1)).to(inputs)
    oracle = Oracle(Of(lambda x: quantised(x, dtype)))
    expected, glance = oracle.expect([x]), oracle.glance([x])
    for known in (expected, glance):
        assert oracle.check(known, quantised(x, dtype)).passed
        for wrong in (a_digit_less, towards_zero):
            assert oracle.check(known, wrong(x, dtype)).reason == "mismatch:not_nearest"
    assert oracle.check(expected, by_the_reciprocal(x, dtype)).passed
    # In float32 throughout, where the reference divides in 16 bits.
    values, scale = by_the_reciprocal(x.float(), dtype)
    assert oracle.check(expected, (values, scale.to(inputs))).passed


def test_the_audit_knows_eight_bit_outputs():
    oracle, x = Oracle(Of(lambda x: torch.tanh(x).to(torch.float8_e4m3fn))), torch.randn(64, 256)
    expected, other = oracle.expect([x]), torch.tanh(torch.randn(64, 256)).to(torch.float8_e4m3fn)
    sets = auditing.binding(oracle.stress([x]))
    found = auditing.negative(oracle, other, auditing.drawn_first(expected, sets))
    wrong = {tried.control.name: tried.as_it_should for tried in found}
    assert wrong["zeros"]
    assert wrong["earlier_output"]
    assert wrong["tile_unwritten"]
    right = auditing.positive(oracle, auditing.drawn_first(expected, sets), compiled=False)
    assert all(tried.as_it_should for tried in right)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.to_sparse(), "output is a sparse_coo tensor: this kind of output is not supported"),
        (lambda x: (x, {"a": x.to_sparse_csr()}), "output[1]['a'] is a sparse_csr tensor"),
        (lambda x: x.to_mkldnn(), "output is a mkldnn tensor"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "output is a quantized tensor"),
        (lambda x: torch.nested.nested_tensor([x[0], x[1, :2]]), "output is a nested tensor"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_an_output_that_is_no_plain_tensor_is_said_so(function, words):
    with pytest.raises(InvalidReference) as raised:
        Oracle(Of(function)).expect([torch.randn(8, 8)])
    assert raised.value.reason == "unsupported_output"
    assert words in str(raised.value)


@pytest.mark.filterwarnings("ignore")
def test_a_reference_may_keep_a_sparse_matrix():
    module = nn.Module()
    module.register_buffer("matrix", torch.randn(64, 64).relu().to_sparse_csr())
    module.forward = lambda x: module.matrix @ x
    oracle, x = Oracle(module), torch.randn(64, 32)
    expected = oracle.expect([x])
    assert oracle.check(expected, module.matrix.to_dense() @ x).passed
    assert not oracle.check(expected, x).passed
