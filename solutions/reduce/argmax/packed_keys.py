"""Value and position packed into one 64-bit number whose maximum is the answer.

A float's bits, with the negative ones turned over, sort as integers do; below them stands the position, inverted, so
that of equal values the first is the largest key. One integer maximum then does the work of two comparisons, in
registers and shuffles alone. 4 * rows * columns bytes by 16-byte loads (0.54 GB at full size). Limit: memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor argmax(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kWarp = 32, kThreads = 256;
using Key = unsigned long long;

__device__ Key key(float value, unsigned at) {
  const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes +0, which it equals
  const unsigned order = isnan(value) ? 0xffffffffu : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return Key{order} << 32 | (0xffffffffu - at);
}

__device__ Key warp_max(Key value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value = max(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

__global__ void __launch_bounds__(kThreads)
    argmax_kernel(const float* __restrict__ x, int64_t* __restrict__ out, int columns) {
  __shared__ Key of_warp[kThreads / kWarp];
  const float* row = x + int64_t{blockIdx.x} * columns;
  Key best = 0;
  if (columns % 4 == 0) {
    for (int c = 4 * threadIdx.x; c < columns; c += 4 * kThreads) {
      const float4 value = *reinterpret_cast<const float4*>(row + c);
      best = max(best, max(max(key(value.x, c), key(value.y, c + 1)), max(key(value.z, c + 2), key(value.w, c + 3))));
    }
  } else {
    for (int c = threadIdx.x; c < columns; c += kThreads) best = max(best, key(row[c], c));
  }
  best = warp_max(best);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  best = warp_max(threadIdx.x < kThreads / kWarp ? of_warp[threadIdx.x] : 0);
  if (threadIdx.x == 0) out[blockIdx.x] = 0xffffffffu - static_cast<unsigned>(best);
}

at::Tensor argmax(const at::Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float32 (rows, columns) on CUDA");
  TORCH_CHECK(x.size(1) > 0, "an empty row has no largest value");
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({x.size(0)}, x.options().dtype(at::kLong));
  argmax_kernel<<<x.size(0), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<int64_t>(), x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_argmax_keys", CPP_SOURCE, CUDA_SOURCE, functions=["argmax"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.argmax(x)
