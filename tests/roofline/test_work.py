import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from harness.roofline import work
from harness.roofline.light import Work
from harness.roofline.work import Observer, uncached
from tests.roofline.calls import Call, randn, watched


def test_linear(of):
    assert of(nn.Linear(16, 32), randn(8, 16)) == Work({"float32": 2 * 8 * 16 * 32}, 4 * (8 * 16 + 8 * 32), 4 * 17 * 32)


def test_mlp(of):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Linear(32, 4))
    found = of(model, randn(8, 16))
    assert found.flops == {"float32": 2 * 8 * (16 * 32 + 32 * 4)}
    assert found.streamed_bytes == 4 * 8 * (16 + 4)


X = (8, 32)
BYTES = 4 * 8 * 32


@pytest.mark.parametrize(
    "function, streamed, resident",
    [
        (lambda x: x + 1, 2 * BYTES, 0),
        (lambda x: x.relu_(), 2 * BYTES, 0),
        (lambda x: x, 0, 0),
        (lambda x: x.view(32, 8), 0, 0),
        (lambda x: torch.zeros_like(x) + 1, 0, BYTES),
        (lambda x: x.sum(), BYTES + 4, 0),
        # A part read, by views.
        (lambda x: x[:, :10] * 2, 2 * 4 * 8 * 10, 0),
        (lambda x: x.relu()[:, :10], 4 * 8 * 10, BYTES),
        (lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], BYTES + BYTES // 2, 0),
        (lambda x: torch.cat([x[..., ::2] * 2, x[..., 1::2]], -1), 2 * BYTES, 0),
        (lambda x: torch.stack([x[:, i] * 2 for i in range(32)], 1), 2 * BYTES, 0),
        (lambda x: x[0:5].sum() + x[3:8].sum(), 4 * 5 * 32 + 4, 0),
        # Outputs by what they hold.
        (lambda x: (x[:, :1] * 2).expand(8, 32), 2 * 4 * 8, 0),
        (lambda x: {"a": [x + 1], "b": (x + 2,)}, 3 * BYTES, 0),
        # What nothing depends on, and what a mask may hide.
        (lambda x: ((x @ x.T), x + 1)[1], 2 * BYTES, 0),
        (lambda x: torch.tril(x[:, :8]), 4 * 36 + 4 * 64, 0),
        (lambda x: x.copy_(torch.ones(8, 32)) + 1, BYTES, BYTES),
    ],
)
def test_bytes(of, function, streamed, resident):
    found = of(Call(function), randn(*X))
    assert found.streamed_bytes == streamed
    assert found.resident_bytes == pytest.approx(resident)


def test_an_expanded_input_is_as_large_as_its_storage(of):
    assert of(Call(lambda x: x * 2), randn(8, 1).expand(8, 100)).streamed_bytes == 4 * (8 + 800)


def test_weights_alone_may_be_multiplied_once(of):
    found = of(Call(lambda x, a, b: x @ (a @ b), a=randn(8, 8), b=randn(8, 8)), randn(4, 8))
    assert found.flops == {"float32": 2 * 4 * 8 * 8}


def test_a_last_row_left_out_is_nearly_nothing(of):
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.MaxPool2d(2))
    assert of(model, randn(1, 3, 101, 101)).streamed_bytes == 4 * (3 * 101**2 + 8 * 50**2)
    # Of 3 x 3 a pool needs 2 x 2, and what was before it may be spared the rest.
    assert of(model, randn(1, 3, 3, 3)).streamed_bytes == 4 * 8


@pytest.mark.parametrize(
    "function, note",
    [
        (lambda x: torch.fft.fft(x).abs(), "_fft_r2c: FLOPs"),
        (lambda x: torch.sparse.mm(x.to_sparse(), x.T), "layout"),
    ],
)
def test_odd_modules_get_a_note(function, note):
    estimate = watched(Call(function), randn(*X))
    assert any(note in text for text in estimate.notes)


def test_an_observer_does_not_change_the_call():
    model, x = nn.Sequential(nn.Linear(16, 16), nn.Softmax(-1)), randn(4, 16)
    with torch.no_grad():
        plain = model(x)
        with Observer([x]) as seen:
            watched = model(x)
    assert torch.equal(plain, watched)
    assert seen.estimate(watched).work.flops == {"float32": 2 * 4 * 16 * 16}


def test_an_observer_passes_errors_of_the_call_on():
    with pytest.raises(ValueError, match="mine"), Observer([]):
        raise ValueError("mine")


def test_endless_loops_are_cut(monkeypatch):
    monkeypatch.setattr(work, "MAX_OPERATIONS", 10)
    estimate = watched(Call(lambda x: sum((x * i for i in range(20)), x)), randn(*X))
    assert any("first 10 operations" in note for note in estimate.notes)


def test_caches_save_at_both_ends():
    one = Work({"float32": 1.0}, 100.0, 7.0)
    assert uncached(one, 10.0, 4) == Work({"float32": 1.0}, 95.0, 7.0)
    assert uncached(one, 1000.0, 4).streamed_bytes == 0.0
