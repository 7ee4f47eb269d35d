from types import SimpleNamespace

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from harness.timing import work
from harness.timing.light import Work
from harness.timing.work import Cover, Observer, disjoint, dtype_class, uncached, view_of


class Call(nn.Module):
    """A forward as a function of inputs and named parameters."""

    def __init__(self, function, **parameters):
        super().__init__()
        self.function = function
        for name, value in parameters.items():
            setattr(self, name, nn.Parameter(value))

    def forward(self, *inputs):
        return self.function(*inputs, **dict(self.named_parameters()))


@pytest.fixture(params=[True, False], ids=["fake", "real"])
def of(request):
    def measure(model, *inputs):
        estimate = work.of(model, inputs, fake=request.param)
        assert estimate.notes == ()
        return estimate.work

    return measure


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def test_linear(of):
    assert of(nn.Linear(16, 32), randn(8, 16)) == Work({"float32": 2 * 8 * 16 * 32}, 4 * (8 * 16 + 8 * 32), 4 * 17 * 32)


def test_mlp(of):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Linear(32, 4))
    found = of(model, randn(8, 16))
    assert found.flops == {"float32": 2 * 8 * (16 * 32 + 32 * 4)}
    assert found.streamed_bytes == 4 * 8 * (16 + 4)


@pytest.mark.parametrize(
    "function, shapes, flops",
    [
        (torch.matmul, [(3, 4), (4, 5)], 2 * 3 * 4 * 5),
        (torch.matmul, [(2, 3, 4), (4, 5)], 2 * 2 * 3 * 4 * 5),
        (torch.bmm, [(2, 3, 4), (2, 4, 5)], 2 * 2 * 3 * 4 * 5),
        (torch.addmm, [(3, 5), (3, 4), (4, 5)], 2 * 3 * 4 * 5),
        (torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)], 2 * 2 * 3 * 4 * 5),
        (torch.addbmm, [(3, 5), (2, 3, 4), (2, 4, 5)], 2 * 2 * 3 * 4 * 5),
        (torch.mv, [(3, 4), (4,)], 2 * 3 * 4),
        (torch.addmv, [(3,), (3, 4), (4,)], 2 * 3 * 4),
        (torch.dot, [(7,), (7,)], 2 * 7),
        (lambda a, b: torch.einsum("bij,bkj->bik", a, b), [(2, 3, 4), (2, 5, 4)], 2 * 2 * 3 * 4 * 5),
        (lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), [(2, 3, 4, 5), (2, 3, 6, 5)], 2 * 2 * 3 * 4 * 6 * 5),
        (lambda a, b: torch.tensordot(a, b, 1), [(3, 4), (4, 5)], 2 * 3 * 4 * 5),
    ],
)
def test_products(of, function, shapes, flops):
    inputs = [randn(*shape) for shape in shapes]
    found = of(Call(function), *inputs)
    assert found.flops == {"float32": flops}
    outputs = function(*inputs)
    assert found.streamed_bytes == 4 * (sum(tensor.numel() for tensor in inputs) + outputs.numel())


@pytest.mark.parametrize(
    "model, shape, flops",
    [
        (nn.Conv2d(3, 8, 3), (2, 3, 16, 16), 2 * 2 * 8 * 3 * 9 * 14 * 14),
        # 46 = 16 * 3 taps less the two on padding.
        (nn.Conv2d(3, 8, 3, padding=1), (2, 3, 16, 16), 2 * 2 * 8 * 3 * 46 * 46),
        (nn.Conv1d(4, 8, 3, groups=2), (2, 4, 16), 2 * 2 * 8 * 2 * 3 * 14),
        (nn.Conv3d(4, 8, 3), (2, 4, 6, 6, 6), 2 * 2 * 8 * 4 * 27 * 64),
        (nn.Conv2d(3, 8, 3, dilation=2), (2, 3, 16, 16), 2 * 2 * 8 * 3 * 9 * 12 * 12),
        (nn.ConvTranspose2d(3, 8, 2, stride=2), (2, 3, 16, 16), 2 * 2 * 3 * 8 * 4 * 16 * 16),
        (nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1), (2, 3, 16, 16), 2 * 2 * 3 * 8 * 46 * 46),
    ],
)
def test_convolutions(of, model, shape, flops):
    assert of(model, randn(*shape)).flops == {"float32": flops}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_attention(of, dtype):
    q, k, v = randn(2, 4, 8, 16, dtype=dtype), randn(2, 4, 12, 16, dtype=dtype), randn(2, 4, 12, 16, dtype=dtype)
    found = of(Call(F.scaled_dot_product_attention), q, k, v)
    assert found.flops == {str(dtype)[6:]: 2 * 2 * 4 * 8 * 12 * (16 + 16)}
    assert found.streamed_bytes == q.element_size() * 2 * 4 * 16 * (8 + 12 + 12 + 8)


