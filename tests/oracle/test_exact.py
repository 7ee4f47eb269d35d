import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.oracle.exact import ExactReference
from harness.oracle.oracle import Oracle
from tests.oracle.references import GemmTail, Of


def exact(module, inputs, **options):
    reference = ExactReference(module, **options)
    return reference.exact(inputs, 0, reference.native(inputs, 0))


def test_float64_of_a_module_with_weights():
    module, x = nn.Linear(64, 64), torch.randn(32, 64)
    result = exact(module, [x])
    assert (result.where, result.precision) == ("device", "float64")
    expected = F.linear(x.double(), module.weight.double(), module.bias.double())
    assert torch.allclose(result.output, expected, rtol=1e-14)


def test_neither_state_nor_inputs_nor_generator_change():
    module, x = GemmTail(32), torch.randn(16, 32)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    kept, state = x.clone(), torch.get_rng_state()
    exact(module, [x])
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(x, kept)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_reference_that_writes_its_input_and_its_weights():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.calls = nn.Parameter(torch.ones(4)), 0

        def forward(self, x):
            self.calls += 1
            return x.mul_(2).add_(self.weight.mul_(3)) * self.calls

    module, x = Writes(), torch.ones(2, 4)
    reference = ExactReference(module)
    first, second = reference.native([x], 0), reference.native([x], 0)
    assert torch.equal(first, torch.full((2, 4), 5.0))
    assert torch.equal(first, second)
    assert torch.equal(x, torch.ones(2, 4))
    assert torch.equal(module.weight, torch.ones(4))
    assert module.calls == 0
    assert reference.writes_inputs
    assert reference.writes_parameters


@pytest.mark.parametrize(("function", "shares"), [(lambda x: x.view(-1), True), (lambda x: x + 1, False)])
def test_an_output_that_is_an_input_is_known(function, shares):
    reference = ExactReference(Of(function))
    reference.native([torch.randn(4, 4)], 0)
    assert reference.returned == ({("output", 0)} if shares else set())
    assert not reference.writes_inputs


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.dropout(x, 0.5, True),
        lambda x: x + torch.randn_like(x),
        lambda x: x * torch.rand(x.shape[-1]),
        lambda x: x + torch.empty_like(x).normal_(),
    ],
)
def test_random_references_draw_the_same_in_float64(function):
    x = torch.randn(64, 64)
    reference = ExactReference(Of(function))
    native = reference.native([x], 3)
    assert torch.allclose(native.double(), reference.exact([x], 3, native).output, atol=1e-5)
    assert not torch.equal(native, reference.native([x], 4))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x.half().float() @ w,
        lambda x, w: x.to(torch.bfloat16) @ w.bfloat16(),
        lambda x, w: x @ torch.eye(64, dtype=torch.float32) @ w,
        lambda x, w: (torch.zeros(32, 64, dtype=torch.float32) + x) @ w,
        lambda x, w: torch.softmax(x, -1, dtype=torch.float32) @ w,
    ],
)
def test_dtypes_named_in_the_code_do_not_cost_exactness(function):
    x, w = torch.randn(32, 64), torch.randn(64, 16)
    result = exact(Of(function), [x, w])
    assert result.precision == "float64"
    x = torch.softmax(x.double(), -1) if function(x, w).abs().max() < 2 else x.double()
    assert torch.allclose(result.output.double(), x @ w.double(), rtol=1e-12)


def test_code_that_asks_for_its_dtype_is_told_its_own():
    def picky(x):
        assert x.dtype is torch.float16
        return x.softmax(-1)

    result = exact(Of(picky), [torch.randn(4, 8).half()])
    assert result.precision == "float64"
    assert result.output.dtype is torch.float64


@pytest.mark.parametrize(("taken", "precision"), [("float16 float32", "float32"), ("float16", "native")])
def test_code_that_sees_its_numbers_and_refuses_float64_is_run_in_less(taken, precision):
    def picky(x):
        assert str(x.numpy().dtype) in taken.split()
        return x.softmax(-1)

    assert exact(Of(picky), [torch.randn(4, 8).half()]).precision == precision


def test_on_the_host_the_limit_is_the_memory_that_is_left(monkeypatch):
    monkeypatch.setattr("harness.oracle.exact.available_memory_bytes", lambda: 16_000)
    assert exact(Of(lambda x: x.softmax(-1)), [torch.randn(16, 64)]).where == "chunked"


@pytest.mark.parametrize("others", [1, 2])
def test_the_batch_is_cut_where_memory_is_short(others):
    module = Of(lambda x, *w: x.softmax(-1) @ sum(w))
    inputs = [torch.randn(16, 64), *(torch.randn(64, 16) for _ in range(others))]
    whole, cut = exact(module, inputs), exact(module, inputs, memory_limit=16_000)
    assert cut.where == "chunked"
    assert torch.allclose(whole.output, cut.output, rtol=1e-14)


