"""Whose kernels candidates run, from the profiler in their sandboxed process to the record."""

from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from torch._C._autograd import DeviceType

from harness import session
from harness.catalog.facts import CandidateFacts
from harness.catalog.solutions import Candidate
from harness.config import Config, Limits, ProvenanceConfig
from harness.errors import UsageError
from harness.integrity.provenance import Launched, Profile
from harness.reading.reading import ReaderLost
from harness.records import Outcome, Status
from harness.reports import text
from harness.rewards.rewards import reward
from harness.runner import profiling
from harness.runner.profiling import Profiler
from harness.supervise import provenance
from harness.supervise.builds import BuildResult
from harness.wire.messages import Ending
from tests.conftest import QUICK

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.relu(a @ b)

def get_inputs():
    return [torch.randn(160, 160), torch.randn(160, 160)]

def get_init_inputs():
    return []
"""
MODULE = """
import os
import torch

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        {statement}
        return {expression}
"""
BY_TORCH = MODULE.format(statement="pass", expression="torch.mm(a, b).relu_()")
IN_COMMENTS = '''"""Does without torch.matmul and torch.mm."""
import numpy
import torch

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        # torch.matmul(a, b) and torch.relu would be a fallback; cublas is not called either.
        note = "torch.matmul(a, b)"
        return torch.from_numpy(numpy.maximum(a.numpy() @ b.numpy(), 0))
'''
CPP = '''"""Loops in C++."""
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="loops",
    functions=["product"],
    cpp_sources="""
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
    // No torch::matmul here, and no at::mm.
    const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
    torch::Tensor c = torch::zeros({m, n}, a.options());
    const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
    float* z = c.data_ptr<float>();
    for (int64_t i = 0; i < m; ++i)
        for (int64_t l = 0; l < k; ++l)
            for (int64_t j = 0; j < n; ++j) z[i * n + j] += x[i * k + l] * y[l * n + j];
    for (int64_t i = 0; i < m * n; ++i) z[i] = z[i] > 0 ? z[i] : 0;
    return c;
}
""",
)

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return ext.product(a, b)
'''
PROFILED = "torch._C._autograd._profiler_enabled()"
EVERYTHING = ("torch_fallback", "cublas", "third_party")


@pytest.fixture
def run(tmp_path):
    """Records of candidates by name, given by their sources, under rules on provenance."""

    def carry_out(candidates, device="cpu", problem=PROBLEM, **rules):
        for name, source in {"../problem": problem, **candidates}.items():
            path = tmp_path / ("problems/toy/one.py" if name == "../problem" else f"solutions/toy/one/{name}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        config = Config(
            problems=[str(tmp_path / "problems")],
            solutions=[str(tmp_path / "solutions")],
            device=device,
            timing=QUICK,
            limits=Limits(call_s=10.0, first_call_s=60.0, load_s=60.0),
            provenance=ProvenanceConfig(**rules),
        )
        with open(tmp_path / "console", "w") as file:
            records = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
        return {record.candidate: record for record in records}

    return carry_out


def warned(record, word):
    return next((line for line in record.warnings if line.startswith(f"{word}: ")), "")


@pytest.fixture
def sorted_profile(tmp_path):
    """A made-up profile of a card, sorted by what the candidate's library and its file hold."""
    library = tmp_path / "ext.so"
    library.write_bytes(b"\x7fELF\0_Z5builtPf\0")
    launched = [Launched(name=name, op="", calls=1, device_us=10.0) for name in ("built(float*)", "written", "other")]
    ending = Ending(outcome=Outcome(status=Status.PASSED), profile=Profile(launched=launched))
    facts = CandidateFacts(kernels=["written"])
    candidate = Candidate(problem="a/b", name="c", path=tmp_path, digest="", facts=facts)
    build = BuildResult(libraries={"digest": str(library)})
    return lambda: provenance.told(ending, candidate, build, ProvenanceConfig(), "cuda")


def test_a_library_is_searched_in_a_process_of_its_own(sorted_profile):
    found = sorted_profile().provenance
    assert {use.name: use.kind for use in found.kernels} == {
        "built(float*)": "own",
        "written": "own",
        "other": "third_party",
    }


def test_a_library_that_cannot_be_searched_leaves_a_warning(sorted_profile, monkeypatch):
    def lost(*_):
        raise ReaderLost("parser_timeout", "it took too long")

    monkeypatch.setattr(provenance.Reader, "own_kernels", lost)
    found = sorted_profile()
    assert (found.provenance, found.refusal) == (None, None)
    (warning,) = found.warnings
    assert warning == "fails_when_profiled: its extensions could not be searched for its kernels: it took too long"


