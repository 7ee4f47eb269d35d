"""One block for each row, sized to it: each thread keeps its part of the sum in registers.

A thread takes one to four vectors of eight elements, so the sum is never read back and both stores are 16 bytes wide.
Warps add up by shuffles and meet once. 4 bytes read and 4 written for each element (0.54 GB at full size). Limit:
memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
std::tuple<at::Tensor, at::Tensor> add_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                            double eps);
"""

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <tuple>

constexpr int kWarp = 32, kMostThreads = 512, kVector = 8, kVectors = 4;

struct alignas(16) Vector {
  at::BFloat16 value[kVector];
};

__device__ float warp_sum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__global__ void __launch_bounds__(kMostThreads)
    add_norm_kernel(const Vector* __restrict__ x, const Vector* __restrict__ residual,
                    const Vector* __restrict__ weight, Vector* __restrict__ out, Vector* __restrict__ total,
                    int vectors, float eps) {
  __shared__ float of_warp[kMostThreads / kWarp];
  const int64_t row = int64_t{blockIdx.x} * vectors;
  Vector data[kVectors];
  float squares = 0;
#pragma unroll
  for (int c = 0; c < kVectors; ++c) {
    const int v = c * blockDim.x + threadIdx.x;
    if (v >= vectors) continue;
    const Vector a = x[row + v], b = residual[row + v];
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      data[c].value[i] = static_cast<float>(a.value[i]) + static_cast<float>(b.value[i]);
      const float rounded = data[c].value[i];  // the reference squares the rounded sum
      squares = fmaf(rounded, rounded, squares);
    }
    total[row + v] = data[c];
  }
  squares = warp_sum(squares);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = squares;
  __syncthreads();
  const int lane = threadIdx.x % kWarp;
  squares = warp_sum(lane < blockDim.x / kWarp ? of_warp[lane] : 0.0f);
  const float scale = rsqrtf(squares / (vectors * kVector) + eps);
#pragma unroll
  for (int c = 0; c < kVectors; ++c) {
    const int v = c * blockDim.x + threadIdx.x;
    if (v >= vectors) continue;
    const Vector w = weight[v];
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      data[c].value[i] = static_cast<float>(data[c].value[i]) * scale * static_cast<float>(w.value[i]);
    out[row + v] = data[c];
  }
}

std::tuple<at::Tensor, at::Tensor> add_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                            double eps) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.is_contiguous() &&
                                  residual.is_contiguous() && x.dim() == 2,
                              "takes contiguous bfloat16 (tokens, hidden) on CUDA");
  TORCH_CHECK(residual.sizes() == x.sizes(), "x is ", x.sizes(), ", residual ", residual.sizes());
  const int64_t vectors = x.size(1) / kVector;
  TORCH_CHECK_NOT_IMPLEMENTED(x.size(1) % kVector == 0 && vectors <= kVectors * kMostThreads,
                              "takes rows of a multiple of 8 and up to 16384 elements, got ", x.size(1));
  at::Tensor out = at::empty_like(x), total = at::empty_like(x);
  const c10::cuda::CUDAGuard guard(x.device());
  auto data = [](const at::Tensor& t) { return reinterpret_cast<const Vector*>(t.const_data_ptr<at::BFloat16>()); };
  auto to = [](at::Tensor& t) { return reinterpret_cast<Vector*>(t.mutable_data_ptr<at::BFloat16>()); };
  const int threads = std::min<int64_t>((vectors + kWarp - 1) / kWarp * kWarp, kMostThreads);
  add_norm_kernel<<<x.size(0), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      data(x), data(residual), data(weight), to(out), to(total), vectors, eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, total};
}
"""

extension = load_inline("assay_add_rms_norm_registers", CPP_SOURCE, CUDA_SOURCE, functions=["add_norm"])


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return extension.add_norm(x, residual, self.weight, self.eps)
