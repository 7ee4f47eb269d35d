"""One block for each row: add and write the sum, then normalise it in a second sweep.

The sum is rounded to bfloat16 before it is squared, as the reference does. 4 bytes read and 4 written for each element,
and the sum read back from cache (0.54 GB at full size). Limit: memory, with loads of two bytes a thread.
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
#include <c10/cuda/CUDAStream.h>

#include <tuple>

constexpr int kThreads = 256, kWarp = 32;

__device__ float block_sum(float value) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % kWarp == 0) atomicAdd(&total, value);
  __syncthreads();
  return total;
}

__global__ void add_norm_kernel(const at::BFloat16* x, const at::BFloat16* residual, const at::BFloat16* weight,
                                at::BFloat16* out, at::BFloat16* total, int hidden, float eps) {
  const int64_t row = int64_t{blockIdx.x} * hidden;
  float squares = 0;
  for (int h = threadIdx.x; h < hidden; h += kThreads) {
    const at::BFloat16 rounded = static_cast<float>(x[row + h]) + static_cast<float>(residual[row + h]);
    total[row + h] = rounded;
    const float value = rounded;
    squares += value * value;
  }
  const float scale = rsqrtf(block_sum(squares) / hidden + eps);
  // A thread reads back only what it wrote itself.
  for (int h = threadIdx.x; h < hidden; h += kThreads)
    out[row + h] = static_cast<float>(total[row + h]) * scale * static_cast<float>(weight[h]);
}

std::tuple<at::Tensor, at::Tensor> add_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                                            double eps) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.is_contiguous() &&
                                  residual.is_contiguous() && x.dim() == 2,
                              "takes contiguous bfloat16 (tokens, hidden) on CUDA");
  TORCH_CHECK(residual.sizes() == x.sizes(), "x is ", x.sizes(), ", residual ", residual.sizes());
  at::Tensor out = at::empty_like(x), total = at::empty_like(x);
  add_norm_kernel<<<x.size(0), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<at::BFloat16>(), residual.const_data_ptr<at::BFloat16>(), weight.const_data_ptr<at::BFloat16>(),
      out.mutable_data_ptr<at::BFloat16>(), total.mutable_data_ptr<at::BFloat16>(), x.size(1), eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, total};
}
"""

extension = load_inline("assay_add_rms_norm_plain", CPP_SOURCE, CUDA_SOURCE, functions=["add_norm"])


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return extension.add_norm(x, residual, self.weight, self.eps)