def test_operators_of_pytorch_are_listed_with_their_share(run):
    record = run({"by_torch": BY_TORCH})["by_torch"]
    assert record.status is Status.PASSED
    found = {use.name: use.kind for use in record.provenance.kernels}
    assert found["aten::mm"] == "torch"
    assert record.own_share == record.provenance.shares.get("own", 0.0) < 0.9
    assert sum(record.provenance.shares.values()) == pytest.approx(1, abs=1e-3)
    assert text.provenance(record).startswith("outside PyTorch's operators ")
    assert record.phases_s["profile"] < 5.0


def test_a_fallback_is_rejected_and_words_in_comments_are_not(run):
    records = run({"by_torch": BY_TORCH, "in_comments": IN_COMMENTS}, forbid=list(EVERYTHING))
    rejected = records["by_torch"]
    assert (rejected.status, rejected.reason) == (Status.REJECTED, "forbidden:torch_fallback")
    assert "aten::mm" in rejected.message
    assert rejected.speedup is None
    assert rejected.provenance.shares["torch"] > 0
    honest = records["in_comments"]
    assert honest.status is Status.PASSED
    assert not any("torch.m" in line for line in [*honest.warnings, *honest.notes])


@pytest.mark.slow
def test_honest_native_code_keeps_every_rule(run):
    record = run({"cpp": CPP}, forbid=list(EVERYTHING), min_own_share=0.5)["cpp"]
    assert record.status is Status.PASSED, record.message
    assert record.own_share > 0.9
    assert {use.kind for use in record.provenance.kernels} <= {"own", "memory"}


def test_a_share_that_is_too_small_is_rejected(run):
    record = run({"by_torch": BY_TORCH}, min_own_share=0.97)["by_torch"]
    assert (record.status, record.reason) == (Status.REJECTED, "own_share")
    assert "aten::mm" in record.message


def test_one_that_dies_under_the_profiler_where_the_baseline_does_not_is_told_so(run):
    dies = MODULE.format(statement=f"{PROFILED} and os._exit(3)", expression="torch.mm(a, b).relu_()")
    record = run({"dies": dies})["dies"]
    assert record.status is Status.PASSED
    assert record.own_share is None
    assert "the profiled call failed" in warned(record, "fails_when_profiled")
    assert reward(record, own_kernels=True) == 0.0


@pytest.mark.parametrize("rules", [{}, {"min_own_share": 0.5}])
def test_so_is_one_that_lists_nothing(rules, run):
    empty = MODULE.format(
        statement="sys.modules['harness.runner.profiling'].Profiler.stop = lambda self: Profile()",
        expression="torch.mm(a, b).relu_()",
    )
    record = run({"empty": f"import sys\nfrom harness.integrity.provenance import Profile\n{empty}"}, **rules)["empty"]
    assert record.status is (Status.REJECTED if rules else Status.PASSED)
    assert "lists no time" in (record.message or warned(record, "fails_when_profiled"))
    assert reward(record, own_kernels=True) == 0.0


def test_and_is_refused_where_rules_ask_for_a_profile(run):
    raises = MODULE.format(statement=f"assert not {PROFILED}", expression="torch.mm(a, b).relu_()")
    record = run({"raises": raises}, forbid=["cublas"])["raises"]
    assert (record.status, record.reason) == (Status.REJECTED, "fails_when_profiled")
    assert record.speedup is None


def test_the_profiled_call_is_checked_too(run):
    wrong = MODULE.format(statement="pass", expression=f"torch.mm(a, b).relu_() * (0 if {PROFILED} else 1)")
    assert run({"wrong": wrong})["wrong"].status is Status.INCORRECT


def test_nothing_is_profiled_where_nobody_wants_it(run):
    record = run({"by_torch": BY_TORCH}, profile=False)["by_torch"]
    assert (record.status, record.provenance) == (Status.PASSED, None)
    assert warned(record, "not_profiled") == ""


def test_findings_of_the_source_screen_are_on_the_record(run):
    source = BY_TORCH.replace("import torch\n", "import ctypes\nimport torch\n", 1)
    record = run({"reaches": source}, profile=False)["reaches"]
    assert record.status is Status.PASSED
    assert warned(record, "screen") == "screen: line 3: imports ctypes: reads and writes any memory of its process"
    assert "line 9: forward calls torch.mm" in record.notes


def test_rules_without_a_profile_are_a_wrong_config(tmp_path):
    from harness.config import load

    path = tmp_path / "config.yaml"
    path.write_text("provenance: {profile: false, forbid: [cublas]}")
    with pytest.raises(UsageError, match="need profile: true"):
        load(path)
    path.write_text("provenance: {forbid: [cudnn]}")
    with pytest.raises(UsageError, match=r"provenance\.forbid"):
        load(path)


