"""Sources for benchmarks/compile_cost.py, as candidates write them: arguments of load_inline by name."""

from __future__ import annotations

from typing import Any

PLAIN = {
    "cpp_sources": "torch::Tensor scale(torch::Tensor x, double factor);",
    "cuda_sources": """
__global__ void scale_kernel(const float* x, float* y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
torch::Tensor scale(torch::Tensor x, double factor) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), (float)factor, n);
    return y;
}
""",
    "functions": ["scale"],
}

ATEN_HEAVY = {
    "cpp_sources": "std::vector<torch::Tensor> block(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
    "cuda_sources": """
#include <torch/extension.h>
#include <vector>

__global__ void bias_relu(float* y, const float* __restrict__ b, int rows, int cols) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += gridDim.x * blockDim.x) {
        float v = y[i] + b[i % cols];
        y[i] = v > 0.f ? v : 0.f;
    }
}
std::vector<torch::Tensor> block(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    TORCH_CHECK(x.is_cuda() && w.is_cuda(), "x and w must be CUDA tensors");
    TORCH_CHECK(x.dim() == 2 && w.dim() == 2, "matrices expected, got ", x.dim(), " and ", w.dim(), " dimensions");
    x = x.contiguous();
    auto y = torch::matmul(x, w.t());
    bias_relu<<<1024, 256>>>(y.data_ptr<float>(), b.data_ptr<float>(), y.size(0), y.size(1));
    auto mean = y.mean(1, true);
    auto centred = y - mean;
    auto p = torch::softmax(centred, -1);
    auto stacked = torch::cat({p, torch::zeros({x.size(0), 1}, x.options())}, 1);
    auto total = stacked.sum().to(torch::kFloat64);
    return {stacked, total, torch::ones({4, 4}, torch::TensorOptions().dtype(torch::kFloat32).device(x.device()))};
}
""",
    "functions": ["block"],
}

TEMPLATES = {
    "cpp_sources": "torch::Tensor transpose(torch::Tensor x);",
    "cuda_sources": """
#include <torch/extension.h>
template <typename scalar_t, int TILE>
__global__ void transpose_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int rows, int cols) {
    __shared__ scalar_t tile[TILE][TILE + 1];
    int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
    __syncthreads();
    c = blockIdx.y * TILE + threadIdx.x, r = blockIdx.x * TILE + threadIdx.y;
    if (r < cols && c < rows) y[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}
template <typename scalar_t>
void launch(const torch::Tensor& x, torch::Tensor& y) {
    const int rows = x.size(0), cols = x.size(1);
    if (cols >= 64) {
        dim3 grid((cols + 31) / 32, (rows + 31) / 32);
        transpose_kernel<scalar_t, 32><<<grid, dim3(32, 32)>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), rows, cols);
    } else {
        dim3 grid((cols + 7) / 8, (rows + 7) / 8);
        transpose_kernel<scalar_t, 8><<<grid, dim3(8, 8)>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), rows, cols);
    }
}
torch::Tensor transpose(torch::Tensor x) {
    auto y = torch::empty({x.size(1), x.size(0)}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "transpose", [&] { launch<scalar_t>(x, y); });
    return y;
}
""",
    "functions": ["transpose"],
    "extra_cuda_cflags": ["-O3", "--use_fast_math"],
}

HALF = {
    "cpp_sources": "torch::Tensor add(torch::Tensor a, torch::Tensor b);",
    "cuda_sources": """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void add_half(const __half2* a, const __half2* b, __half2* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hadd2(a[i], b[i]);
}
__global__ void add_bfloat(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2bfloat16(__bfloat162float(a[i]) + __bfloat162float(b[i]));
}
torch::Tensor add(torch::Tensor a, torch::Tensor b) {
    auto y = torch::empty_like(a);
    const int n = a.numel();
    if (a.scalar_type() == torch::kHalf) {
        add_half<<<(n / 2 + 255) / 256, 256>>>(reinterpret_cast<const __half2*>(a.data_ptr<at::Half>()),
            reinterpret_cast<const __half2*>(b.data_ptr<at::Half>()),
            reinterpret_cast<__half2*>(y.data_ptr<at::Half>()), n / 2);
    } else {
        TORCH_CHECK(a.scalar_type() == torch::kBFloat16, "half or bfloat16 expected");
        add_bfloat<<<(n + 255) / 256, 256>>>(reinterpret_cast<const __nv_bfloat16*>(a.data_ptr()),
            reinterpret_cast<const __nv_bfloat16*>(b.data_ptr()), reinterpret_cast<__nv_bfloat16*>(y.data_ptr()), n);
    }
    return y;
}
""",
    "functions": {"add": "a + b in half precision"},
}

