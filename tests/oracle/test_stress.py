import pytest
import torch

from harness.oracle.stress import BY_NAME, SETS

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
    assert torch.equal(sets["scaled_up"], x * 8)
    assert torch.equal(sets["negated"], -x)
    assert torch.equal(sets["signs"].abs(), x.abs())
    assert (sets["negative"] <= 0).all()
    assert (sets["constant_rows"] == x[:, :1]).all()
    assert ((sets["one_hot"] != 0).sum(1) == 1).all()
    assert (sets["sorted"].diff(dim=1) >= 0).all()
    assert torch.equal(sets["rolled"][1:], x[:-1])
    assert (sets["subnormal"].abs() < torch.finfo(x.dtype).smallest_normal).all()
    assert torch.isinf(sets["minus_infinity"]).sum() == 6
    assert torch.isnan(sets["nan"]).sum() == 6
    assert ((sets["one_row_far_up"] != x).any(1)).sum() == 1
    assert ((sets["one_row_far_below"] < -127).all(1)).sum() == ((sets["one_row_far_below"] != x).any(1)).sum() == 1
    largest, second = sets["dominant_last"].abs().topk(2).values.unbind(1)
    assert (largest > 30 * second).all()
    assert (sets["dominant_last"].abs().argmax(1) == 39).all()


@pytest.mark.parametrize("shape", [(7,), (6, 1), (2, 3, 4, 5)])
def test_one_row_of_all_is_another_each_time(shape):
    x = torch.randn(shape) + 1
    changed = [(BY_NAME["one_row_far_up"].inputs([x], seed)[0] != x).nonzero()[0].tolist() for seed in range(40)]
    assert len({tuple(place[:-1]) for place in changed}) > x.numel() // shape[-1] / 2


def test_only_the_first_input_goes_far_up():
    made = BY_NAME["scaled_far_up"].inputs(INPUTS, 0)
    assert torch.equal(made[0], INPUTS[0] * 128)
    assert torch.equal(made[2], INPUTS[2])