def test_operators_around_the_call_are_not_the_candidates():
    profiler = Profiler(torch.device("cpu"))
    with torch.no_grad():
        profiler.forward(torch.relu, (torch.ones(8),))
        torch.ones(8).exp()
    profile = profiler.stop()
    assert profile.fault == ""
    assert profile.wall_us > 0
    names = {one.op for one in profile.launched}
    assert "aten::relu" in names
    assert "aten::exp" not in names


def made_up_event(name, start, *, card=True, id=0, linked=0):
    """What the profiler says of one thing that ran, from a microsecond on, for one microsecond."""
    return SimpleNamespace(
        name=lambda: name,
        start_ns=lambda: start * 1000,
        end_ns=lambda: start * 1000 + (90_000 if name == profiling.FORWARD else 1000),
        duration_ns=lambda: 1000,
        device_type=lambda: DeviceType.CUDA if card else DeviceType.CPU,
        is_user_annotation=lambda: False,
        correlation_id=lambda: id,
        linked_correlation_id=lambda: linked,
    )


def test_on_a_card_the_copy_that_tells_the_end_is_nobodys_kernel():
    host = [made_up_event(profiling.FORWARD, 0, card=False), made_up_event("aten::mm", 10, card=False, id=7)]
    own = [made_up_event("gemm", 100, linked=7), made_up_event(profiling.MARK, 110), made_up_event("mine", 120)]
    everything = [*host, *own, made_up_event(profiling.MARK, 130)]
    seen, wall_us = profiling._on_device(everything)
    # A copy of the candidate's own stays.
    assert seen == [("gemm", "aten::mm", 1.0), (profiling.MARK, "", 1.0), ("mine", "", 1.0)]
    assert wall_us == 90


# On a card. Without a compiler, so that it takes seconds.

GPU_PROBLEM = PROBLEM.replace("160", "1024")
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def own_relu(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n)
    tl.store(y + offsets, tl.maximum(values, 0.0), mask=offsets < n)

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.mm(a, b)
        y = torch.empty_like(c)
        own_relu[(triton.cdiv(c.numel(), 1024),)](c, y, c.numel(), BLOCK=1024)
        return y
"""
CUDA = '''
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="own_product",
    functions=["product"],
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
namespace mine {
template <int N> __global__ void own_product(const float* a, const float* b, float* c) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += a[row * N + k] * b[k * N + column];
    c[row * N + column] = sum > 0 ? sum : 0;
}
}
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
    torch::Tensor c = torch::empty_like(a);
    mine::own_product<1024><<<dim3(64, 64), dim3(16, 16)>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>());
    return c;
}
""",
)

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return ext.product(a, b)
'''


@pytest.mark.gpu
def test_kernels_in_a_sandboxed_runner(run):
    records = run({"by_torch": BY_TORCH, "by_triton": TRITON}, "cuda:0", GPU_PROBLEM)
    for record in records.values():
        print(record.candidate, record.status, record.message, record.own_share, record.phases_s, record.warnings)
        print(*(record.provenance.kernels if record.provenance else ["no profile"]), sep="\n")
    by_torch = records["by_torch"]
    assert by_torch.status is Status.PASSED
    assert (by_torch.own_share, warned(by_torch, "doubtful_profile")) == (0.0, "")
    kinds = {use.op: use.kind for use in by_torch.provenance.kernels}
    assert kinds == {"aten::mm": "cublas", "aten::clamp_min_": "torch"}
    by_triton = records["by_triton"]
    if by_triton.reason == "missing_module:triton":
        pytest.skip("no Triton here")
    assert by_triton.status is Status.PASSED
    assert 0 < by_triton.own_share < 1
    assert {use.name: use.kind for use in by_triton.provenance.kernels}["own_relu"] == "own"
    assert warned(by_triton, "doubtful_profile") == ""


@pytest.mark.gpu
def test_rules_on_a_card(run):
    record = run({"by_torch": BY_TORCH}, "cuda:0", GPU_PROBLEM, forbid=["torch_fallback"])["by_torch"]
    assert (record.status, record.reason) == (Status.REJECTED, "forbidden:torch_fallback")
    assert "aten::mm (" in record.message


@pytest.mark.gpu
@pytest.mark.slow
def test_a_cuda_extensions_kernels_are_its_own(run):
    record = run({"cuda": CUDA}, "cuda:0", GPU_PROBLEM, forbid=list(EVERYTHING), min_own_share=0.99)["cuda"]
    print(record)
    assert record.status is Status.PASSED, record.message
    assert any("mine::own_product" in use.name for use in record.provenance.kernels)
