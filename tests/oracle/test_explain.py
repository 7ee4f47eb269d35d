import itertools
import json
import math
import re
import weakref

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from harness.oracle import case, explain, novelty, rule
from harness.oracle.formats import BFLOAT16, TF32, round_to
from harness.oracle.mistakes import arguments, search
from harness.oracle.oracle import Oracle
from harness.records import Status
from harness.wire import weights
from tests.oracle.references import GemmTail, Of, tf32


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


@pytest.mark.parametrize("wrong", ["nan", "nan:tail_rows"])
def test_the_error_of_an_answer_with_nan_is_no_number(tanh, wrong):
    oracle, expected = tanh
    finding = oracle.check(expected, TANH[wrong](expected.native))
    (leaf,) = finding.evidence["leaves"].values()
    # The other elements are exact; a 0 would be read as the error of the answer.
    assert (finding.error, finding.error_ratio, leaf["error"], leaf["error_ratio"]) == (None,) * 4


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


def told(function, wrong, *inputs):
    """The finding about `wrong`, a function like the reference's `function`, on these inputs."""
    oracle = Oracle(function if isinstance(function, torch.nn.Module) else Of(function))
    return oracle.check(oracle.expect(list(inputs)), wrong(*inputs))


def norm_by_hand(x, dims, eps=1e-5, correction=0, inside=True):
    variance = x.var(dims, correction=correction, keepdim=True)
    return (x - x.mean(dims, keepdim=True)) / ((variance + eps).sqrt() if inside else variance.sqrt() + eps)


def rms_by_hand(x, eps=1e-5, inside=True):
    square = x.pow(2).mean(1, keepdim=True)
    return x / (torch.sqrt(square + eps) if inside else torch.sqrt(square) + eps)


def late(x, weight, off):
    """A 3 x 3 convolution, padded by one, whose windows begin `off` elements late."""
    return F.conv2d(F.pad(x, (1 - off, 1 + off, 1 - off, 1 + off)), weight)


