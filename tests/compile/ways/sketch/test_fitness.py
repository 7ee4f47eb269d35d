"""Which kernel files are read with the sketch."""

import pytest

from harness.compile.ways import operators
from harness.compile.ways.sketch import fitness
from harness.compile.ways.way import NotThisWay

HEAD = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
POPULAR = frozenset(operators.POPULAR)


def check(text, flags=(), called=()):
    return fitness.check(HEAD + text, list(flags), POPULAR, list(called))


def test_a_plain_kernel_file_is_for_the_sketch():
    text = "template <class T> __global__ void k() {}\nvoid f() { std::max(sizeof(float), sizeof(at::Half)); }"
    assert check(text, ["-O3", "--use_fast_math", "-DN=4"]) is False


@pytest.mark.parametrize("text", ["std::sort(a, b);", "#include <map>\n", "using namespace std;"])
def test_more_of_the_standard_library_is_asked_for(text):
    assert check(text) is True


@pytest.mark.parametrize(
    ("text", "flags", "called", "why"),
    [
        ("c10::complex<float> z;", [], [], "complex"),
        ("PYBIND11_MODULE(a, m) {}", [], [], "PYBIND11_MODULE"),
        ("TORCH_CUDABLAS_CHECK(status);", [], [], "TORCH_CUDABLAS_CHECK"),
        ("k<sizeof(x.item())><<<1, 1>>>();", [], [], "sizeof"),
        ("k<sizeof x><<<1, 1>>>();", [], [], "sizeof"),
        ("k<Has<torch::TensorOptions>::value><<<1, 1>>>();", [], [], "Has"),
        ("k<has_v< int, const at :: Tensor & >><<<1, 1>>>();", [], [], "has_v"),
        ("k<kind((at::Tensor*)nullptr)><<<1, 1>>>();", [], [], "Tensor"),
        ("using Any = at::Scalar;", [], [], "using Any"),
        ("typedef c10::cuda::CUDAStream Queue;", [], [], "typedef"),
        ("k<__is_trivially_copyable(T)><<<1, 1>>>();", [], [], "__is_trivially_copyable"),
        ("#define HEADER <torch/csrc/Exceptions.h>\n#include HEADER\n", [], [], "include"),
        ("k<decltype(x.item())><<<1, 1>>>();", [], [], "decltype"),
        ("k<std::is_trivially_copyable_v<torch::Device>><<<1, 1>>>();", [], [], "is_trivially_copyable_v"),
        ("k<noexcept(f(x))><<<1, 1>>>();", [], [], "noexcept"),
        ("#include <ATen/native/Resize.h>\n", [], [], "includes ATen/native/Resize.h"),
        ("#define __CUDA_NO_HALF_OPERATORS__\n", [], [], "mentions"),
        ("", ["-U__CUDA_NO_HALF_OPERATORS__"], [], "flag -U"),
        ("", ["-D__CUDA_NO_HALF_OPERATORS__"], [], "flag -D"),
        ("", ["--extended-lambda"], [], "flag --ext"),
        ("", ["-rdc=true"], [], "flag -rdc"),
        ("", ["-std=c++17"], [], "flag -std"),
        ("", ["--default-stream=per-thread"], [], "flag --default-stream"),
        ("", [], ["layer_norm"], "calls layer_norm"),
        # torch's own headers do not know these either.
        ("C10_CUDA_KERNEL_LAUNCH_CHECK();", [], [], "uses C10_CUDA_KERNEL_LAUNCH_CHECK without its header"),
        ("#include <c10/cuda/CUDAException.h>\nat::cuda::getCurrentCUDAStream();", [], [], "uses at::cuda without"),
        ("const OptionalCUDAGuard guard(x.device());", [], [], "uses OptionalCUDAGuard without"),
    ],
)
def test_what_needs_the_real_headers_is_told(text, flags, called, why):
    with pytest.raises(NotThisWay, match=why.replace("+", r"\+")):
        check(text, flags, called)


@pytest.mark.parametrize(
    "text",
    [
        "std::vector<torch::Tensor> f(std::optional<at::Tensor> x) { return {x->mul(2)}; }",
        "using torch::Tensor;\nusing Tensor = torch::Tensor;\nstd::tuple<Tensor, Tensor> f(const Tensor& x);",
        "struct P { at::Scalar s; };\ntemplate <class T, int N> __global__ void k() { T x[sizeof(T) * (N + 1)]; }",
        "template <typename... A> void f(A... a) { k<sizeof...(A)><<<1, 1>>>(a...); }",
        "__global__ void k(at::PackedTensorAccessor32<float, 2> x);\nvoid f() { x.packed_accessor32<float, 2>(); }",
        "#include <ATen/cuda/CUDAContext.h>\nauto handle = at::cuda::getCurrentCUDABlasHandle();",
        "#include <c10/cuda/CUDAException.h>\nvoid f() { C10_CUDA_KERNEL_LAUNCH_CHECK(); }",
        "#include <c10/cuda/CUDAStream.h>\nvoid f() { C10_CUDA_CHECK(g(c10::cuda::getCurrentCUDAStream())); }",
        "#include <ATen/core/Tensor.h>\n#if __has_include(<cuda_fp8.h>)\n#endif",
    ],
)
def test_what_does_not_depend_on_the_sketch_is_left_to_it(text):
    assert check(text) is False


def test_conditionals_need_the_header_that_the_sketch_includes():
    text = "#include <torch/types.h>\n#ifdef CUDA_VERSION\n#endif"
    with pytest.raises(NotThisWay, match="does not include cuda"):
        fitness.check(text, [], POPULAR, [])


def test_headers_and_flags_from_elsewhere_are_not_for_the_sketch(tmp_path, monkeypatch):
    source, ours = tmp_path / "cuda.cu", ["-I/lean", "-isystem", "/torch"]
    fitness.check_surroundings('#include "mine.cuh"', source, ours, ["/lean"])
    with pytest.raises(NotThisWay, match="include folder /theirs"):
        fitness.check_surroundings("", source, [*ours, "-I/theirs"], ["/lean"])
    (tmp_path / "mine.cuh").write_text("")
    with pytest.raises(NotThisWay, match="beside it"):
        fitness.check_surroundings('#include "mine.cuh"', source, ours, ["/lean"])
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DUSE_ROCM")
    with pytest.raises(NotThisWay, match="NVCC_APPEND_FLAGS"):
        fitness.check_surroundings("", source, ours, ["/lean"])


def test_a_file_that_begins_otherwise_needs_the_real_headers():
    with pytest.raises(NotThisWay, match="does not begin"):
        fitness.check("struct half_t {};\n" + HEAD, [], POPULAR, [])
