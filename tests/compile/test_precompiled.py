"""Which headers are made for a candidate's file."""

from pathlib import Path

import pytest

from harness.compile import module_block, nvcc, precompiled

TOOLS = precompiled.Tools(
    cxx="c++", nvcc="nvcc", torch_root="/torch", cuda_include="/cuda", std="-std=c++20", arch="9.0a", versions=()
)
CONTEXT = b"#include <ATen/cuda/CUDAContext.h>\n__global__ void k() {}\n"


@pytest.mark.parametrize(
    ("source", "cpp", "cuda", "prefixes"),
    [
        (b"cpp_sources=SOURCE", [""], [], ["prefix.hpp"]),
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
def test_a_file_gets_what_it_may_need(source, cpp, cuda, prefixes, monkeypatch):
    made = []
    monkeypatch.setattr(precompiled.Precompiled, "make", lambda self, *asked: made.append(asked))
    precompiled.prepared(precompiled.wanted(source), Path("/headers"), TOOLS)
    assert made == [(cpp, cuda, prefixes)]


def test_without_its_headers_a_kernel_file_is_left_to_nvcc(tmp_path):
    with pytest.raises(nvcc.NotForSketch, match=r"context\.hpp has not been made"):
        nvcc.compile_with_sketch("nvcc", [], tmp_path, [], [], tmp_path / "context.hpp", tmp_path, [], module_block.cut)