IMAGE, MATRIX, WEIGHT = (4, 6, 12, 12), (64, 96), (6, 6, 3, 3)
# Name: the reference, the wrong one, shapes of the inputs, what is said.
EXCHANGED = {
    "gelu by tanh": (F.gelu, lambda x: F.gelu(x, approximate="tanh"), [MATRIX], "gelu(approximate='tanh')"),
    "gelu by erf": (lambda x: F.gelu(x, approximate="tanh"), F.gelu, [MATRIX], "gelu(approximate='none')"),
    "gelu by erf, written out": (
        lambda x: 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))), F.gelu, [MATRIX],
        "with GELU by erf"),
    "gelu by tanh, written out": (
        lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), lambda x: F.gelu(x, approximate="tanh"), [MATRIX],
        "with GELU by tanh"),
    "gelu by a sigmoid": (F.gelu, lambda x: x * torch.sigmoid(1.702 * x), [MATRIX], "x sigmoid(1.702 x)"),
    "unbiased, by method": (
        lambda x: (x - 1) / x.var(1, unbiased=False, keepdim=True), lambda x: (x - 1) / x.var(1, keepdim=True),
        [MATRIX], "the variance over n - 1"),
    "biased deviation": (
        lambda x: x / torch.std(x, dim=1, keepdim=True), lambda x: x / torch.std(x, 1, False, True), [MATRIX],
        "the deviation over n (biased)"),
    "unbiased layer norm": (
        lambda x: F.layer_norm(x, (96,)), lambda x: norm_by_hand(x, -1, correction=1), [MATRIX],
        "layer_norm with the unbiased variance"),
    "unbiased batch norm": (
        lambda x: F.batch_norm(x, None, None, training=True), lambda x: norm_by_hand(x, (0, 2, 3), correction=1),
        [IMAGE], "batch_norm with the unbiased variance"),
    "unbiased instance norm": (
        F.instance_norm, lambda x: norm_by_hand(x, (2, 3), correction=1), [IMAGE],
        "instance_norm with the unbiased variance"),
    "another eps": (
        lambda x: F.group_norm(x, 2), lambda x: F.group_norm(x, 2, eps=1e-3), [IMAGE], "group_norm(eps=0.001)"),
    "another eps, written out": (
        rms_by_hand, lambda x: rms_by_hand(x, 1e-3), [MATRIX], "with eps=0.001 (the reference: eps=1e-05)"),
    "eps outside the root": (
        lambda x: F.layer_norm(x, (96,), eps=1e-3), lambda x: norm_by_hand(x, -1, 1e-3, inside=False), [MATRIX],
        "eps outside the root"),
    "eps outside the root, written out": (
        rms_by_hand, lambda x: rms_by_hand(x, inside=False), [MATRIX], "with eps outside the root"),
    "eps inside the root, written out": (
        lambda x: rms_by_hand(x, inside=False), rms_by_hand, [MATRIX], "with eps inside the root"),
    "sum for mean": (
        lambda x: torch.tanh(x.mean(1)), lambda x: torch.tanh(x.sum(1)), [MATRIX], "sum in place of mean"),
    "mean for sum": (
        lambda x: torch.tanh(torch.sum(x, dim=1)), lambda x: torch.tanh(x.mean(1)), [MATRIX], "mean in place of sum"),
    "another reduction": (
        F.mse_loss, lambda x, y: F.mse_loss(x, y, reduction="sum"), [MATRIX, MATRIX], "mse_loss(reduction='sum')"),
    "no bias": (
        torch.nn.Linear(96, 24), lambda x: x @ EXCHANGED["no bias"][0].weight.T, [MATRIX], "linear without its bias"),
    "a weight transposed": (
        F.linear, lambda x, w: x @ w, [(64, 48), (48, 48)], "linear's weight transposed"),
    "padding off by one": (
        lambda x, w: F.conv2d(x, w, padding=1), lambda x, w: late(x, w, 1), [IMAGE, WEIGHT],
        "conv2d with padding 0 at the start (the reference: padding=1)"),
    "dilation off by one": (
        lambda x, w: F.conv2d(x, w, padding=2, dilation=2), lambda x, w: F.conv2d(x, w, padding=2)[..., :12, :12],
        [IMAGE, WEIGHT], "conv2d with dilation 1 (the reference: dilation=2)"),
    "a kernel flipped": (
        F.conv_transpose2d, lambda x, w: F.conv_transpose2d(x, w.flip(2, 3)), [IMAGE, WEIGHT],
        "conv_transpose2d's kernel flipped"),
    "padding not counted": (
        lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [IMAGE],
        "avg_pool2d(count_include_pad=False)"),
    "no scale": (
        F.scaled_dot_product_attention, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=1.0),
        [(2, 32, 16)] * 3, "attention(scale=1)"),
    "causal": (
        F.scaled_dot_product_attention, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 32, 16)] * 3, "attention(is_causal=True)"),
    "another dimension": (
        lambda x: x.softmax(1) * 3 + x, lambda x: x.softmax(0) * 3 + x, [MATRIX], "softmax(dim=0)"),
    "a step left out": (
        lambda x, b: torch.relu(x + b) * 2, lambda x, b: (x + b) * 2, [MATRIX, (96,)], "as PyTorch without relu"),
    "one call of two": (
        lambda x: (F.gelu(x - 1) + 1) * F.gelu(x), lambda x: (F.gelu(x - 1) + 1) * F.gelu(x, approximate="tanh"),
        [MATRIX], "gelu(approximate='tanh'), in call 2 of 2"),
    "fast exponentials": (
        lambda x: torch.tanh(x / 64), lambda x: 1 - 2 / (torch.exp2(x / 32 * 1.4426950408889634) + 1), [MATRIX],
        "fast-math exponentials (the reference: tanh)"),
    "a tail left out": (
        lambda x: torch.tanh(x.sum(1)), lambda x: torch.tanh(x[:, :-4].sum(1)), [(64, 132)],
        "sum without the last 4 of 132 terms"),
    "strides not looked at": (
        lambda x: torch.tanh(x.transpose(1, 2)).sum(1), lambda x: torch.tanh(x.reshape(8, 20, 30)).sum(1),
        [(8, 30, 20)], "the result of transpose read in the order of its memory"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXCHANGED)
def test_a_usual_mistake_is_named_by_what_pytorch_would_be_called_with(name):
    function, wrong, shapes, words = EXCHANGED[name]
    finding = told(function, wrong, *(torch.randn(shape) for shape in shapes))
    assert finding.reason == "mismatch:exchanged", finding.message
    assert words in finding.message
    assert finding.evidence["runs"] <= search.MOST
    assert len(finding.message) < 320


