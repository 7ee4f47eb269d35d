import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.oracle.factor import Factors
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of

SIZE = 2048


def refusal(reference, drawn, candidate):
    """Of a candidate that passes every single set."""
    oracle, factors = Oracle(reference), Factors()
    sets = [("drawn", oracle.expect(drawn))]
    sets += [(stress.name, expected) for stress, expected in oracle.stress(drawn) if stress.binding]
    for name, expected in sets:
        finding = oracle.check(expected, candidate(*expected.inputs))
        assert finding.passed, finding.message
        factors.add(name, finding)
    return factors.refusal()


@pytest.mark.parametrize("share", [1e-5, -1e-5])
@pytest.mark.parametrize("draw", [torch.rand, torch.randn], ids=["uniform", "normal"])
def test_a_factor_that_is_the_same_on_every_set_is_refused(draw, share):
    found = refusal(Of(torch.matmul), [draw(64, SIZE), draw(SIZE, 64)], lambda a, b: (a @ b) * (1 + share))
    assert found is not None
    assert found.reason == "mismatch:constant_factor"
    assert found.evidence["factor"] == pytest.approx(1 + share, abs=2e-6)


def truncated_product(a, b):
    """As tensor cores add up: eight products at a time, cut off to float32."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(0, a.shape[1], 8):
        wide = total.double() + a[:, k : k + 8].double() @ b[k : k + 8].double()
        near = wide.float()
        total = torch.where(near.double().abs() > wide.abs(), torch.nextafter(near, torch.zeros(())), near)
    return total


def test_sums_that_are_cut_off_term_by_term_are_no_factor():
    """They err by as much, towards zero, but not where there is one term."""
    drawn = [torch.rand(64, SIZE), torch.rand(SIZE, 64)]
    assert refusal(Of(torch.matmul), drawn, truncated_product) is None


def test_nor_are_they_in_a_second_layer_which_always_has_many():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(32, SIZE), nn.ReLU(), nn.Linear(SIZE, 32))

    def candidate(x):
        with torch.no_grad():
            hidden = F.linear(x, layers[0].weight, layers[0].bias).relu()
            return truncated_product(hidden, layers[2].weight.T) + layers[2].bias

    assert refusal(layers, [torch.rand(64, 32)], candidate) is None


def test_few_sets_are_not_enough():
    oracle, factors = Oracle(Of(torch.matmul)), Factors()
    expected = oracle.expect([torch.rand(64, SIZE), torch.rand(SIZE, 64)])
    factors.add("drawn", oracle.check(expected, torch.matmul(*expected.inputs) * (1 + 1e-5)))
    assert factors.refusal() is None
