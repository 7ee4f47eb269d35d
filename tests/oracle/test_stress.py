import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.oracle.oracle import Oracle
from harness.oracle.stress import SETS
from tests.oracle.references import Of

BY_NAME = {stress.name: stress for stress in SETS}
INPUTS = [
    torch.randn(6, 40),
    torch.randint(9, (6,)),
    torch.rand(6, 40).half(),
    torch.rand(()),
    3,
    "x",
    torch.rand(6) > 0.5,
]


@pytest.mark.parametrize("stress", SETS, ids=lambda stress: stress.name)
def test_shapes_dtypes_and_whatever_is_no_float_stay(stress):
    kept = [x.clone() if isinstance(x, torch.Tensor) else x for x in INPUTS]
    made = stress.inputs(INPUTS, 0)
    for new, old, before in zip(made, INPUTS, kept, strict=True):
        if not isinstance(old, torch.Tensor):
            assert new is old
            continue
        assert (new.shape, new.dtype) == (old.shape, old.dtype)
        assert torch.equal(old, before)
        if not old.is_floating_point():
            assert torch.equal(new, old)


def test_a_set_is_the_same_for_the_same_seed():
    first, again, other = (BY_NAME["signs"].inputs(INPUTS, seed)[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_sets_are_what_they_say():
    x = INPUTS[0]
    sets = {name: stress.inputs([x], 0)[0] for name, stress in BY_NAME.items()}
    assert torch.equal(sets["signs"].abs(), x.abs())
    assert torch.equal(sets["signs_up"].abs(), x.abs() * 8)
    assert torch.equal(sets["signs_far_up"].abs(), x.abs() * 16)
    assert {-1.0, 1.0} == set((sets["signs_far_up"] / (16 * x)).flatten().tolist())
    assert torch.equal(sets["huge_above"], x.abs() * 2**20)
    assert torch.equal(sets["huge_below"], -x.abs() * 2**20)
    assert (sets["negative"] <= 0).all()
    assert (sets["constant_rows"] == x[:, :1]).all()
    assert ((sets["one_hot"] != 0).sum(1) == 1).all()
    assert (sets["sorted"][::2].diff(dim=1) >= 0).all()
    assert torch.equal(sets["hugest"], x * 2**40)
    assert ((sets["about_one"] - 1).abs() < 0.5).all()
    assert (sets["one_huge"] != x).sum() == 1
    assert sets["one_huge"].abs().max() > 2**22 * x.abs().sum()
    assert torch.equal(sets["rolled"][1:], x[:-1])
    assert (sets["subnormal"].abs() < torch.finfo(x.dtype).smallest_normal).all()
    assert torch.isinf(sets["minus_infinity"]).sum() == 6
    assert torch.isnan(sets["nan"]).sum() == 6
    assert ((sets["one_row_far_up"] != x).any(1)).sum() == 1
    assert (sets["last_of_all"] != x).sum() == (sets["one_of_all"] != x).sum() == 1
    assert sets["one_of_all"].abs().max() > 32 * x.abs().sum()
    assert ((sets["one_row_far_below"] < -127).all(1)).sum() == ((sets["one_row_far_below"] != x).any(1)).sum() == 1
    assert (sets["furthest_below"] <= -4096).all()
    assert ((sets["one_row_furthest_below"] < -4095).all(1)).sum() == 1
    assert torch.equal(sets["last_of_all"].flatten()[:-1], x.flatten()[:-1])
    assert sets["last_of_all"][-1, -1].square() > 900 * x.numel() * x.square().sum()
    assert (sets["one_row_of_zeros"] == 0).all(1).sum() == 1
    for name, times in (("dominant", 32), ("spike", 256), ("spike_at_an_end", 256)):
        largest, second = sets[name].abs().topk(2).values.unbind(1)
        assert (largest > 0.9 * times * second).all()


def test_every_other_row_is_dealt_out():
    made = BY_NAME["sorted"].inputs([torch.rand(2, 256)], 0)[0]
    assert made[0].topk(4).indices.sort().values.tolist() == [252, 253, 254, 255]
    assert made[1].topk(4).indices.diff().abs().tolist() == [4, 4, 4]


def test_a_row_of_a_16_bit_input_keeps_its_differences_below_zero():
    made = BY_NAME["furthest_below"].inputs([torch.rand(6, 40).half()], 0)[0]
    assert made.unique().numel() > 2


def test_a_spike_at_an_end_is_at_both():
    made = BY_NAME["spike_at_an_end"].inputs([torch.rand(64, 40)], 0)[0]
    assert set(made.argmax(1).tolist()) == {0, 39}


@pytest.mark.parametrize("shape", [(7,), (6, 1), (2, 3, 4, 5)])
def test_one_row_of_all_is_another_each_time(shape):
    x = torch.randn(shape) + 1
    changed = [(BY_NAME["one_row_far_up"].inputs([x], seed)[0] != x).nonzero()[0].tolist() for seed in range(40)]
    assert len({tuple(place[:-1]) for place in changed}) > x.numel() // shape[-1] / 2


@pytest.mark.parametrize("turn", range(3))
def test_of_several_inputs_one_of_the_largest_goes_far_up(turn):
    drawn = [torch.rand(4, 1), torch.rand(4, 8), torch.arange(32), torch.rand(4, 8)]
    made = replace(BY_NAME["scaled_far_up"], turn=turn).inputs(drawn, 0)
    changed = [not torch.equal(new, old) for new, old in zip(made, drawn, strict=True)]
    assert changed == [False, turn % 2 == 0, False, turn % 2 == 1]


PART_OF_ALL = {
    "mean": (lambda x: x.mean(), lambda x: x[:-8].mean()),
    "every other row": (lambda x: (x * x).mean(), lambda x: (x[::2] * x[::2]).mean()),
    "norm": (lambda x: x / x.norm(), lambda x: x / (x[::8].norm() * 8**0.5)),
    "centred": (lambda x: x - x.mean(), lambda x: x - x[: x.shape[0] // 2].mean()),
}


@pytest.mark.parametrize("name", PART_OF_ALL)
def test_a_part_of_all_elements_does_not_stand_for_all(name):
    whole, part = PART_OF_ALL[name]
    oracle, drawn = Oracle(Of(whole)), [torch.rand(512, 256)]
    oracle.expect(drawn)
    [(_, expected)] = oracle.stress(drawn, sets=[BY_NAME["many_of_all"]])
    assert oracle.check(
        expected, whole(expected.inputs[0].flip(0)).flip(0) if name == "norm" else expected.native
    ).passed
    assert not oracle.check(expected, part(*expected.inputs)).passed


def test_an_output_that_overflows_leaves_the_others_their_hard_inputs():
    def reference(x):
        return torch.exp(x), F.softplus(x), x.argmax(-1)

    oracle, drawn = Oracle(Of(reference)), [torch.randn(32, 64)]
    oracle.expect(drawn)
    [(_, expected)] = oracle.stress(drawn, sets=[BY_NAME["signs_far_up"]])
    [(_, far)] = oracle.stress(drawn, sets=[BY_NAME["scaled_far_up"]])
    assert not expected.left_out
    assert far.left_out == {"output[0]", "output[2]"}
    x = far.inputs[0]
    assert oracle.check(far, (torch.zeros_like(x), F.softplus(x), torch.zeros(32, dtype=torch.int64))).passed
    assert oracle.check(far, (torch.exp(x), torch.log(1 + torch.exp(x)), x.argmax(-1))).reason.startswith("inf")


def names(reference, drawn):
    oracle = Oracle(reference)
    oracle.expect(drawn)
    return {stress.name for stress, _ in oracle.stress(drawn)}


@pytest.mark.parametrize(
    "reference",
    [nn.LayerNorm(64), nn.BatchNorm1d(64), Of(lambda x: x - ((x - x.mean(0)) ** 2).mean(0))],
    ids=["layer", "batch", "by hand"],
)
def test_who_takes_a_variance_is_not_asked_for_it_at_minus_4096(reference):
    found = names(reference, [torch.rand(64, 64)])
    assert "far_below" in found
    assert not {"furthest_below", "one_row_furthest_below"} & found


def test_who_takes_none_is_asked_there():
    found = names(nn.Softmax(-1), [torch.rand(64, 64)])
    assert {"furthest_below", "one_row_furthest_below"} <= found
    assert not {"far_below", "one_row_far_below"} & found


@pytest.mark.parametrize(
    ("reference", "grows"),
    [
        (nn.ReLU(), True),
        (nn.Linear(64, 64), True),
        (nn.SiLU(), True),
        (nn.Softmax(-1), True),
        (Of(lambda x: torch.sin(x)), False),
        (Of(lambda x: torch.log(x.abs() + 1)), False),
    ],
    ids=["relu", "bias", "swish", "saturated", "sine", "logarithm"],
)
def test_huge_inputs_are_for_what_grows_with_them(reference, grows):
    assert ("huge_above" in names(reference, [torch.randn(64, 64)])) == grows


def test_huge_inputs_leave_the_range_of_fp16():
    assert "huge_above" not in names(nn.ReLU(), [torch.randn(64, 64).half()])


@pytest.mark.parametrize(
    "function", [torch.tanh, lambda x: x.softmax(-1), lambda x: nn.functional.layer_norm(x, (256,))]
)
def test_one_hard_row_of_hundreds_that_is_wrong_is_seen(function):
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(function)), [torch.randn(512, 256)]
    oracle.expect(drawn)
    found = {}
    for stress, expected in oracle.stress(drawn, 0, [one for one in SETS if one.demands == "sense_in_rows"]):
        hard = (expected.inputs[0] != drawn[0]).any(1)
        assert hard.sum() == 1
        assert oracle.check(expected, function(expected.inputs[0].double()).float()).passed
        if stress.name != "one_row_of_zeros":
            found[stress.name] = oracle.check(expected, torch.where(hard[:, None], 0.0, expected.native))
    assert len(found) > 1
    assert not any(finding.passed for finding in found.values())


@pytest.mark.parametrize("function", [torch.mean, lambda x: x.amax(1)])
def test_who_reads_a_part_of_the_elements_meets_one_that_he_does_not_read(function):
    """Of many 16-bit numbers that are spread evenly, the mean and the largest are the same in each part."""
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(function)), [torch.rand(256, 4096).bfloat16()]
    expected = oracle.expect(drawn)

    def quarter(x):
        return function(x[:, :1024].float()).bfloat16()

    assert oracle.check(expected, quarter(*drawn)).passed
    hard = [expected for seed in range(8) for _, expected in oracle.stress(drawn, seed, [BY_NAME["one_of_all"]])]
    seen = [oracle.check(expected, quarter(*expected.inputs)).passed for expected in hard]
    assert len(seen) == 8
    assert seen.count(False) > 0
    assert all(oracle.check(expected, function(expected.inputs[0].double()).bfloat16()).passed for expected in hard)


def test_an_output_that_is_always_zero_keeps_no_hard_input_from_the_others():
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(lambda x: (x.exp(), x[:, :1] * 0))), [torch.rand(64, 256)]
    expected = oracle.expect(drawn)
    assert expected.meaningful
    sets = dict(oracle.stress(drawn, 0, [BY_NAME["signs"], BY_NAME["negative"]]))
    assert len(sets) == 2
    for expected in sets.values():
        (x,) = expected.inputs
        assert oracle.check(expected, (x.exp(), x[:, :1] * 0)).passed
        assert not oracle.check(expected, (x.abs().exp(), x[:, :1] * 0)).passed
        assert not oracle.check(expected, (x.exp(), x[:, :1])).passed


def test_nothing_but_zeros_says_nothing():
    oracle = Oracle(Of(lambda x: x * 0))
    assert not oracle.expect([torch.rand(64, 256)]).meaningful


def test_squares_in_half_precision_overflow_on_a_hard_input():
    def norm(x):
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    def squares_first(x):
        return (x.float() * torch.rsqrt((x * x).float().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    drawn = [torch.randn(40, 256).half()]
    oracle = Oracle(Of(norm))
    oracle.expect(drawn)
    hard = {stress.name: expected for stress, expected in oracle.stress(drawn)}
    assert oracle.check(hard["past_squares"], norm(hard["past_squares"].inputs[0])).passed
    assert not oracle.check(hard["past_squares"], squares_first(hard["past_squares"].inputs[0])).passed
    # Who squares in half precision by itself is not asked.
    oracle = Oracle(Of(lambda x: x * x))
    oracle.expect(drawn)
    assert "past_squares" not in {stress.name for stress, _ in oracle.stress(drawn)}
    # Nor are others' inputs changed so.
    drawn = [torch.randn(40, 256)]
    oracle = Oracle(Of(norm))
    oracle.expect(drawn)
    assert "past_squares" not in {stress.name for stress, _ in oracle.stress(drawn)}


def cosine(a, b, eps=0.0):
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1) + eps)


@pytest.mark.parametrize(
    ("reference", "kernel", "passes"),
    [
        (cosine, lambda a, b: cosine(a, b, 1e-12), True),
        (cosine, lambda a, b: (a * b).sum(-1) * torch.rsqrt((a * a).sum(-1) * (b * b).sum(-1) + 1e-12), True),
        (cosine, lambda a, b: cosine(a, b, 1e-6), False),
        (lambda a, b: a / a.norm(dim=-1, keepdim=True), lambda a, b: a / (a.norm(dim=-1, keepdim=True) + 1e-8), False),
        (lambda a, b: a / a.norm(dim=-1, keepdim=True), lambda a, b: a / (a.norm(dim=-1, keepdim=True) + 1e-12), True),
        (lambda a, b: a * (b * b).sum().rsqrt(), lambda a, b: a * ((b * b).sum() + 1e-12).rsqrt(), True),
    ],
)
def test_what_is_added_to_a_product_of_small_numbers_for_safety_is_no_mistake(reference, kernel, passes):
    torch.manual_seed(0)
    drawn = [torch.randn(40, 64), torch.randn(40, 64)]
    oracle = Oracle(Of(reference))
    oracle.expect(drawn)
    hard = [expected for stress, expected in oracle.stress(drawn) if stress.name in ("tiny", "scaled_down")]
    assert hard
    assert all(oracle.check(expected, kernel(*expected.inputs)).passed for expected in hard) is passes


def test_a_kernel_that_cuts_small_numbers_off_meets_small_ones_still():
    drawn = [torch.randn(40, 64)]
    oracle = Oracle(Of(torch.tanh))
    oracle.expect(drawn)
    assert {"tiny", "scaled_down"} <= {stress.name for stress, _ in oracle.stress(drawn)}


def test_a_variance_in_two_passes_may_round_one_way_beside_a_huge_number():
    def two_passes(x):
        squares = (x - x.mean(1, keepdim=True)).square().T
        total = torch.zeros_like(squares[0])
        for row in squares:
            total = total + row
        return total / (x.shape[1] - 1)

    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(lambda x: x.var(1))), [torch.randn(64, 512) * 2 + 1]
    oracle.expect(drawn)
    for seed in range(20):
        [(_, expected)] = oracle.stress(drawn, seed, sets=[BY_NAME["one_huge"]])
        assert oracle.check(expected, two_passes(*expected.inputs)).passed


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_a_state_that_forgets_has_to_remember_where_gates_hold_it(kind):
    torch.manual_seed(3)
    layer = kind(32, 64, batch_first=True)
    oracle, drawn = Oracle(Of(lambda x: layer(x)[0][:, -1].detach())), [torch.rand(4, 128, 32)]
    usual = oracle.expect(drawn)
    [(_, held)] = oracle.stress(drawn, sets=[BY_NAME["held"]])
    with torch.no_grad():
        assert oracle.check(usual, layer(drawn[0][:, -96:])[0][:, -1]).passed
        assert not oracle.check(held, layer(held.inputs[0][:, -96:])[0][:, -1]).passed
        assert oracle.check(held, layer(held.inputs[0].double().float())[0][:, -1]).passed


