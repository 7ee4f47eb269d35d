"""The usual causes of compiler errors, each a pattern and a sentence on how to mend it. No torch."""

from __future__ import annotations

import re

# The first that matches speaks, so the particular come before the general. Groups fill the sentence's braces.
TABLE: tuple[tuple[str, str], ...] = (
    (
        r"cannot find -l(?P<name>\w+)",
        "lib{name} is not on this machine, or its folder is missing: extra_ldflags=['-L...']",
    ),
    # Headers.
    (
        r"(?P<header>(?:cutlass|cute)/\S+): No such file",
        "CUTLASS is not part of the CUDA toolkit: give its folder in extra_include_paths; other machines may lack it",
    ),
    (
        r"(?P<header>cudnn\S*|nccl\S*|cufft\S*|curand\S*|cusparse\S*): No such file",
        "this library's headers are not on this machine; its package on PyPI (nvidia-...) holds them",
    ),
    (
        r"(?P<header>[\w./+-]+): No such file or directory",
        "{header} is in none of the include folders: check its spelling, or add its folder to extra_include_paths",
    ),
    (r'identifier "(?P<name>half2?|__half2?)" is undefined', "#include <cuda_fp16.h> for {name}"),
    (
        r'identifier "(?P<name>(?:__)?nv_bfloat16\w*|__nv_bfloat16\w*)" is undefined',
        "#include <cuda_bf16.h> for {name}",
    ),
    (r'identifier "cub" is undefined', "#include <cub/cub.cuh> for cub::"),
    (r'identifier "(?P<name>FLT_MAX|FLT_MIN|FLT_EPSILON|DBL_MAX)" is undefined', "#include <cfloat> for {name}"),
    (
        r'(?:"at::cuda" has no member|identifier) "(?P<name>getCurrentCUDAStream)"',
        "#include <ATen/cuda/CUDAContext.h> for at::cuda::{name}",
    ),
    (r'"c10::cuda" has no member "(?P<name>\w*Guard)"', "#include <c10/cuda/CUDAGuard.h> for {name}"),
    (
        r'identifier "(?P<name>C10_CUDA_(?:KERNEL_LAUNCH_)?CHECK)" is undefined',
        "#include <c10/cuda/CUDAException.h> for {name}",
    ),
    (r'identifier "AT_CHECK" is undefined', "PyTorch no longer has AT_CHECK: use TORCH_CHECK"),
    # PyTorch's own interfaces.
    (
        r'"const at::DeprecatedTypeProperties" to "c10::ScalarType"',
        "AT_DISPATCH_... no longer takes tensor.type(): write tensor.scalar_type()",
    ),
    (
        r'(?:from "std::(?:tuple|vector|pair)<at::Tensor.*" to "at::Tensor"'
        r"|from 'std::(?:tuple|vector|pair)<at::Tensor.*' to 'at::Tensor')",
        "the function returns several tensors and is declared to return one: declare std::vector<torch::Tensor>, in "
        "cpp_sources too",
    ),
    (
        r'from "at::Tensor" to "std::(?:tuple|vector|pair)<at::Tensor',
        "the function is declared to return several tensors and returns one: write return {{x}};, or declare one "
        "torch::Tensor",
    ),
    (
        r"undefined symbol: _ZNK2at10TensorBase\d+(?:mutable_|const_)?data_ptrIK?(?:6__half|13__nv_bfloat16)",
        "PyTorch has no data_ptr<__half>() or <__nv_bfloat16>(): take data_ptr<at::Half>() (at::BFloat16) and "
        "reinterpret_cast the pointer",
    ),
    (
        r"undefined symbol: (?P<name>\S+)",
        "cpp_sources declares a function that no source defines with these very arguments; compare the declaration "
        "with the definition in cuda_sources",
    ),
    (
        r"does not define module export function \(PyInit_",
        "no function is bound to Python: name them in functions=[...], or write a PYBIND11_MODULE",
    ),
    (
        r"redefinition of .*(?:PyInit_|pybind11_init_|pybind11_exec_)",
        "two PYBIND11_MODULE: functions=[...] already generates one; use only one of the two",
    ),
    (
        r"multiple definition of",
        "defined in cpp_sources and in cuda_sources: keep the definition in cuda_sources, and only declare it in "
        "cpp_sources",
    ),
    (
        r"'(?P<name>\w+)' was not declared in this scope(?s:.*?)m\.def\(",
        "functions=[...] names {name}, which cpp_sources does not declare: put its declaration there, such as "
        "torch::Tensor {name}(torch::Tensor x);",
    ),
    (
        r"(?:'__(?:global|device|shared)__' does not name a type"
        r"|expected primary-expression before '[<>]' token(?s:.*?)<<<)",
        "kernels and launches are CUDA: they belong in cuda_sources, cpp_sources goes to the C++ compiler",
    ),
    (
        r"this declaration has no storage class or type specifier(?s:.*?)torch::",
        "torch:: is unknown: #include <torch/extension.h>, because no_implicit_headers leaves it out",
    ),
    # Half precision.
    (
        r'no operator "\S+" matches these operands(?s:.*?)__half',
        "torch compiles with -D__CUDA_NO_HALF_OPERATORS__: compute in float, use __hadd and its like, or add "
        "-U__CUDA_NO_HALF_OPERATORS__ to extra_cuda_cflags",
    ),
    (
        r'(?:from "(?:const )?__half" to "float"|convert from "float" to "__half")',
        "torch compiles with -D__CUDA_NO_HALF_CONVERSIONS__: write __half2float and __float2half",
    ),
    (
        r'argument of type "(?P<given>[^"]+\*)" is incompatible with parameter of type "(?P<wanted>[^"]*half[^"]*\*)"',
        "the tensor's data_ptr has another type than the kernel takes: data_ptr<at::Half>() and a reinterpret_cast "
        "give {wanted}",
    ),
    (
        r"not implemented for '(?:Half|BFloat16)'",
        "AT_DISPATCH_FLOATING_TYPES does not cover Half: use "
        "AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, ...)",
    ),
    # The card and its limits.
    (
        r"Unsupported gpu architecture '(?P<name>\w+)'",
        "this CUDA version does not support {name} (too old or too new): leave -arch and -gencode out of "
        "extra_cuda_cflags; the harness adds the GPU's architecture",
    ),
    (
        r"(?:Instruction|Feature) '(?P<what>[^']+)' not supported on \.target '(?P<arch>sm_\d+)'",
        "{what} needs an architecture-specific target, such as sm_90a for {arch}: leave -arch and -gencode out of "
        "extra_cuda_cflags",
    ),
    (
        r"uses too much shared data \((?P<used>\w+) bytes, (?P<most>\w+) max\)",
        "make the tiles smaller, or request dynamic shared memory up to the GPU's limit with "
        "cudaFuncAttributeMaxDynamicSharedMemorySize",
    ),
    (
        r"calling a __host__ function\(\"(?P<name>[^\"]+)\"\) from a __(?:global|device)__ function",
        "mark {name} __device__, or use CUDA's own function in its place",
    ),
    # Strings built in Python.
    (
        r"expected an expression\n.*\[\{{1,2}[A-Za-z_]\w*\}",
        "a placeholder such as {{TILE}} reached the compiler: the Python string is not an f-string, or .format was not "
        "called",
    ),
    (
        r"f-string",
        "braces of C++ must be doubled in an f-string; a plain string with .replace needs no doubling",
    ),
    (r'name must be a namespace name\n.*\bnvcuda\b|"::".*\n.*\bnvcuda::', "#include <mma.h> for nvcuda::wmma"),
    (
        r'name must be a namespace name\n.*\bcooperative_groups\b|"::".*\n.*\bcooperative_groups::',
        "#include <cooperative_groups.h> for cooperative_groups",
    ),
    # Flags.
    (
        r"unrecognized command-line option '(?P<name>[^']+)'",
        "the C++ compiler has no option {name}: options of nvcc go in extra_cuda_cflags",
    ),
    (
        r"Unknown option '(?P<name>[^']+)'",
        "nvcc has no option {name}: options of the host compiler go after -Xcompiler",
    ),
)
QUOTES = {0x2018: "'", 0x2019: "'"}
_COMPILED = tuple((re.compile(pattern), sentence) for pattern, sentence in TABLE)


def hint(text: str) -> str:
    """How to mend the error whose words are `text`, with the source lines that the compiler quotes; empty where nothing
    usual fits."""
    # g++ quotes in its locale's way.
    plain = text.translate(QUOTES)
    for pattern, sentence in _COMPILED:
        found = pattern.search(plain)
        if found:
            return sentence.format(**found.groupdict())
    return ""