def test_a_transposed_output_of_a_recurrent_layer_read_as_if_it_were_contiguous():
    layer, last = torch.nn.LSTM(8, 16, batch_first=True), torch.nn.Linear(16, 5)

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.last = layer, last

        def forward(self, x):
            return self.last(self.layer(x)[0][:, -1])

    def misread(x):
        output = layer(x)[0]
        return last(output.transpose(0, 1).contiguous().view(output.shape)[:, -1])

    finding = told(Last(), misread, torch.rand(40, 12, 8))
    assert finding.reason == "mismatch:exchanged"
    assert "the output of lstm read in the order of its memory" in finding.message


def test_where_a_sum_overflows_the_message_says_what_was_left_out():
    finding = told(lambda x: x.softmax(1), lambda x: x.exp() / x.exp().sum(1, keepdim=True), torch.randn(64, 96) * 60)
    assert finding.reason.startswith("nan")
    assert "as PyTorch with softmax that does not subtract the maximum" in finding.message


@pytest.mark.parametrize(("dtype", "terms"), [("float32", 1 << 18), ("float16", 2048)])
def test_one_running_sum_is_named(dtype, terms, monkeypatch):
    # What a float32 sum loses is allowed up to 2^20 terms, which takes long.
    monkeypatch.setattr(rule, "serial_error", lambda *_: 0.0)
    x = torch.rand(64, terms).to(getattr(torch, dtype))

    def serial(x):
        return torch.from_numpy(np.add.accumulate(x.numpy(), axis=1)[:, -1].copy())

    finding = told(lambda x: x.sum(1), serial, x)
    assert finding.reason == "mismatch:running_sum"
    assert f"one running sum of {terms} terms in {dtype}" in finding.message


@pytest.mark.parametrize("shape", [(64, 400, 2048), (64, 911, 128), (35, 911, 187), (256, 400, 256), (128, 300, 2048)])
def test_what_follows_a_sum_is_no_running_sum(shape):
    # The last result may come to lie where the product lay, which nobody needs any more.
    rows, terms, columns = shape
    most = torch.tensor(0.26 * terms)

    def reference(x, w):
        x = x @ w
        x = torch.minimum(x, most)
        return x - most

    torch.manual_seed(0)
    finding = told(reference, lambda x, w: x @ w - most, torch.rand(rows, terms), torch.rand(terms, columns))
    assert finding.reason == "mismatch"


def test_an_error_that_grows_along_a_dimension_is_called_growth():
    steps = torch.arange(400.0)
    finding = told(lambda x: x.cumsum(1), lambda x: x.cumsum(1) + 1e-6 * steps**2, torch.randn(32, 400))
    assert finding.reason == "mismatch:growing"
    assert "grows along dimension 1" in finding.message
    assert finding.evidence["error_in_last_eighth"] > finding.evidence["error_in_first_eighth"]
    assert finding.evidence["first"].keys() == {"index", "expected", "got"}


NOT_PRECISION = {
    "noise as large as tf32's": lambda x: torch.tanh(x) * (1 + 4e-4 * torch.randn(x.shape)),
    "noise as large as bf16's": lambda x: torch.tanh(x) * (1 + 3e-3 * torch.randn(x.shape)),
    "a poor approximation": lambda x: x * (27 + x * x) / (27 + 9 * x * x),
}


@pytest.mark.parametrize("name", NOT_PRECISION)
def test_the_size_of_an_error_alone_is_no_lower_precision(name):
    finding = told(torch.tanh, NOT_PRECISION[name], torch.randn(64, 96))
    assert finding.reason == "mismatch"
    assert "size alone does not tell why" in finding.message
    # Nothing else is known of it, though most elements are wrong.
    assert re.search(r"elements wrong \(the worst at \[\d+, \d+\]: \S+ in place of \S+\)", finding.message)


LOWER = {
    "products of bf16": lambda x, w, b: torch.tanh(x.bfloat16().float() @ w.bfloat16().float() + b),
    "one operand in tf32": lambda x, w, b: torch.tanh(tf32(x) @ w + b),
    "stored between layers": lambda x, w, b: torch.tanh((x @ w + b).half().float()),
    "the result": lambda x, w, b: torch.tanh(x @ w + b).bfloat16().float(),
}


