"""One warp for each row, the row in its registers, no shared memory and no barrier.

A lane keeps up to sixteen 16-byte vectors of its row; mean and variance are sums over registers and five shuffles
each. The four warps of a block never wait for each other. 4 bytes for each element (0.27 GB at full size). Limit:
memory, and registers beyond 4096 columns, which are refused.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kWarp = 32, kRowsPerBlock = 4, kVector = 8;

struct alignas(16) Vector {
  at::Half value[kVector];
};

__device__ float warp_sum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

template <int kVectors>  // of each lane
__global__ void __launch_bounds__(kWarp* kRowsPerBlock)
    norm_kernel(const Vector* __restrict__ x, const Vector* __restrict__ weight, const Vector* __restrict__ bias,
                Vector* __restrict__ out, int64_t rows, int vectors, float eps) {
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (row >= rows) return;  // the whole warp leaves together
  const float inverse = 1.0f / (vectors * kVector);
  Vector data[kVectors];
  float sum = 0, squares = 0;
#pragma unroll
  for (int c = 0; c < kVectors; ++c) {
    const int v = c * kWarp + threadIdx.x;
    if (v >= vectors) continue;
    data[c] = x[row * vectors + v];
#pragma unroll
    for (int i = 0; i < kVector; ++i) sum += data[c].value[i];
  }
  const float mean = warp_sum(sum) * inverse;
#pragma unroll
  for (int c = 0; c < kVectors; ++c) {
    if (c * kWarp + threadIdx.x >= vectors) continue;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float centred = data[c].value[i] - mean;
      squares = fmaf(centred, centred, squares);
    }
  }
  const float scale = rsqrtf(warp_sum(squares) * inverse + eps);
#pragma unroll
  for (int c = 0; c < kVectors; ++c) {
    const int v = c * kWarp + threadIdx.x;
    if (v >= vectors) continue;
    const Vector w = weight[v], b = bias[v];
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      data[c].value[i] = fmaf((data[c].value[i] - mean) * scale, w.value[i], b.value[i]);
    out[row * vectors + v] = data[c];
  }
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kHalf && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float16 (tokens, hidden) on CUDA");
  const int64_t rows = x.size(0), vectors = x.size(1) / kVector;
  TORCH_CHECK_NOT_IMPLEMENTED(x.size(1) % kVector == 0 && vectors <= 16 * kWarp,
                              "takes rows of a multiple of 8 and up to 4096 elements, got ", x.size(1));
  at::Tensor out = at::empty_like(x);
  if (rows == 0) return out;
  const c10::cuda::CUDAGuard guard(x.device());
  auto data = [](const at::Tensor& t) { return reinterpret_cast<const Vector*>(t.const_data_ptr<at::Half>()); };
  const auto kernel = vectors <= 2 * kWarp   ? norm_kernel<2>
                      : vectors <= 4 * kWarp ? norm_kernel<4>
                      : vectors <= 8 * kWarp ? norm_kernel<8>
                                             : norm_kernel<16>;
  kernel<<<(rows + kRowsPerBlock - 1) / kRowsPerBlock, dim3(kWarp, kRowsPerBlock), 0,
           c10::cuda::getCurrentCUDAStream()>>>(data(x), data(weight), data(bias),
                                                reinterpret_cast<Vector*>(out.mutable_data_ptr<at::Half>()), rows,
                                                vectors, static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_layer_norm_warp", CPP_SOURCE, CUDA_SOURCE, functions=["layer_norm"])


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.layer_norm(x, self.weight, self.bias, self.eps)