SEVERAL_KERNELS = {
    "cpp_sources": "torch::Tensor softmax(torch::Tensor x);\ntorch::Tensor layer_norm(torch::Tensor x, double eps);",
    "cuda_sources": [
        """
#include <cmath>
#define WARP 32
__device__ __forceinline__ float warp_max(float v) {
    for (int o = WARP / 2; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    return v;
}
__device__ __forceinline__ float warp_sum(float v) {
    for (int o = WARP / 2; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}
__global__ void softmax_kernel(const float* x, float* y, int cols) {
    const float* row = x + (size_t)blockIdx.x * cols;
    float m = -INFINITY, s = 0.f;
    for (int c = threadIdx.x; c < cols; c += WARP) m = fmaxf(m, row[c]);
    m = warp_max(m);
    for (int c = threadIdx.x; c < cols; c += WARP) s += __expf(row[c] - m);
    s = warp_sum(s);
    for (int c = threadIdx.x; c < cols; c += WARP) y[(size_t)blockIdx.x * cols + c] = __expf(row[c] - m) / s;
}
torch::Tensor softmax(torch::Tensor x) {
    auto y = torch::empty_like(x);
    softmax_kernel<<<x.size(0), WARP>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
        """
__global__ void layer_norm_kernel(const float4* x, float4* y, int cols4, float eps) {
    const float4* row = x + (size_t)blockIdx.x * cols4;
    float s = 0.f, q = 0.f;
    for (int c = threadIdx.x; c < cols4; c += WARP) {
        float4 v = row[c];
        s += v.x + v.y + v.z + v.w;
        q += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    const float mean = warp_sum(s) / (4 * cols4), scale = rsqrtf(warp_sum(q) / (4 * cols4) - mean * mean + eps);
    for (int c = threadIdx.x; c < cols4; c += WARP) {
        float4 v = row[c];
        y[(size_t)blockIdx.x * cols4 + c] =
            make_float4((v.x - mean) * scale, (v.y - mean) * scale, (v.z - mean) * scale, (v.w - mean) * scale);
    }
}
torch::Tensor layer_norm(torch::Tensor x, double eps) {
    auto y = torch::empty_like(x);
    layer_norm_kernel<<<x.size(0), WARP>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                           reinterpret_cast<float4*>(y.data_ptr<float>()), x.size(1) / 4, eps);
    return y;
}
""",
    ],
    "functions": ["softmax", "layer_norm"],
    "extra_cuda_cflags": ["-O3"],
    "extra_cflags": ["-O3"],
}

CPP_ONLY = {
    "cpp_sources": """
#include <cmath>
torch::Tensor gelu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = 0.5f * in[i] * (1.f + std::erf(in[i] * 0.70710678f));
    return y;
}
""",
    "functions": "gelu",
    "extra_cflags": ["-O3"],
}

CPP_OPERATORS = {
    "cpp_sources": """
#include <ATen/Parallel.h>
#include <iostream>
using namespace torch::indexing;
at::Tensor rows(at::Tensor x, int64_t step) {
    auto picked = x.index({Slice(None, None, step), Ellipsis});
    auto scaled = (picked * 2.0 + 1.0) / picked.abs().clamp_min(1e-6);
    at::parallel_for(0, scaled.size(0), 16, [&](int64_t begin, int64_t end) {
        float* p = scaled.data_ptr<float>();
        for (int64_t i = begin * scaled.size(1); i < end * scaled.size(1); ++i) p[i] = p[i] > 0 ? p[i] : 0;
    });
    if (step < 0) std::cout << scaled << std::endl;
    return at::where(scaled > 1, scaled, at::zeros_like(scaled));
}
""",
    "functions": ["rows"],
}

OWN_MODULE = {
    "cpp_sources": """
#include <torch/extension.h>
torch::Tensor twice_cuda(torch::Tensor x);
torch::Tensor twice(torch::Tensor x, c10::optional<double> factor) {
    TORCH_CHECK(x.is_contiguous(), "contiguous input expected");
    return twice_cuda(x) * factor.value_or(1.0);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("twice", &twice, "Two times", py::arg("x"), py::arg("factor") = py::none());
}
""",
    "cuda_sources": str(PLAIN["cuda_sources"])
    .replace("torch::Tensor scale(torch::Tensor x, double factor)", "torch::Tensor twice_cuda(torch::Tensor x)")
    .replace("(float)factor", "2.f"),
}

MODULE_IN_CUDA = {
    "cpp_sources": "",
    "cuda_sources": "#include <torch/extension.h>\n"
    + str(PLAIN["cuda_sources"])
    + """
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale, "x times factor"); }
""",
}

ACCESSORS = {
    "cpp_sources": "torch::Tensor diagonal(torch::Tensor x);",
    "cuda_sources": """
