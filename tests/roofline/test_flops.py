from types import SimpleNamespace

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from harness.roofline import flops
from harness.roofline.flops import dtype_class
from tests.roofline.calls import Call, randn, watched


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


def test_attention_inside_a_layer(of):
    model = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).eval()
    tokens = 2 * 4
    assert of(model, randn(2, 4, 16)).flops == {
        "float32": 2 * tokens * (4 * 16 * 16 + 2 * 16 * 32) + 2 * 2 * 2 * 4 * 4 * 16
    }


@pytest.mark.filterwarnings("ignore:LSTM with projections")
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
    found = watched(Call(lambda data, sizes: gru(nn.utils.rnn.PackedSequence(data, sizes))[0].data), *packed[:2])
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
    monkeypatch.setattr(flops, "_has_tf32", lambda device: True)
    assert dtype_class(operand) == "float32"
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        assert dtype_class(operand) == "tf32"
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    # cuDNN's default.
    assert dtype_class(operand, convolves=True) == "tf32"
    monkeypatch.setattr(flops, "_has_tf32", lambda device: False)
    assert dtype_class(operand, convolves=True) == "float32"
    assert dtype_class(SimpleNamespace(dtype=torch.float8_e4m3fn, device=torch.device("cuda"))) == "float8"
