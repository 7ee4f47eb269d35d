"""Eight pairs a thread; cosine and sine stay in registers while the thread goes through several heads.

A thread owns eight neighbouring pairs of one position and loads their angles once, then turns them for a stride of
heads by 16-byte loads and stores. 8 bytes for each pair (0.54 GB at full size). Limit: memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 128, kVector = 8, kHeadsPerThread = 4;

struct alignas(16) Vector {
  at::Half value[kVector];
};

// `vectors` is the number of vectors in half a head dimension; `plane` that of one head's positions.
__global__ void __launch_bounds__(kThreads)
    rotate_kernel(const Vector* __restrict__ x, const Vector* __restrict__ cos, const Vector* __restrict__ sin,
                  Vector* __restrict__ out, int64_t heads, int vectors, int plane) {
  const int at = blockIdx.x * kThreads + threadIdx.x;  // position * vectors + vector
  if (at >= plane) return;
  const Vector c = cos[at], s = sin[at];
  const int64_t begin = int64_t{blockIdx.y} * kHeadsPerThread, end = min(begin + kHeadsPerThread, heads);
  for (int64_t head = begin; head < end; ++head) {
    const int64_t first = head * 2 * plane + 2 * (at / vectors) * vectors + at % vectors;
    const Vector a = x[first], b = x[first + vectors];
    Vector low, high;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float p = a.value[i], q = b.value[i], cosine = c.value[i], sine = s.value[i];
      low.value[i] = p * cosine - q * sine;
      high.value[i] = q * cosine + p * sine;
    }
    out[first] = low;
    out[first + vectors] = high;
  }
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kHalf && x.is_contiguous() &&
                                  cos.is_contiguous() && sin.is_contiguous(),
                              "takes contiguous float16 on CUDA");
  const int64_t half = x.size(-1) / 2, sequence = x.size(-2), heads = x.numel() / (2 * half * sequence);
  TORCH_CHECK(cos.numel() == sequence * half && sin.numel() == sequence * half, "expected cos and sin (", sequence,
              ", ", half, "), got ", cos.sizes(), " and ", sin.sizes());
  TORCH_CHECK_NOT_IMPLEMENTED(x.size(-1) % (2 * kVector) == 0, "the head dimension must be a multiple of 16, got ",
                              x.size(-1));
  TORCH_CHECK_NOT_IMPLEMENTED(heads <= 65535 * kHeadsPerThread, "too many heads for one grid: ", heads);
  at::Tensor out = at::empty_like(x);
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t plane = sequence * half / kVector;
  const dim3 grid((plane + kThreads - 1) / kThreads, (heads + kHeadsPerThread - 1) / kHeadsPerThread);
  auto vectors = [](const at::Tensor& t) { return reinterpret_cast<const Vector*>(t.const_data_ptr<at::Half>()); };
  rotate_kernel<<<grid, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      vectors(x), vectors(cos), vectors(sin), reinterpret_cast<Vector*>(out.mutable_data_ptr<at::Half>()), heads,
      half / kVector, plane);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_rotary_registers", CPP_SOURCE, CUDA_SOURCE, functions=["rotate"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return extension.rotate(x, cos, sin)