def test_a_square_weight_is_not_taken_for_the_batch():
    a, b = torch.randn(32, 32), torch.randn(32, 32)
    cut = exact(Of(torch.matmul), [a, b], memory_limit=8_000)
    assert cut.where == "chunked"
    assert torch.allclose(cut.output, a.double() @ b.double(), rtol=1e-12)


@pytest.mark.parametrize(
    "module", [GemmTail(32), Of(lambda x: x.softmax(0)), Of(lambda x: x - x.mean()), Of(torch.sum)]
)
def test_dependent_batch_entries_are_not_cut_apart(module):
    x = torch.randn(64, 32)
    whole, host = exact(module, [x]), exact(module, [x], memory_limit=1_000)
    assert host.where == "host"
    assert torch.equal(whole.output, host.output)


def test_a_dependence_that_only_float64_shows_is_not_cut_apart():
    module, x = Of(lambda x: x + 1e-9 * x.mean()), torch.rand(64, 32)
    assert exact(module, [x], memory_limit=20_000).where == "host"


# What is kept of earlier outputs drops imaginary parts.
@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (torch.tanh, (64, 96)),
        # All of it one long row.
        (torch.tanh, (4096,)),
        (torch.tanh, (512, 3)),
        (lambda x: torch.fft.fft(x), (64, 96)),
        (lambda x: (x.half(), x.sum(-1)), (64, 5, 96)),
    ],
)
def test_what_to_expect_is_the_same_from_slices(function, shape, monkeypatch):
    x, oracle = torch.randn(shape), Oracle(Of(function))
    whole = oracle.expect([x])
    monkeypatch.setattr("harness.oracle.exact.AT_ONCE", {"cpu": 4000})
    cut = oracle.expect([x])
    assert (whole.where, cut.where) == ("device", "chunked")
    for path, yard in whole.yards.items():
        assert torch.allclose(cut.exact[path], whole.exact[path], rtol=1e-13)
        assert cut.exact[path].dtype == whole.exact[path].dtype
        # Another length of a slice may be another kernel, which rounds otherwise.
        for name in ("own", "floor", "base", "drift"):
            assert getattr(cut.yards[path], name) == pytest.approx(getattr(yard, name), rel=0.05)
        assert cut.yards[path].limits.norm == pytest.approx(yard.limits.norm, rel=0.05)
        assert (cut.yards[path].signature is None) == (yard.signature is None)


def test_memory_that_runs_out_in_a_run_of_the_yardstick_s_is_no_run_that_cannot_be(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ExactReference, "lowered", full)
    with pytest.raises(torch.OutOfMemoryError):
        Oracle(Of(torch.tanh)).expect([torch.randn(64, 64)])


def test_a_fused_attention_is_noticed():
    q = torch.randn(1, 1, 8, 8)
    assert exact(Of(F.scaled_dot_product_attention), [q, q, q]).attention
    assert not exact(Of(torch.softmax), [q, -1]).attention


def test_float32_whatever_the_code_asks_for():
    x, w = torch.randn(16, 64), torch.randn(64, 16)
    reference = ExactReference(Of(lambda x, w: (x.half() @ w.half()).float()))
    assert torch.allclose(reference.strict([x, w], 0), x @ w, atol=1e-4)


class Uncounted(nn.Module):
    """Writes what it is given in ways that tensors do not count."""

    def __init__(self, write):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
        self.register_buffer("steps", torch.zeros(()))
        self.write = write

    def forward(self, x):
        self.write(self.steps, 1.0)
        self.write(x, 1.0)
        self.write(self.weight, 1.0)
        return x * self.weight + self.steps


def through_data(tensor, value):
    tensor.data.add_(value)


def through_numpy(tensor, value):
    tensor.detach().numpy()[...] += value


def through_memory(tensor, value):
    torch.from_dlpack(tensor.detach()).add_(value)


def through_a_new_tensor(tensor, value):
    tensor.data = tensor + value


@pytest.mark.parametrize("write", [through_data, through_numpy, through_memory, through_a_new_tensor])
def test_what_is_written_uncounted_is_put_back(write):
    module, x = Uncounted(write), torch.randn(4, 8)
    given, right = x.clone(), (x + 1) * 2 + 1
    oracle = Oracle(module)
    for _ in range(2):
        expected = oracle.expect([x])
        assert torch.equal(x, given)
        assert torch.equal(expected.native, right)
        assert torch.equal(oracle.reference.native([x], 0), right)
    assert torch.equal(module.weight, torch.ones(8))
