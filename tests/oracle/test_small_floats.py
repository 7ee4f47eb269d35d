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


def test_a_reference_may_keep_a_sparse_matrix():
    module = nn.Module()
    module.register_buffer("matrix", torch.randn(64, 64).relu().to_sparse_csr())
    module.forward = lambda x: module.matrix @ x
    oracle, x = Oracle(module), torch.randn(64, 32)
    expected = oracle.expect([x])
    assert oracle.check(expected, module.matrix.to_dense() @ x).passed
    assert not oracle.check(expected, x).passed
