"""One block for each row: threads stride over it, then add up through shared memory.

Reads 4 * rows * columns bytes once (0.54 GB at full size). With 64 rows only 64 of an H200's 132 multiprocessors have
anything to do, so what limits it is how much a single one can load.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor row_sum(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 512;

__global__ void sum_kernel(const float* x, float* out, int64_t columns) {
  __shared__ float part[kThreads];
  const float* row = x + blockIdx.x * columns;
  float sum = 0;
  for (int64_t c = threadIdx.x; c < columns; c += kThreads) sum += row[c];
  part[threadIdx.x] = sum;
  // Halve the number of parts until one is left; every step waits for the one before it.
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

at::Tensor row_sum(const at::Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float32 (rows, columns) on CUDA");
  at::Tensor out = at::empty({x.size(0)}, x.options());
  sum_kernel<<<x.size(0), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_row_sum_plain", CPP_SOURCE, CUDA_SOURCE, functions=["row_sum"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.row_sum(x)
