"""What PyTorch's switches allow the reference's own operators, by a run that makes use of all of it."""

import pytest
import torch
import torch.nn.functional as F

from harness.oracle.formats import TF32, round_to
from harness.oracle.switches import Permitted

X, W, B = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4)
M, N = torch.randn(5, 7), torch.randn(7, 6)


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
