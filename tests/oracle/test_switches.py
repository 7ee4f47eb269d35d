"""What PyTorch's switches allow the reference's own operators, by a run that makes use of all of it."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.oracle import controls, exact
from harness.oracle.error import Part
from harness.oracle.exact import ExactReference
from harness.oracle.formats import BFLOAT16, TF32, round_to
from harness.oracle.oracle import Oracle
from harness.oracle.switches import Permitted, Products
from tests.oracle.references import Of

X, W, B = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4)
M, N = torch.randn(5, 7), torch.randn(7, 6)
POINTS = torch.randn(40, 7)


class Convolution(nn.Module):
    """A convolution, which may use TF32, and a product, which may not."""

    def __init__(self):
        super().__init__()
        self.convolution, self.linear = nn.Conv2d(3, 16, 3), nn.Linear(16, 32)

    def forward(self, x):
        return self.linear(torch.relu(self.convolution(x)).flatten(2).transpose(1, 2))


def candidate(module, x, of_convolution=None, of_product=None):
    """The same with operands rounded."""
    weight, w = module.convolution.weight, module.linear.weight
    if of_convolution:
        x, weight = round_to(x, of_convolution), round_to(weight, of_convolution)
    y = torch.relu(F.conv2d(x, weight, module.convolution.bias)).flatten(2).transpose(1, 2)
    if of_product:
        y, w = round_to(y, of_product), round_to(w, of_product)
    return F.linear(y, w, module.linear.bias)


@pytest.mark.parametrize(
    ("rounded", "strict", "passes"),
    [
        ({}, False, True),
        ({"of_convolution": TF32}, False, True),
        ({"of_convolution": TF32}, True, False),
        ({"of_convolution": BFLOAT16}, False, False),
        ({"of_product": BFLOAT16}, False, False),
    ],
)
def test_what_is_allowed_to_the_reference_is_allowed_to_a_candidate(switches, monkeypatch, rounded, strict, passes):
    monkeypatch.setattr(exact, "Permitted", functools.partial(Permitted, "cpu"))
    switches("tf32", "ieee")
    torch.manual_seed(1)
    module, x = Convolution(), torch.randn(8, 3, 12, 12)
    oracle = Oracle(module, strict_float32=strict)
    with torch.no_grad():
        finding = oracle.check(oracle.expect([x]), candidate(module, x, **rounded))
    assert finding.passed is passes, finding


@pytest.mark.parametrize("allowed", [True, False])
def test_what_is_allowed_is_no_known_wrong_answer(switches, monkeypatch, allowed):
    """The controls of a lower precision are in the format below it, also where the reference makes no use of it."""
    monkeypatch.setattr(exact, "Permitted", functools.partial(Permitted, "cpu"))
    switches("tf32" if allowed else "ieee", "ieee")
    module, x = nn.Conv2d(8, 16, 3), torch.randn(8, 8, 12, 12)
    oracle = Oracle(module)
    expected = oracle.expect([x])
    made = {control.name: control.make for control in controls.negative(oracle.reference, expected.native)}
    lower = BFLOAT16 if allowed else TF32
    assert torch.equal(made["lower_inputs"](expected), oracle.reference.coarsened([x], lower, expected.seed))
    assert not oracle.check(expected, made["lower_inputs"](expected)).passed


def test_what_cancels_in_a_column_may_err_there_as_everywhere(switches, monkeypatch):
    monkeypatch.setattr(exact, "Permitted", functools.partial(Permitted, "cpu"))
    switches("tf32", "ieee")
    generator = torch.Generator().manual_seed(1)
    x, half = torch.randn(1, 64, 8192, generator=generator), torch.randn(1024, 32, 1, generator=generator)
    weight = torch.cat([half, half * (1 + 1e-4)], 1)
    # It is in none of those that errors are estimated from.
    seen = Part(torch.empty(1, 1024, 8192)).columns.tolist()
    column = next(place for place in range(8192) if place not in seen)
    x[0, 32:, column] = -x[0, :32, column]
    convolved = torch.nn.functional.conv1d
    oracle = Oracle(Of(convolved))
    expected = oracle.expect([x, weight])
    assert oracle.check(expected, convolved(round_to(x, TF32), round_to(weight, TF32))).passed
    wrong = convolved(x, weight)
    wrong[..., column] = wrong[..., column - 1]
    assert not oracle.check(expected, wrong).passed


def run(function):
    """The output under the mode, as on a card whose tensors are these, and whether anything was rounded."""
    with torch.no_grad(), Permitted("cpu") as mode:
        return function(), mode.met


@pytest.fixture
def switches():
    """Sets what convolutions and products may be computed in."""
    convolutions, products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = convolutions.fp32_precision, products.fp32_precision

    def put(for_convolutions, for_products):
        convolutions.fp32_precision, products.fp32_precision = for_convolutions, for_products

    yield put
    put(*before)


def test_a_convolution_may_round_its_operands_and_nothing_else(switches):
    switches("tf32", "ieee")
    output, met = run(lambda: F.conv2d(X, W, B))
    assert met
    assert torch.equal(output, F.conv2d(round_to(X, TF32), round_to(W, TF32), B))


def test_where_products_may_so_do_they(switches):
    switches("ieee", "tf32")
    offset = torch.randn(6)
    output, met = run(lambda: torch.addmm(offset, M, N))
    assert met
    assert torch.equal(output, torch.addmm(offset, round_to(M, TF32), round_to(N, TF32)))


@pytest.mark.parametrize(
    "function",
    [
        lambda cut: F.linear(cut(M), cut(N.t())),
        lambda cut: cut(M) @ cut(N[:, 0]),
        lambda cut: torch.zeros(5, 6).addmm_(cut(M), cut(N)),
        lambda cut: F.conv_transpose2d(cut(X), cut(W.transpose(0, 1)), B),
        lambda cut: torch.einsum("bchw,cd->bdhw", cut(X), cut(N[:3])),
        lambda cut: F.scaled_dot_product_attention(*(cut(X) for _ in range(3))),
        lambda cut: torch.cdist(cut(POINTS), cut(POINTS[:30])),
    ],
)
def test_operands_of_products_are_rounded_and_nothing_else(function):
    with torch.no_grad(), Products(BFLOAT16) as mode:
        found = torch.tanh(function(torch.clone))
    assert mode.met
    assert torch.equal(found, torch.tanh(function(lambda t: round_to(t, BFLOAT16))))


@pytest.mark.parametrize(("function", "multiplies"), [(lambda x: x @ x.mT, True), (lambda x: x * x, False)])
def test_without_products_what_is_read_is_rounded(function, multiplies):
    reference, x = ExactReference(Of(function)), torch.randn(8, 8)
    # A product of a tensor with itself, or with a copy, may be computed in another order.
    torch.testing.assert_close(reference.lowered([x], TF32, 0), function(round_to(x, TF32)), rtol=1e-6, atol=1e-5)
    assert reference.multiplies is multiplies


def test_nothing_changes_where_nothing_is_allowed(switches):
    switches("ieee", "ieee")
    output, met = run(lambda: F.conv2d(X, W, B).flatten(1)[:, :7] @ N)
    assert not met
    assert torch.equal(output, F.conv2d(X, W, B).flatten(1)[:, :7] @ N)


def test_nor_in_other_dtypes_or_on_another_device(switches):
    switches("tf32", "tf32")
    assert not run(lambda: F.conv2d(X.double(), W.double()))[1]
    with torch.no_grad(), Permitted() as mode:
        M @ N
    assert not mode.met