@pytest.mark.parametrize("name", LOWER)
def test_a_lower_precision_is_known_by_the_direction_of_its_errors(name):
    inputs = torch.randn(64, 96), torch.randn(96, 80) / 10, torch.randn(80)
    finding = told(lambda x, w, b: torch.tanh(x @ w + b), LOWER[name], *inputs)
    assert finding.reason == "precision_downgrade"
    assert "the fix: " in finding.message


@pytest.fixture
def tail_of_drawn_weights():
    """A product before a normalisation whose weights are drawn, as the judge's are."""
    torch.manual_seed(1)
    with weights.drawn(weights.Drawn(1)) as drawn:
        module = GemmTail(512)
    weights.draw_the_rest(module, drawn)
    return module


@pytest.mark.parametrize("format", [TF32, BFLOAT16])
def test_products_in_a_lower_precision_are_known_beside_drawn_weights(tail_of_drawn_weights, format):
    """Rounding the weights of a normalisation would move the output by more than rounding the product's operands."""
    module, x = tail_of_drawn_weights, torch.randn(256, 512)
    oracle = Oracle(module)
    with torch.no_grad():
        expected = oracle.expect([x])
        product = F.linear(round_to(x, format), round_to(module.linear.weight, format), module.linear.bias)
        found = oracle.check(expected, module.tail(product))
    assert found.reason == "precision_downgrade", found.message
    assert found.evidence["format"] == format.name
    assert found.evidence["likeness"] > 0.95
    if format is TF32:
        leaf = found.evidence["leaves"]["output"]
        assert leaf["lower_precision_error"] == pytest.approx(leaf["error"], rel=0.05)


def test_a_few_that_stand_out_do_not_hide_why_the_rest_is_refused(tail_of_drawn_weights):
    module, x = tail_of_drawn_weights, torch.randn(256, 512)
    oracle = Oracle(module)
    with torch.no_grad():
        expected = oracle.expect([x])
        coarse = module.tail(F.linear(tf32(x), tf32(module.linear.weight), module.linear.bias))
        leaf = oracle.check(expected, coarse).evidence["leaves"]["output"]
        # So little over the limit that hardly any element is visibly wrong, but for one that is more so.
        share = 1.02 * leaf["limit_ratio"] / leaf["error_ratio"]
        output = torch.lerp(expected.native, coarse, share)
        output[3, 5] += 20 * (output - expected.native).abs().max()
        found = oracle.check(expected, output)
    assert found.evidence["share_wrong"] < 1e-3
    assert found.reason == "precision_downgrade", found.message


def test_sums_in_a_lower_precision_are_known_by_what_they_come_out_as():
    def blocks(a, b):
        total = torch.zeros(64, 48).bfloat16()
        for k in range(0, 96, 32):
            total += (a[:, k : k + 32] @ b[k : k + 32]).bfloat16()
        return total.float()

    finding = told(torch.matmul, blocks, torch.randn(64, 96), torch.randn(96, 48))
    assert finding.reason == "precision_downgrade"
    assert "every element is a bf16 number" in finding.message


@pytest.mark.parametrize("shape", [(), (1,), (3,), (64,), (40, 60)])
def test_a_refusal_never_says_that_nothing_is_wrong(shape):
    """The share goes by the criterion of the verdict, also where each error is just above it."""
    oracle = Oracle(Of(lambda x: torch.tanh(x) * 3 + 5))
    expected = oracle.expect([torch.randn(shape)])
    [yard] = expected.yards.values()
    for times in (1.05, 1.5, 3.0, 10.0):
        got = expected.exact["output"] + times * yard.limits.norm
        finding = oracle.check(expected, got.float())
        assert not finding.passed
        assert finding.evidence["share_wrong"] > 0
        assert " 0.00% of" not in finding.message


