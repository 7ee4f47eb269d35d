# ruff: noqa: E501, RUF001 - compilers' own words, with the quotes that g++ prints in a UTF-8 locale
"""Each usual cause is told from words that nvcc 13.0, g++ 12, ld and Python 3.11 really said of a faulty source."""

import re

import pytest

from harness.compile import hints

# What the compiler said, and words that the hint must have. Folders are shortened to /b.
RECORDED = {
    "missing header": (
        "/b/cuda.cu:2:10: fatal error: missing/kernels.h: No such file or directory\n"
        "    2 | #include <missing/kernels.h>\n",
        "missing/kernels.h is in none of the include folders",
    ),
    "CUTLASS": (
        "/b/cuda.cu:2:10: fatal error: cutlass/cutlass.h: No such file or directory\n"
        "    2 | #include <cutlass/cutlass.h>\n",
        "CUTLASS is not part of the CUDA toolkit",
    ),
    "cuDNN": (
        "/b/cuda.cu:2:10: fatal error: cudnn.h: No such file or directory\n    2 | #include <cudnn.h>\n",
        "its package on PyPI",
    ),
    "half": (
        '/b/cuda.cu(2): error: identifier "half" is undefined\n            void kernel(const half* a, __nv_bfloat16* b) {\n',
        "#include <cuda_fp16.h> for half",
    ),
    "bfloat16": (
        '/b/cuda.cu(2): error: identifier "__nv_bfloat16" is undefined\n'
        "            void kernel(const half* a, __nv_bfloat16* b) {\n",
        "#include <cuda_bf16.h> for __nv_bfloat16",
    ),
    "CUB": (
        '/b/cuda.cu(3): error: identifier "cub" is undefined\n      using Reduce = cub::BlockReduce<float, 256>;\n',
        "#include <cub/cub.cuh>",
    ),
    "FLT_MAX": (
        '/b/cuda.cu(3): error: identifier "FLT_MAX" is undefined\n      b[0] = -FLT_MAX;\n',
        "#include <cfloat> for FLT_MAX",
    ),
    "stream": (
        '/b/cuda.cu(4): error: namespace "at::cuda" has no member "getCurrentCUDAStream"\n'
        "      kernel<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>());\n",
        "#include <ATen/cuda/CUDAContext.h>",
    ),
    "guard": (
        '/b/cuda.cu(5): error: namespace "c10::cuda" has no member "CUDAGuard"\n'
        "      c10::cuda::CUDAGuard guard(x.device());\n",
        "#include <c10/cuda/CUDAGuard.h>",
    ),
    "launch check": (
        '/b/cuda.cu(6): error: identifier "C10_CUDA_KERNEL_LAUNCH_CHECK" is undefined\n'
        "   C10_CUDA_KERNEL_LAUNCH_CHECK();\n",
        "#include <c10/cuda/CUDAException.h>",
    ),
    "AT_CHECK": (
        '/b/cuda.cu(4): error: identifier "AT_CHECK" is undefined\n      AT_CHECK(x.is_contiguous(), "contiguous");\n',
        "use TORCH_CHECK",
    ),
    "dispatch on type()": (
        '/b/cuda.cu(4): error: no suitable conversion function from "const at::DeprecatedTypeProperties" to '
        '"c10::ScalarType" exists\n     ; torch::headeronly::ScalarType _st = ::detail::scalar_type(the_type); ;\n',
        "write tensor.scalar_type()",
    ),
    "tuple for a tensor, nvcc": (
        '/b/cuda.cu(3): error: no suitable user-defined conversion from "std::tuple<at::Tensor, at::Tensor>" to '
        '"at::Tensor" exists\n      return std::make_tuple(x, x);\n',
        "returns several tensors and is declared to return one",
    ),
    "tuple for a tensor, g++": (
        "/b/main.cpp:4:27: error: could not convert ‘std::make_tuple(_Elements&& ...) [with _Elements = {at::Tensor&, "
        "at::Tensor&}](x)’ from ‘std::tuple<at::Tensor, at::Tensor>’ to ‘at::Tensor’\n"
        "    4 |     return std::make_tuple(x, x);\n",
        "returns several tensors and is declared to return one",
    ),
    "tensor for a vector": (
        '/b/cuda.cu(6): error: no suitable user-defined conversion from "at::Tensor" to "std::vector<at::Tensor, '
        'std::allocator<at::Tensor>>" exists\n      return x;\n',
        "write return {x};",
    ),
    "data_ptr of half": (
        "/b/tail_v1.so: undefined symbol: _ZNK2at10TensorBase8data_ptrI6__halfEEPT_v",
        "take data_ptr<at::Half>()",
    ),
    "declared, not defined": (
        "/b/tail.so: undefined symbol: _Z4tailN2at6TensorE",
        "compare the declaration with the definition",
    ),
    "nothing bound": (
        "dynamic module does not define module export function (PyInit_tail_v2)",
        "name them in functions=[...]",
    ),
    "two modules": (
        "/b/main.cpp:7:1: error: redefinition of ‘PyObject* PyInit_tail()’\n    7 | PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n",
        "two PYBIND11_MODULE",
    ),
    "two definitions": (
        "tmpxft_00002224_00000000-6_cuda.cudafe1.cpp:(.text+0x2e): multiple definition of `tail(int)'; "
        "main.o:main.cpp:(.text+0x6ee): first defined here\n",
        "only declare it in cpp_sources",
    ),
    "not in cpp_sources": (
        "/b/main.cpp:4:15: error: ‘tail’ was not declared in this scope; did you mean ‘tanl’?\n"
        '    4 | m.def("tail", tail, "tail");\n      |               ^~~~\n',
        "functions=[...] names tail",
    ),
    "kernel in cpp_sources": (
        "/b/main.cpp:1:1: error: ‘__global__’ does not name a type\n    1 | __global__ void kernel(float* x) {\n",
        "they belong in cuda_sources",
    ),
    "launch in cpp_sources": (
        "/b/main.cpp:4:13: error: expected primary-expression before ‘<’ token\n    4 |     kernel<<<1, 256>>>(x);\n",
        "they belong in cuda_sources",
    ),
    "no torch header": (
        "/b/cuda.cu(2): error: this declaration has no storage class or type specifier\n"
        "  torch::Tensor tail(torch::Tensor x) {\n",
        "#include <torch/extension.h>",
    ),
    "half operators": (
        '/b/cuda.cu(4): error: no operator "+" matches these operands\n'
        "            operand types are: const __half + const __half\n      b[0] = a[0] + a[1];\n",
        "-D__CUDA_NO_HALF_OPERATORS__",
    ),
    "half to float": (
        '/b/cuda.cu(4): error: no suitable conversion function from "const __half" to "float" exists\n      b[0] = a[0];\n',
        "write __half2float",
    ),
    "float to half": (
        '/b/cuda.cu(5): error: no suitable constructor exists to convert from "float" to "__half"\n      __half h = 1.0f;\n',
        "write __half2float",
    ),
    "wrong pointer": (
        '/b/cuda.cu(5): error: argument of type "float *" is incompatible with parameter of type "const half *"\n'
        "      kernel<<<1, 1>>>(a);\n",
        "reinterpret_cast give const half *",
    ),
    "old architecture": (
        "nvcc fatal   : Unsupported gpu architecture 'sm_35'\n",
        "this CUDA version does not support sm_35",
    ),
    "wgmma without a": (
        "ptxas /tmp/tmpxft_00001c9c_00000000-6_cuda.ptx, line 21; error   : Instruction 'wgmma.fence' not supported on "
        ".target 'sm_90'\n",
        "such as sm_90a for sm_90",
    ),
    "shared memory": (
        "ptxas error   : Entry function '_Z6kernelPf' uses too much shared data (0x40000 bytes, 0x38c00 max)\n",
        "make the tiles smaller",
    ),
    "host function": (
        '/b/cuda.cu(5): error: calling a __host__ function("twice(float)") from a __global__ function("kernel") is not '
        "allowed\n",
        "mark twice(float) __device__",
    ),
    "placeholder": (
        "/b/cuda.cu(3): error: expected an expression\n                float tile[{TILE}];\n                           ^\n",
        "a placeholder such as {TILE} reached the compiler",
    ),
    "f-string": ("candidate.py:6: f-string: expecting '}'", "braces of C++ must be doubled"),
    "wmma": (
        '/b/cuda.cu(4): error: name followed by "::" must be a class or namespace name\n'
        "      nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;\n",
        "#include <mma.h>",
    ),
    "using nvcuda": (
        "/b/cuda.cu(2): error: name must be a namespace name\n  using namespace nvcuda;\n",
        "#include <mma.h>",
    ),
    "cooperative groups": (
        "/b/cuda.cu(2): error: name must be a namespace name\n  namespace cg = cooperative_groups;\n",
        "#include <cooperative_groups.h>",
    ),
    "library": ("/usr/bin/ld: cannot find -lcutlass: No such file or directory\n", "libcutlass is not on this machine"),
    "nvcc's flag": (
        "c++: error: unrecognized command-line option ‘--use_fast_math’; did you mean ‘--fast-math’?\n",
        "the C++ compiler has no option --use_fast_math",
    ),
    "g++'s flag": ("nvcc fatal   : Unknown option '-Wall'\n", "after -Xcompiler"),
    "dispatch without half": (
        "\"tail\" not implemented for 'Half'",
        "AT_DISPATCH_FLOATING_TYPES does not cover Half",
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_usual_cause_is_named(name):
    output, words = RECORDED[name]
    assert words in hints.hint(output)


@pytest.mark.parametrize("name", RECORDED)
def test_g_plus_plus_may_quote_as_in_the_c_locale(name):
    output, words = RECORDED[name]
    assert words in hints.hint(output.replace("‘", "'").replace("’", "'"))


def test_every_entry_of_the_table_is_reached():
    plain = [output.translate(hints.QUOTES) for output, _ in RECORDED.values()]
    reached = {next((pattern for pattern, _ in hints.TABLE if re.search(pattern, output)), None) for output in plain}
    assert [pattern for pattern, _ in hints.TABLE if pattern not in reached] == []


@pytest.mark.parametrize(
    "output",
    [
        '/b/cuda.cu(3): error: identifier "wrong" is undefined\n      b[0] = wrong;\n',
        '/b/cuda.cu(4): error: expected a ";"\n      b[1] = 2;\n',
        "/b/main.cpp:9:12: error: ‘undeclared_name’ was not declared in this scope\n    9 |     return undeclared_name;\n",
    ],
)
def test_what_has_no_usual_cause_gets_no_hint(output):
    assert hints.hint(output) == ""