def test_causal_attention_needs_half(of):
    q = [randn(2, 4, 8, 16) for _ in range(3)]
    found = of(Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), *q)
    assert found.flops == {"float32": 2 * 2 * 4 * (8 * 9 // 2) * 32}
    assert found.streamed_bytes == 4 * 4 * q[0].numel()


def test_attention_composed_for_half_precision_is_not_float32(of):
    attend = Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    q, k, v = randn(1, 4, 8, 16).half(), randn(1, 2, 8, 16).half(), randn(1, 2, 8, 16).half()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert of(attend, q, k, v).flops == {"float16": 2 * 4 * 8 * 8 * 32}


def test_a_mask_may_hide_keys(of):
    q = [randn(2, 4, 8, 16) for _ in range(3)]
    found = of(Call(F.scaled_dot_product_attention), *q, torch.ones(8, 8, dtype=torch.bool))
    assert found.streamed_bytes == 2 * q[0].nbytes + 64
    assert found.resident_bytes == 2 * q[0].nbytes


def test_attention_inside_a_layer(of):
    model = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).eval()
    tokens = 2 * 4
    assert of(model, randn(2, 4, 16)).flops == {
        "float32": 2 * tokens * (4 * 16 * 16 + 2 * 16 * 32) + 2 * 2 * 2 * 4 * 4 * 16
    }


def test_recurrent_layers(of):
    assert of(nn.LSTM(16, 8, 2), randn(5, 3, 16)).flops == {"float32": 2 * 15 * 32 * (16 + 8 + 8 + 8)}
    assert of(nn.GRU(16, 8, bidirectional=True), randn(5, 3, 16)).flops == {"float32": 2 * 2 * 15 * 24 * (16 + 8)}
    assert of(nn.RNN(16, 8, batch_first=True), randn(5, 3, 16), randn(1, 5, 8)).flops == {
        "float32": 2 * 15 * 8 * (16 + 8)
    }
    assert of(nn.LSTM(16, 8, proj_size=4), randn(5, 3, 16)).flops == {"float32": 2 * 15 * (32 * (16 + 4) + 4 * 8)}
    # The last step takes all before it.
    last = nn.LSTM(16, 8)
    assert of(Call(lambda x: last(x)[0][-1]), randn(5, 3, 16)).flops == {"float32": 2 * 15 * 32 * (16 + 8)}


def test_packed_sequences_count_the_steps_that_are_there():
    packed = nn.utils.rnn.pack_padded_sequence(randn(5, 3, 16), [5, 4, 2])
    gru = nn.GRU(16, 8)
    found = work.of(Call(lambda data, sizes: gru(nn.utils.rnn.PackedSequence(data, sizes))[0].data), packed[:2])
    assert found.work.flops == {"float32": 2 * 11 * 24 * (16 + 8)}


def test_inference_mode_inside(of):
    def inner(x, w):
        with torch.inference_mode():
            return F.scaled_dot_product_attention(x, x, x) @ w

    found = of(Call(inner, w=randn(16, 4)), randn(2, 8, 16))
    assert found.flops == {"float32": 2 * 2 * 8 * 8 * 32 + 2 * 2 * 8 * 16 * 4}


def test_classes(of):
    assert of(Call(torch.matmul), randn(4, 4).double(), randn(4, 4).double()).flops == {"float64": 128}
    complex_ = torch.randn(4, 4, dtype=torch.complex64)
    assert of(Call(torch.matmul), complex_, complex_.clone()).flops == {"float32": 3 * 128}
    integers = torch.ones(32, 32, dtype=torch.int8)
    assert of(Call(torch._int_mm), integers, integers.clone()).flops == {"int8": 2 * 32**3}


def test_tf32_is_told_by_the_switches(monkeypatch):
    operand = SimpleNamespace(dtype=torch.float32, device=torch.device("cuda"))
    monkeypatch.setattr(work, "_has_tf32", lambda device: True)
    assert dtype_class(operand) == "float32"
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        assert dtype_class(operand) == "tf32"
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    # cuDNN's default.
    assert dtype_class(operand, convolves=True) == "tf32"
    monkeypatch.setattr(work, "_has_tf32", lambda device: False)
    assert dtype_class(operand, convolves=True) == "float32"
    assert dtype_class(SimpleNamespace(dtype=torch.float8_e4m3fn, device=torch.device("cuda"))) == "float8"


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


def test_masks_by_several_names(of):
    x, mask = randn(*X), torch.ones(*X, dtype=torch.bool)
    for function in (
        lambda x, mask: torch.where(mask, x, 0.0),
        lambda x, mask: x.masked_fill(mask, 0.0),
        lambda x, mask: x * mask,
    ):
        assert of(Call(function), x, mask) == Work({}, mask.nbytes + BYTES, pytest.approx(BYTES, abs=8))


def test_an_expanded_input_is_as_large_as_its_storage(of):
    assert of(Call(lambda x: x * 2), randn(8, 1).expand(8, 100)).streamed_bytes == 4 * (8 + 800)


def test_a_table_counts_what_is_gathered(of):
    indices = torch.tensor([[1, 2, 2], [5, 1, 7]])
    found = of(nn.Embedding(1000, 16), indices)
    assert found.streamed_bytes == indices.nbytes + 4 * 6 * 16
    assert found.resident_bytes == 4 * 6 * 16
    table = randn(1000, 16)
    for function in (lambda table, i: table[i], lambda table, i: torch.index_select(table, 0, i)):
        found = of(Call(function), table, indices[0])
        # Of an input two distinct rows are read for certain, and a third may be.
        assert found.streamed_bytes == 24 + 4 * (2 + 3) * 16
        assert found.resident_bytes == 4 * 16
    found = of(Call(lambda x, i: torch.gather(x, 1, i)), table, torch.zeros(1000, 1, dtype=torch.int64))
    assert found.streamed_bytes == 1000 * (8 + 4 + 4)


def test_computed_indices_are_known_only_in_a_real_call():
    model, indices = nn.Embedding(1000, 16), torch.tensor([1, 1, 2])
    shifted = Call(lambda i, w: F.embedding(i + 1, w), w=model.weight.detach())
    real, fake = (work.of(shifted, [indices], fake=fake) for fake in (False, True))
    assert real.notes == ()
    assert fake.notes
    assert real.work == fake.work


def test_strides_leave_gaps(of):
    assert of(nn.Conv2d(4, 8, 1, stride=2, bias=False), randn(2, 4, 16, 16)).streamed_bytes == 4 * 2 * 64 * (4 + 8)
    assert of(nn.MaxPool2d(2), randn(1, 1, 7, 7)).streamed_bytes == 4 * (36 + 9)
    assert of(nn.AvgPool2d(3, stride=1, padding=1), randn(1, 1, 7, 7)).streamed_bytes == 4 * (49 + 49)


def test_weights_alone_may_be_multiplied_once(of):
    found = of(Call(lambda x, a, b: x @ (a @ b), a=randn(8, 8), b=randn(8, 8)), randn(4, 8))
    assert found.flops == {"float32": 2 * 4 * 8 * 8}


def test_a_last_row_left_out_is_nearly_nothing(of):
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.MaxPool2d(2))
    assert of(model, randn(1, 3, 101, 101)).streamed_bytes == 4 * (3 * 101**2 + 8 * 50**2)
    # Of 3 x 3 a pool needs 2 x 2, and what was before it may be spared the rest.
    assert of(model, randn(1, 3, 3, 3)).streamed_bytes == 4 * 8