def test_a_search_ends_after_so_many_runs_and_forgives_what_foreign_code_raises():
    runs = []

    def many(x):
        runs.append(1)
        for step in (torch.relu, F.gelu, torch.tanh, F.silu, F.mish, F.softsign):
            x = step(x - 0.5) * 1.25 + F.layer_norm(x, x.shape[-1:])
        return x

    oracle = Oracle(Of(many))
    expected = oracle.expect([torch.randn(32, 48)])
    del runs[:]
    got = expected.native * (1 + 0.1 * torch.randn(32, 48))
    assert oracle.check(expected, got).reason == "mismatch"
    assert search.MOST <= len(runs) <= explain.RUNS

    def fussy(x):
        y = torch.softmax(x, 1)
        assert bool((y.sum(1) - 1).abs().max() < 1e-3)
        return y @ x.T

    assert told(fussy, lambda x: fussy(x) * (1 + 1e-3 * torch.randn(32, 32)), torch.randn(32, 48)).reason == "mismatch"


@pytest.mark.parametrize(
    ("drawn", "hard", "words"),
    [
        (torch.rand(8, 8), -torch.rand(8, 8), "with negative numbers, which no drawn input has"),
        (torch.ones(8, 8), torch.full((8, 8), 128.0), "with numbers as large as 128, where drawn ones reach 1"),
        (torch.ones(8, 8), torch.full((8, 8), 0.125), "with no number above 0.125, where drawn ones reach 1"),
        (torch.randn(8, 8), torch.zeros(8, 8).fill_diagonal_(1.0), "mostly zeros, as no drawn input is"),
        (torch.arange(8.0).repeat(8, 1), torch.full((8, 8), 5.0), "equal numbers in each row, as in no drawn input"),
        (torch.randn(8, 8), torch.full((8, 8), math.inf), "with inf, which no drawn input has"),
        (torch.randn(8, 8).sort(0).values, torch.randn(8, 8).clamp(-1, 1), ""),
    ],
)  # fmt: skip
def test_what_hard_inputs_have_that_no_drawn_ones_had(drawn, hard, words):
    assert novelty.beyond([drawn, 3], [hard, 3]) == words


def test_no_run_is_begun_for_an_explanation_that_takes_long(monkeypatch):
    monkeypatch.setattr(case, "SECONDS", -1.0)
    finding = told(F.gelu, lambda x: F.gelu(x, approximate="tanh"), torch.randn(64, 96))
    assert finding.reason == "mismatch"


@pytest.mark.parametrize(
    "fragile",
    [
        lambda x: F.binary_cross_entropy(x.sigmoid(), torch.ones_like(x)),
        lambda x: torch.arange(200.0)[(x.sigmoid() * 100).long()],
    ],
)
def test_what_wrong_numbers_could_make_a_card_assert_is_not_searched(fragile):
    oracle = Oracle(Of(fragile))
    expected = oracle.expect([torch.randn(32, 48)])
    finding = oracle.check(expected, expected.native + 7 * torch.randn(expected.native.shape))
    assert not finding.passed
    assert "exchanged" not in finding.reason
    mode = search.Exchanged()
    oracle.reference.native(expected.inputs, 0, mode=mode)
    assert mode.fragile


def test_what_a_search_notes_of_a_call_holds_none_of_its_tensors():
    held = []

    def noting(x):
        y = F.gelu(x)
        held.append(weakref.ref(y))
        return F.layer_norm(y, (96,))

    mode = search.Exchanged()
    Oracle(Of(noting)).reference.native([torch.randn(64, 96)], 0, mode=mode)
    assert mode.met
    assert held[-1]() is None


@pytest.mark.parametrize("wrong", ["another offset", "NaN"])
def test_a_step_that_makes_real_numbers_of_complex_ones_is_not_taken_for_one_that_can_be_left_out(wrong, capsys):
    """Without it the reference gives complex numbers in the same shape, which no real output can be compared with."""
    oracle = Oracle(Of(lambda x: torch.stft(x, 64, 16, window=torch.hann_window(64), return_complex=True).abs()))
    expected = oracle.expect([torch.randn(3, 320)])
    output = expected.native + (math.nan if wrong == "NaN" else 0.01 * torch.rand_like(expected.native))

    finding = oracle.check(expected, output)

    assert not finding.passed
    assert "unexplained" not in finding.evidence
    assert not capsys.readouterr().err


