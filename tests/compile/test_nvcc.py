"""Which kernel files are read with the sketch, and what is done to cudafe++'s output."""

import pytest

from harness.compile import lean, nvcc

HEAD = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
POPULAR = frozenset(lean.POPULAR)


def check(text, flags=(), called=()):
    return nvcc.check(HEAD + text, list(flags), POPULAR, list(called))


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
        ("k<sizeof(torch::TensorOptions)><<<1, 1>>>();", [], [], "sizeof"),
        ("k<alignof( at :: Tensor )><<<1, 1>>>();", [], [], "alignof"),
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
        ("", [], ["layer_norm"], "calls layer_norm"),
    ],
)
def test_what_needs_the_real_headers_is_told(text, flags, called, why):
    with pytest.raises(nvcc.NotForSketch, match=why.replace("+", r"\+")):
        check(text, flags, called)


def test_comments_are_not_read():
    assert check("// complex\n/* PYBIND11_MODULE */ __global__ void k() {}") is False


def test_a_file_that_begins_otherwise_needs_the_real_headers():
    with pytest.raises(nvcc.NotForSketch, match="does not begin"):
        nvcc.check("struct half_t {};\n" + HEAD, [], POPULAR, [])


def test_a_launch_without_its_kernel_does_not_compile():
    text = (
        "__wrapper__device_stub_kt(const T *__restrict__ &x, T *&y, int &n) "
        "{ ::cudaLaunchKernel(0, 0, 0, 0, 0, 0);}\nkt(const T *x) {__wrapper__device_stub_kt<T,N>(x);\n"
    )
    changed = nvcc.UNSPECIALISED.sub(r"\1 = delete;", text)
    assert changed.startswith("__wrapper__device_stub_kt(const T *__restrict__ &x, T *&y, int &n) = delete;\n")
    assert changed.endswith("{__wrapper__device_stub_kt<T,N>(x);\n")


def test_the_headers_end_at_the_mark():
    text = '# 1\n# 61 "/usr/include/cuda_runtime.h" 3\nint a;\nextern int assay_end_of_headers; \nint b;\n'
    begin, end = nvcc.headers_of(text)
    assert (text[:begin], text[end:]) == ("# 1\n", "\nint b;\n")
    with pytest.raises(nvcc.NotForSketch):
        nvcc.headers_of("int b;\n")