def test_fakes_that_take_too_long_become_real(monkeypatch):
    monkeypatch.setattr(work, "PATIENCE_S", -1.0)
    estimate = work.of(nn.Linear(4, 4), [randn(2, 4)])
    assert estimate.work.flops == {"float32": 64}
    assert "too long" in estimate.notes[0]


def test_triangles_count_by_their_share(of):
    found = of(Call(lambda a, b: torch.tril(a @ b)), randn(4, 4), randn(4, 4))
    assert found.flops == {"float32": pytest.approx(128 * 10 / 16)}
    assert found.streamed_bytes == 64


@pytest.mark.parametrize(
    "function, note",
    [
        (lambda x: x * 2 if x.sum().item() > 0 else x + 1, "needs a real call"),
        (lambda x: x[x > 0] * 2, "needs a real call"),
        (lambda x: torch.fft.fft(x).abs(), "_fft_r2c: FLOPs"),
        (lambda x: torch.sparse.mm(x.to_sparse(), x.T), "layout"),
        (lambda x: 1 / 0, "nothing is known: ZeroDivisionError"),
    ],
)
def test_odd_modules_get_a_note(function, note):
    estimate = work.of(Call(function), [randn(*X)])
    assert any(note in text for text in estimate.notes)


def test_a_fake_run_leaves_the_model_alone():
    class Keeps(nn.BatchNorm1d):
        def forward(self, x):
            self.kept = x * 2
            return super().forward(self.kept)

    model, x = Keeps(4), randn(8, 4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert work.of(model, [x]).notes == ()
    assert not hasattr(model, "kept")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


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
    estimate = work.of(Call(lambda x: sum((x * i for i in range(20)), x)), [randn(*X)])
    assert any("first 10 operations" in note for note in estimate.notes)


def test_views_that_cannot_meet():
    base = torch.empty(8, 32)
    left, right = view_of(base[:, :16]), view_of(base[:, 16:])
    assert disjoint(left, right)
    assert disjoint(view_of(base[:3]), view_of(base[3:]))
    assert not disjoint(view_of(base[:, :17]), right)
    assert not disjoint(view_of(base.T), left)
    cover = Cover()
    for view in (left, view_of(base[:, 8:24]), right, right):
        cover.add(view)
    assert cover.nbytes == base.nbytes
    cover = Cover()
    for view in (view_of(base[:2]), view_of(base)):
        cover.add(view)
    assert cover.nbytes == base.nbytes


def test_caches_save_at_both_ends():
    one = Work({"float32": 1.0}, 100.0, 7.0)
    assert uncached(one, 10.0, 4) == Work({"float32": 1.0}, 95.0, 7.0)
    assert uncached(one, 1000.0, 4).streamed_bytes == 0.0
