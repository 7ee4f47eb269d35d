"""Which headers are made for a candidate's file."""

import itertools

import pytest

from harness.compile import prepare
from harness.compile.precompiled import Precompiled
from harness.compile.tools import Tools
from harness.compile.ways import smaller
from harness.compile.ways.conditionals import Macros
from harness.compile.ways.sketch import sketch
from harness.compile.ways.sketch.prefixes import PREFIXES

TOOLS = Tools(
    cxx="c++", nvcc="nvcc", torch_root="/torch", cuda_include="/cuda", std="-std=c++20", arch="9.0a", versions=()
)
CONTEXT = b"#include <ATen/cuda/CUDAContext.h>\n__global__ void k() {}\n"


@pytest.mark.parametrize(
    ("source", "cpp", "cuda", "prefixes"),
    [
        (b"cpp_sources=SOURCE", [""], [], []),
        (b"cuda_sources=SOURCE", [""], [""], ["prefix.hpp"]),
        (b"cuda_sources=SOURCE, extra_cuda_cflags=['-O3']", [""], ["-O3"], ["prefix.hpp"]),
        (
            b"cuda_sources=SOURCE, extra_cflags=['-O3'], extra_cuda_cflags=['-O2']",
            ["-O2", "-O3"],
            ["-O2", "-O3"],
            ["prefix.hpp"],
        ),
        (CONTEXT + b"at::cuda::getCurrentCUDAStream();", [""], [""], ["prefix.hpp"]),
        (CONTEXT + b"at::cuda::getCurrentCUDABlasHandle();", [""], [""], ["prefix.hpp", "context.hpp"]),
        (b"__global__ void k(); torch.cuda.is_available()", [""], [""], ["prefix.hpp"]),
        (b"__global__ void k(); PYBIND11_MODULE(name, m) {}", [""], [""], ["prefix.hpp", "module.hpp"]),
        (
            CONTEXT + b"at::cuda::getCurrentCUDABlasHandle(); PYBIND11_MODULE(name, m) {}",
            [""],
            [""],
            ["prefix.hpp", "module.hpp", "context.hpp", "context_module.hpp"],
        ),
    ],
)
def test_a_file_gets_what_it_may_need(source, cpp, cuda, prefixes, monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(sketch.prefixes, "prepare", lambda kind, level, *_: made.append((PREFIXES[kind], level)))
    monkeypatch.setattr(Precompiled, "compile", lambda self, header, level, command: made.append((header, level)))
    monkeypatch.setattr(smaller.operators, "popular_header", lambda root: "")
    monkeypatch.setattr(prepare, "survey", lambda *_: Macros(cpp=frozenset(), cuda=frozenset(), asked=frozenset()))
    prepare.prepared(prepare.wanted(source), tmp_path, TOOLS)
    assert sorted(set(made)) == sorted([*(("binding.h", level) for level in cpp), *itertools.product(prefixes, cuda)])
    assert (tmp_path / TOOLS.digest[:32] / smaller.MACROS).is_file()
