"""Hard inputs of large problems: a few entries of the batch in float64, the rest against the reference's own output."""

import pytest
import torch
import torch.nn.functional as F

from harness.oracle import chunks, exact
from harness.oracle.expectation import Expectation
from harness.oracle.oracle import Oracle, Sampled
from harness.oracle.stress import SETS
from tests.oracle.references import Of

SHAPE = (256, 4, 256)


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """What these problems are against the slices and samples of a float64 run."""
    monkeypatch.setattr(exact, "MUCH", {"cpu": 1 << 16})
    monkeypatch.setattr(chunks, "ENOUGH", {"cpu": 1 << 14})


def opened(function, *others):
    """An oracle that knows drawn inputs, and these."""
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(function)), [torch.rand(SHAPE), *others]
    oracle.expect(drawn)
    return oracle, drawn


def hard(oracle, drawn, name):
    (one,) = (one for one in SETS if one.name == name)
    ((_, inputs),) = oracle.stress_inputs(drawn, 0, [one])
    return oracle.sampled_stress(one, inputs, drawn, 0)


def by_another_way(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


@pytest.mark.parametrize("name", [one.name for one in SETS if one.binding])
def test_an_honest_answer_takes_no_float64_run_of_the_whole(name, monkeypatch):
    oracle, drawn = opened(lambda x: x.softmax(-1))
    expected = hard_or_none(oracle, drawn, name)
    if expected is None:
        return
    assert isinstance(expected, Sampled)
    assert len(expected.few.entries) < SHAPE[0] / 4
    monkeypatch.setattr(oracle, "expect_stress", None)
    assert oracle.check(expected, by_another_way(*expected.inputs)).passed


def hard_or_none(oracle, drawn, name):
    try:
        return hard(oracle, drawn, name)
    except ValueError:
        # A set that is not for such references.
        return None


def test_one_wrong_element_outside_of_the_entries_is_found_and_explained():
    oracle, drawn = opened(torch.tanh)
    expected = hard(oracle, drawn, "signs")
    outside = next(entry for entry in range(SHAPE[0]) if entry not in expected.few.entries.tolist())
    wrong = expected.native.clone()
    wrong[outside, 1, 5] += 0.5
    finding = oracle.check(expected, wrong)
    assert finding.reason == "mismatch:one_element"
    assert finding.evidence["worst"]["index"] == [outside, 1, 5]


def test_what_is_wrong_everywhere_is_refused_as_ever():
    oracle, drawn = opened(torch.abs)
    expected = hard(oracle, drawn, "signs")
    whole = oracle.check(expected.whole(), expected.inputs[0])
    assert not whole.passed
    assert oracle.check(expected, expected.inputs[0]) == whole


def test_a_passed_answer_has_the_slopes_of_its_entries():
    oracle, drawn = opened(torch.tanh)
    expected = hard(oracle, drawn, "signs")
    finding = oracle.check(expected, torch.tanh(*expected.inputs) * (1 + 2**-22))
    assert finding.passed
    assert finding.slopes["output"].share == pytest.approx(2**-22, rel=0.2)


def test_weights_are_not_cut():
    weight = torch.randn(256, 64)
    oracle, drawn = opened(lambda x, w: torch.tanh(x @ w), weight)
    expected = hard(oracle, drawn, "negative")
    assert isinstance(expected, Sampled)
    assert expected.some.inputs[1].shape == weight.shape
    assert oracle.check(expected, expected.native).passed


@pytest.mark.parametrize("function", [lambda x: x - x.mean(), lambda x: F.dropout(x, 0.5), lambda x: x.sum((1, 2))])
def test_where_entries_depend_on_each_other_or_are_a_number_each_all_is_computed(function):
    oracle, drawn = opened(function)
    assert isinstance(hard(oracle, drawn, "signs"), Expectation)


def test_a_stencil_that_keeps_the_borders_of_its_grid_is_not_cut():
    """Of a single row, as of the first and the last one, it changes nothing."""

    def smoothed(x):
        y = x.clone()
        y[1:-1, :, 1:-1] = (x[:-2, :, 1:-1] + x[2:, :, 1:-1] + x[1:-1, :, :-2] + x[1:-1, :, 2:]) / 4
        return y

    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(smoothed)), [torch.rand(SHAPE)]
    assert oracle.few(drawn, 0) is None
    expected = oracle.expect(drawn)
    assert expected.where != "chunked"
    assert oracle.check(expected, smoothed(*drawn)).passed
    assert not oracle.check(expected, smoothed(*drawn).bfloat16().float()).passed