#include <torch/extension.h>
template <typename scalar_t>
__global__ void diagonal_kernel(const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
                                torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < y.size(0)) y[i] = x[i][i];
}
torch::Tensor diagonal(torch::Tensor x) {
    auto y = torch::zeros({std::min(x.size(0), x.size(1))}, x.options());
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "diagonal", ([&] {
        diagonal_kernel<scalar_t><<<(y.size(0) + 127) / 128, 128>>>(
            x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
            y.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>());
    }));
    return y;
}
""",
    "functions": ["diagonal"],
}

# They need what a torch built with CUDA installs.
STREAMS = {
    "cpp_sources": "torch::Tensor scale(torch::Tensor x, double factor);",
    "cuda_sources": """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
"""
    + str(PLAIN["cuda_sources"])
    .replace("auto y", "const at::cuda::OptionalCUDAGuard guard(device_of(x));\n    auto y")
    .replace("256>>>", "256, 0, at::cuda::getCurrentCUDAStream()>>>")
    .replace("    return y;", "    C10_CUDA_KERNEL_LAUNCH_CHECK();\n    return y;"),
    "functions": ["scale"],
}
CUBLAS = {
    "cpp_sources": "torch::Tensor gemm(torch::Tensor a, torch::Tensor b);",
    "cuda_sources": """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>
torch::Tensor gemm(torch::Tensor a, torch::Tensor b) {
    auto c = torch::empty({a.size(0), b.size(1)}, a.options());
    const float one = 1.f, zero = 0.f;
    const int m = a.size(0), n = b.size(1), k = a.size(1);
    auto status = cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one,
        b.data_ptr<float>(), n, a.data_ptr<float>(), k, &zero, c.data_ptr<float>(), n);
    TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed");
    return c;
}
""",
    "functions": ["gemm"],
    "extra_ldflags": ["-lcublas"],
}

# torch::nn is not among the lean headers.
FALLBACK = {
    "cpp_sources": """
torch::Tensor block(torch::Tensor x, torch::Tensor w) {
    namespace F = torch::nn::functional;
    return F::gelu(F::linear(x, w));
}
""",
    "functions": ["block"],
}

SOURCES: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "cpp_only": CPP_ONLY,
    "templates": TEMPLATES,
    "half_bf16": HALF,
    "aten_heavy": ATEN_HEAVY,
    "several_kernels": SEVERAL_KERNELS,
    "own_module": OWN_MODULE,
    "cpp_operators": CPP_OPERATORS,
    "accessors": ACCESSORS,
    "module_in_cuda": MODULE_IN_CUDA,
    "streams_guards": STREAMS,
    "cublas": CUBLAS,
    "needs_fallback": FALLBACK,
}
NEED_CUDA_TORCH = ("streams_guards", "cublas")


def _changed(old: str, new: str, **more: Any) -> dict[str, Any]:
    """PLAIN with one mistake in its kernel file."""
    assert old in PLAIN["cuda_sources"]
    return PLAIN | {"cuda_sources": PLAIN["cuda_sources"].replace(old, new)} | more


# Each with one of the usual mistakes.
FAILING: dict[str, dict[str, Any]] = {
    "not_declared": PLAIN | {"functions": ["scale", "shift_and_scale"]},
    "misspelt": _changed("blockDim.x + threadIdx.x", "blockDim.x + treadIdx.x"),
    "no_such_kernel": _changed("    scale_kernel<<<", "    skale_kernel<<<"),
    "no_such_member": _changed("x.numel()", "x.number_of_elements()"),
    "no_semicolon": _changed("int n = x.numel();", "int n = x.numel()"),
    "wrong_type": _changed("auto y = torch::empty_like(x);", "float* y = torch::empty_like(x);"),
    "too_few_arguments": _changed(", (float)factor, n);", ", (float)factor);"),
    "no_such_header": _changed("__global__ void", '#include "my_kernels.cuh"\n__global__ void'),
    "too_much_shared": _changed(
        "    int i =",
        "    __shared__ float tile[1 << 16]; tile[n] = factor; __syncthreads(); factor += tile[0];\n    int i =",
    ),
    "not_defined": _changed("torch::Tensor scale(", "torch::Tensor rescale("),
}