def test_where_one_number_is_all_of_an_output_the_others_may_be_rounded():
    """Of a mean whose largest number is rounded to nothing by luck, the reference's error elsewhere says what others
    may err by."""
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(lambda x: F.adaptive_avg_pool2d(x, (5, 7)))), [torch.randn(3, 17, 33, 45)]
    oracle.expect(drawn)

    def by_matrices(x):
        sides = [F.adaptive_avg_pool1d(torch.eye(n), out).T.contiguous() for n, out in ((33, 5), (45, 7))]
        return sides[0] @ x @ sides[1].T

    found = [
        oracle.check(expected, by_matrices(*expected.inputs)).message
        for seed in range(40)
        for _, expected in oracle.stress(drawn, seed, [BY_NAME["one_huge"]])
    ]
    assert len(found) > 30
    assert not any(found)


def test_lapack_is_given_no_infinities():
    """On which MKL's own `eigvals` ends the process."""
    oracle = Oracle(Of(torch.linalg.eigvals))
    drawn = [torch.randn(4, 8, 8)]
    oracle.expect(drawn)
    assert not {"infinity", "minus_infinity", "nan"} & {stress.name for stress, _ in oracle.stress(drawn)}


def test_infinities_that_values_decide_are_no_reason_to_leave_hard_inputs_out():
    """A filter of the largest leaves minus infinity elsewhere for each input."""

    def filtered(x):
        return x.masked_fill(x < x.topk(32, -1)[0][:, -1:], -math.inf)

    def by_bits(x):
        bits = x.view(torch.int32)
        return x.masked_fill(bits < bits.topk(32, -1)[0][:, -1:], -math.inf)

    torch.manual_seed(1)
    oracle = Oracle(Of(filtered))
    oracle.expect([torch.rand(64, 512)])
    known = []
    for one in SETS:
        known += oracle.stress([torch.rand(64, 512)], sets=[one])
    binding = [expected for stress, expected in known if stress.binding]
    assert len(binding) > 12
    assert all(oracle.check(expected, filtered(*expected.inputs)).passed for expected in binding)
    assert not all(oracle.check(expected, by_bits(*expected.inputs)).passed for expected in binding)


def test_what_rounding_decides_of_equal_numbers_is_left_out():
    def above(x, mean):
        mask = x > mean(x)
        return mask, mask.sum(-1)

    torch.manual_seed(1)
    drawn = [torch.randn(128, 300)]
    oracle = Oracle(Of(lambda x: above(x, lambda x: x.mean(-1, keepdim=True))))
    assert oracle.check(oracle.expect(drawn), above(*drawn, lambda x: x @ torch.full((300, 1), 1 / 300))).passed
    for _, expected in oracle.stress(drawn, sets=[BY_NAME["constant_rows"]]):
        assert oracle.check(expected, above(*expected.inputs, lambda x: x @ torch.full((300, 1), 1 / 300))).passed
