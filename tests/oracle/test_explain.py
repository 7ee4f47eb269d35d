import json
import math

import pytest
import torch
import torch.nn.functional as F

from harness.oracle.oracle import Oracle
from tests.oracle.references import GemmTail, Of


def after(change):
    """A candidate that spoils the right output in place."""

    def candidate(y):
        y = y.clone()
        change(y)
        return y

    return candidate


def fill(place, value=0.0):
    def change(y):
        y[place] = value

    return after(change)


# For tanh of (8, 48, 48) normal numbers.
TANH = {
    "mismatch:zeros": torch.zeros_like,
    "mismatch:constant": lambda y: torch.full_like(y, 0.25),
    "mismatch:constant_factor": lambda y: y * 1.5,
    "mismatch:offset": lambda y: y + 0.125,
    "mismatch:factor_and_offset": lambda y: 0.5 * y + 1,
    "mismatch:transposed": lambda y: y.transpose(1, 2).contiguous(),
    "mismatch:mean_of_axis": lambda y: y.mean(1, keepdim=True).expand_as(y).clone(),
    "mismatch:flat_axis": lambda y: y[:, :1].expand_as(y).clone(),
    "mismatch:input_returned": lambda y: torch.atanh(y),
    "mismatch:tail_rows": fill((slice(None), slice(-3, None))),
    "mismatch:tail_columns": fill((..., slice(-3, None))),
    "mismatch:columns": fill((..., slice(4, 8))),
    "mismatch:batch_entry": fill(5),
    "mismatch:tail_batch": fill(slice(6, None)),
    "mismatch:tile": fill((2, slice(16, 32), slice(16, 32))),
    "mismatch:one_element": fill((3, 4, 5), 2.0),
    "mismatch:few_elements": after(lambda y: y.view(-1).index_fill_(0, torch.tensor([5, 9000]), 3.0)),
    "precision_downgrade": lambda y: y.bfloat16().float(),
    "nan": lambda y: y * math.nan,
    "nan:tail_rows": fill((slice(None), slice(-3, None)), math.nan),
    "inf:one_element": fill((1, 2, 3), math.inf),
}  # fmt: skip


@pytest.fixture(scope="module")
def tanh():
    torch.manual_seed(0)
    oracle = Oracle(Of(torch.tanh))
    return oracle, oracle.expect([torch.randn(8, 48, 48)])


@pytest.mark.parametrize("reason", TANH)
def test_each_pattern_is_named(tanh, reason):
    oracle, expected = tanh
    finding = oracle.check(expected, TANH[reason](expected.native))
    assert finding.reason == reason
    assert finding.message
    assert len(json.dumps(finding.evidence, allow_nan=False)) < 4000


def test_a_refusal_says_where_and_how_much(tanh):
    oracle, expected = tanh
    got = expected.native.clone()
    got[5] = 0
    evidence = oracle.check(expected, got).evidence
    assert evidence["first"]["index"] == [5, 0, 0]
    assert evidence["first"]["got"] == 0
    assert evidence["first"]["expected"] == pytest.approx(float(expected.native[5, 0, 0]))
    assert evidence["worst"]["index"][0] == 5
    assert evidence["share_wrong"] == pytest.approx(1 / 8, rel=0.01)
    assert evidence["wrong_within"] == [[5, 5], [0, 47], [0, 47]]


@pytest.mark.parametrize("poison", [math.nan, 12345.0])
def test_what_was_never_written_still_holds_the_poison(tanh, poison):
    oracle, expected = tanh
    got = expected.native.clone()
    got[:, -4:] = poison
    finding = oracle.check(expected, got, poison)
    assert finding.reason == "unwritten:tail_rows"
    assert oracle.check(expected, torch.full_like(got, poison), poison).reason == "unwritten"


def test_an_output_for_earlier_inputs():
    oracle = Oracle(Of(torch.tanh))
    first = oracle.expect([torch.randn(8, 100)])
    second = oracle.expect([torch.randn(8, 100)])
    assert oracle.check(second, first.native).reason == "mismatch:earlier_output"


def test_the_wrong_mode_is_named_both_ways():
    module, x = GemmTail(64), torch.randn(32, 64) * 2 + 1
    module.bn.running_mean.fill_(0.5)
    training = Oracle(module)
    other = training.reference.native([x], 0, training=False)
    assert training.check(training.expect([x]), other).reason == "mismatch:eval_mode"
    module.eval()
    evaluating = Oracle(module)
    other = evaluating.reference.native([x], 0, training=True)
    finding = evaluating.check(evaluating.expect([x]), other)
    assert finding.reason == "mismatch:train_mode"
    assert "matches the reference in train mode, not in eval mode" in finding.message


def test_softmax_over_the_wrong_axis():
    oracle, x = Oracle(Of(lambda x: torch.softmax(x, 1))), torch.randn(40, 60)
    finding = oracle.check(oracle.expect([x]), torch.softmax(x, 0))
    assert finding.reason == "mismatch:softmax_axis"


def test_a_transpose_of_unequal_dimensions_in_the_order_of_memory():
    oracle, x = Oracle(Of(torch.tanh)), torch.randn(40, 60)
    finding = oracle.check(oracle.expect([x]), torch.tanh(x).T.contiguous().view(40, 60))
    assert finding.reason == "mismatch:transposed"


@pytest.mark.parametrize("cast", [torch.float16, torch.bfloat16])
def test_a_lower_precision_inside_is_known_by_its_signature(cast):
    module, x = GemmTail(128), torch.randn(64, 128)
    oracle = Oracle(module)
    y = F.linear(x.to(cast).float(), module.linear.weight.to(cast).float(), module.linear.bias)
    got = torch.softmax(F.batch_norm(y, None, None, training=True), 1)
    finding = oracle.check(oracle.expect([x]), got)
    assert finding.reason == "precision_downgrade"
    assert finding.evidence["likeness"] > 0.8


def test_integers_are_explained_too():
    oracle, x = Oracle(Of(lambda x: x.argmax(-1))), torch.randn(16, 32, 50)
    expected = oracle.expect([x])
    got = expected.native.clone()
    got[:, -2:] = 0
    finding = oracle.check(expected, got)
    assert finding.reason in ("mismatch:tail_columns", "mismatch:integers")
    assert finding.evidence["first"]["got"] == 0
