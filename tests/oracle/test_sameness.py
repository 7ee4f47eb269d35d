"""A reference that asks for its dtype is compared with nothing that is another function in another dtype."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.oracle.exact import ExactReference
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of


def drawn(rows=1024, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 128, generator=generator), torch.randn(128, 128, generator=generator) / 11]


def precision(function, inputs):
    reference = ExactReference(Of(function))
    return reference.exact(inputs, 0, reference.native(inputs, 0)).precision


def logmel(x, w):
    z = (x @ w).clamp_min(0)
    return torch.log(z + torch.finfo(z.dtype).eps)


def masked(x, w):
    scores = x @ w
    mask = torch.ones(scores.shape, dtype=torch.bool).triu(1)
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min).softmax(-1) @ w


def normed(x, w):
    return F.rms_norm(1e-4 * x @ w, (128,))


@pytest.mark.parametrize("function", [logmel, masked, normed])
def test_limits_of_the_dtype_are_those_of_its_own(function):
    x, w = drawn(128)
    assert precision(function, [x, w]) == "float64"
    reference = ExactReference(Of(function))
    exact = reference.exact([x, w], 0, reference.native([x, w], 0)).output
    # But where it takes the logarithm of nearly nothing.
    assert (exact - function(x, w)).abs().quantile(0.9) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_a_norm_without_eps_has_that_of_its_own_dtype(dtype):
    assert precision(lambda x: F.rms_norm(x, (128,)), [drawn()[0].to(dtype)]) == "float64"


X = torch.randn(4, 8, 16, generator=torch.Generator().manual_seed(1))
USUAL = {
    "lstm": (nn.LSTM(16, 16, 2, dropout=0.1, batch_first=True), [X]),
    "attention": (nn.MultiheadAttention(16, 4, dropout=0.1, batch_first=True), [X, X, X]),
    "encoder": (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval(), [X]),
    "scaled": (Of(lambda q: F.scaled_dot_product_attention(q, q, q, scale=0.3)), [X]),
    "batch norm": (nn.BatchNorm1d(8, momentum=0.2, eps=1e-3), [X]),
    "convolution": (nn.Conv1d(8, 4, 3), [X]),
    "labels": (nn.CrossEntropyLoss(label_smoothing=0.1), [X[0], torch.arange(8)]),
    "resized": (Of(lambda x: F.interpolate(x, scale_factor=1.7, mode="linear")), [X]),
    "slopes": (nn.RReLU(0.1, 0.3), [X]),
    "turns": (Of(lambda x: x * torch.cos(1.0 / 10000 ** (torch.arange(16).float() / 16))), [X]),
    "autocast": (Of(lambda x: torch.autocast("cpu", torch.bfloat16)(torch.matmul)(x, x.mT)), [X]),
    "largest": (Of(lambda x: x / x.abs().max().item()), [X]),
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_modules_are_the_same_in_float64(name):
    module, inputs = USUAL[name]
    reference = ExactReference(module)
    assert reference.exact(inputs, 0, reference.native(inputs, 0)).precision == "float64"


def test_who_asks_for_float64_by_name_is_told_the_truth():
    def in_float64(x, w):
        z = (x.double() @ w.double()).clamp_min(0)
        return torch.log(z + torch.finfo(torch.float64).eps)

    assert precision(in_float64, drawn()) == "float64"


def test_a_number_that_the_host_reads_is_no_constant():
    assert precision(lambda x, w: x @ w / float(x.std()) + x.mean().item(), drawn()) == "float64"


def truncated(x, w):
    return (x.view(torch.int32) & -8192).view(torch.float32).sum(-1)


def test_bits_mean_something_else_in_float64():
    assert precision(truncated, drawn()) == "float32"


def branches(x, w):
    return F.relu(x @ w) * 0.5 if x.dtype is torch.float32 else F.gelu(x @ w)


def test_code_that_asks_for_its_dtype_is_told_its_own():
    assert precision(branches, drawn()) == "float64"


def clamped(x, w):
    return torch.atanh((x @ w).tanh().clamp(torch.finfo(x.dtype).eps - 1, 1 - torch.finfo(x.dtype).eps))


def newton(x, w):
    y = (x @ w).abs() + 0.5
    guess = torch.ones_like(y)
    for _ in range(torch.finfo(y.dtype).bits // 4):
        guess = 0.5 * (guess + y / guess)
    return guess


def floored(x, w):
    return torch.log((x @ w).relu() + torch.tensor(torch.finfo(x.dtype).eps))


def halved(x, w):
    return (x @ w)[:, :: 8 // x.element_size()]


@pytest.mark.parametrize("function", [branches, clamped, newton, floored, halved])
def test_whatever_a_dtype_decides_is_as_it_is_natively(function):
    oracle, inputs = Oracle(Of(function)), drawn()
    expected = oracle.expect(inputs)
    assert expected.precision == "float64"
    assert expected.meaningful
    assert oracle.check(expected, function(*inputs)).passed
    assert not oracle.check(expected, torch.zeros_like(expected.native)).passed
    assert not oracle.check(expected, function(*(one.bfloat16().float() for one in inputs))).passed


def test_another_number_of_questions_is_another_function():
    def unsteady(x, w):
        y = x @ w
        return y + 1 if str(y.numpy().dtype) == "float64" and y.dtype else y

    assert precision(unsteady, drawn()) == "float32"


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        (logmel, lambda x, w: logmel(x.bfloat16().float(), w.bfloat16().float())),
        (logmel, lambda x, w: logmel(x[:, :124], w[:124])),
        (truncated, lambda x, w: torch.zeros(len(x))),
        (truncated, lambda x, w: truncated(x, w).bfloat16().float()),
    ],
)
def test_wrong_answers_are_refused(function, wrong):
    oracle, inputs = Oracle(Of(function)), drawn()
    expected = oracle.expect(inputs)
    assert oracle.check(expected, function(*inputs)).passed
    assert not oracle.check(expected, wrong(*inputs)).passed


def test_code_that_takes_float32_alone_has_the_allowance_for_its_sums():
    def picky(x, w):
        assert x.dtype is torch.float32
        return x @ w, x.sum(-1)

    def in_chunks(x, w):
        parts = zip(x.split(100, 1), w.split(100), strict=True)
        totals = (torch.zeros(len(x), w.shape[1]), torch.zeros(len(x)))
        for a, b in parts:
            totals = totals[0] + a @ b, totals[1] + a.sum(-1)
        return totals

    inputs = [torch.rand(64, 20000), torch.rand(20000, 8)]
    oracle = Oracle(Of(picky))
    assert oracle.check(oracle.expect(inputs), in_chunks(*inputs)).passed


def test_code_that_takes_float32_alone_gives_indices_that_may_be_tied():
    def picky(x, w):
        assert x.dtype is torch.float32
        return (x @ w).argmax(-1)

    inputs = drawn()
    oracle = Oracle(Of(picky))
    expected = oracle.expect(inputs)
    assert oracle.check(expected, (inputs[0] @ inputs[1] + 0).argmax(-1)).passed
    assert not oracle.check(expected, expected.native.roll(1)).passed