def test_a_refusal_stands_where_its_explanation_fails(monkeypatch, capsys):
    def fails(*_, **__):
        raise RuntimeError("in a way that nobody has tried")

    monkeypatch.setattr(search, "search", fails)
    oracle = Oracle(Of(torch.tanh))
    expected = oracle.expect([torch.randn(8, 64)])

    finding = oracle.check(expected, expected.native + torch.randn(8, 64))

    assert (finding.status, finding.reason) == (Status.INCORRECT, "mismatch")
    assert "RuntimeError" in finding.message
    assert finding.evidence["unexplained"] == "RuntimeError"
    assert "nobody has tried" in capsys.readouterr().err


def half(x):
    return x.half().float()


def whole(a, b):
    return a @ b


def complex_whole(a, b):
    return torch.complex(a, a + 1) @ torch.complex(b, b - 1)


@pytest.mark.parametrize("function", [whole, complex_whole])
def test_what_only_the_signature_refuses_is_a_lower_precision_and_no_element(function):
    """Of many that are as wrong, the few that are more so by chance had been the reason."""
    torch.manual_seed(0)
    a, b = torch.rand(256, 4096), torch.rand(4096, 256)
    finding = told(function, lambda a, b: function(half(a), half(b)), a, b)
    assert finding.evidence["leaves"]["output"]["over"] == "signature"
    assert finding.reason == "precision_downgrade"
    assert re.search(r" products \(correlation \d\.\d\d\); no single one of \d+ elements stands out; ", finding.message)
    assert "share_wrong" not in finding.evidence


def test_where_memory_does_not_do_a_few_entries_are_explained(monkeypatch):
    monkeypatch.setattr("harness.oracle.exact.MUCH", {"cpu": 1e6})
    monkeypatch.setattr("harness.oracle.chunks.ENOUGH", {"cpu": 1 << 16})
    oracle, x = Oracle(Of(F.gelu)), torch.randn(512, 1024)
    expected, got = oracle.expect([x]), F.gelu(x, approximate="tanh")
    locate = explain.regions.locate

    def with_little_memory(mask):
        if mask.numel() == x.numel():
            raise torch.OutOfMemoryError("no room")
        return locate(mask)

    monkeypatch.setattr(explain.regions, "locate", with_little_memory)
    assert "gelu(approximate='tanh')" in oracle.check(expected, got).message
    # Where nothing is wrong with those few, nothing is made up.
    one = F.gelu(x)
    one[77, 5] += 1.0
    found = oracle.check(expected, one)
    assert "why was not found out (OutOfMemoryError)" in found.message


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_complex_numbers_of_two_halves_are_explained():
    def pairs(x):
        return torch.view_as_complex(x.reshape(64, 64, 2).contiguous())

    x = torch.randn(64, 128).half()
    oracle = Oracle(Of(pairs))
    expected = oracle.expect([x])
    assert oracle.check(expected, pairs(x)).passed
    assert oracle.check(expected, pairs((x.float() * 1.05).half())).reason == "mismatch:constant_factor"


def test_what_is_broadcast_to_the_whole_is_told_as_pytorch_tells_it():
    shapes = [shape for length in range(4) for shape in itertools.product((0, 1, 2, 3), repeat=length)]
    for shape, whole in itertools.product(shapes, shapes):
        try:
            expected = tuple(torch.broadcast_shapes(shape, whole)) == whole
        except RuntimeError:
            expected = False
        assert arguments._fits_into(shape, whole) == expected


def test_other_random_numbers_than_the_reference_draws_are_called_so():
    oracle = Oracle(Of(lambda x: torch.softmax(F.dropout(x, 0.2), 1)))
    expected = oracle.expect([torch.randn(64, 96)])
    torch.manual_seed(expected.seed + 12)
    other = torch.softmax(F.dropout(expected.inputs[0], 0.2), 1)
    finding = oracle.check(expected, other)
    assert finding.reason == "mismatch:random", finding.message
    assert "PyTorch's own functions" in finding.message


def test_beside_a_huge_right_answer_what_is_small_is_no_input():
    oracle = Oracle(Of(lambda x: 1e6 * torch.tanh(x)))
    expected = oracle.expect([torch.randn(64, 96)])
    finding = oracle.check(expected, torch.cos(expected.inputs[0]))
    assert not finding.passed
    assert finding.reason != "mismatch:input_returned"
    assert oracle.check(expected, expected.inputs[0].clone()).reason == "mismatch:input_returned"
