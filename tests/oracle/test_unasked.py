"""What it takes to refuse an answer when nobody asks why."""

import pytest
import torch

from harness.oracle import checks, verdict
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of

INPUTS = [torch.rand(512, 512, generator=torch.Generator().manual_seed(1))]


@pytest.fixture
def oracle():
    return Oracle(Of(torch.tanh))


def wrong_at(share):
    """The right answer, but for a share of its elements."""
    right = torch.tanh(INPUTS[0])
    places = torch.randperm(right.numel(), generator=torch.Generator().manual_seed(2))[: int(share * right.numel())]
    right.view(-1)[places] += 0.5
    return right


def test_what_is_wrong_in_most_places_is_refused_by_a_few_of_them(oracle, monkeypatch):
    expected = oracle.expect(INPUTS)
    monkeypatch.setattr(checks, "measure", None)
    finding = oracle.check(expected, wrong_at(0.5), explained=False)
    assert not finding.passed
    assert finding.error_ratio > 1e5
    with pytest.raises(TypeError):
        oracle.check(expected, wrong_at(0.5))


@pytest.mark.parametrize("share", [0.0, 1e-5, 0.01, 0.06, 0.2, 1.0])
def test_it_is_refused_where_the_whole_check_refuses_it(oracle, share):
    expected, output = oracle.expect(INPUTS), wrong_at(share)
    assert oracle.check(expected, output, explained=False).passed == oracle.check(expected, output).passed


def test_no_pattern_is_looked_for(oracle, monkeypatch):
    small = [INPUTS[0][:64]]
    expected = oracle.expect(small)
    monkeypatch.setattr(verdict, "likeness", None)
    assert not oracle.check(expected, torch.zeros(64, 512), explained=False).passed
    with pytest.raises(TypeError):
        oracle.check(expected, torch.zeros(64, 512))
