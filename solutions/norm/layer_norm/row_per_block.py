"""One block for each row, three sweeps over it: mean, variance, result.

The mean comes first, so the variance is a sum of squared differences and loses no digits where the mean is large. 4
bytes for each element from and to memory (0.27 GB at full size), 4 more from cache. Limit: latency of the sweeps.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;

// The sum over all threads, for all threads to use.
__device__ float block_sum(float value) {
  __shared__ float part[kThreads];
  part[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  __syncthreads();
  const float total = part[0];
  __syncthreads();  // before the next sum writes `part` again
  return total;
}

__global__ void norm_kernel(const at::Half* x, const at::Half* weight, const at::Half* bias, at::Half* out, int hidden,
                            float eps) {
  const int64_t row = int64_t{blockIdx.x} * hidden;
  float sum = 0, squares = 0;
  for (int h = threadIdx.x; h < hidden; h += kThreads) sum += x[row + h];
  const float mean = block_sum(sum) / hidden;
  for (int h = threadIdx.x; h < hidden; h += kThreads) {
    const float centred = x[row + h] - mean;
    squares += centred * centred;
  }
  const float scale = rsqrtf(block_sum(squares) / hidden + eps);
  for (int h = threadIdx.x; h < hidden; h += kThreads)
    out[row + h] = (x[row + h] - mean) * scale * static_cast<float>(weight[h]) + static_cast<float>(bias[h]);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kHalf && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float16 (tokens, hidden) on CUDA");
  at::Tensor out = at::empty_like(x);
  norm_kernel<<<x.size(0), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<at::Half>(), weight.const_data_ptr<at::Half>(), bias.const_data_ptr<at::Half>(),
      out.mutable_data_ptr<at::Half>(), x.size(1), eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_layer_norm_plain", CPP_SOURCE, CUDA_SOURCE, functions=["layer_norm"])


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.layer_norm(x, self.weight, self.bias, self.eps)
