"""One block for each row: find the largest, strike it out, k times over.

The row is copied to shared memory once; each round is a maximum over it. 4 bytes for each element from memory (0.27 GB
at full size), k times as many from shared memory. Limit: k rounds of reduction with their barriers.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "std::tuple<at::Tensor, at::Tensor> top_k(const at::Tensor& x, int64_t k);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <tuple>

constexpr int kThreads = 256;

// PyTorch counts NaN as larger than any number.
__device__ float rank(float value) { return isnan(value) ? INFINITY : value; }

__global__ void top_k_kernel(const float* x, float* values, int64_t* indices, int columns, int k) {
  extern __shared__ float row[];
  __shared__ int best[kThreads];  // positions; -1 for none
  for (int c = threadIdx.x; c < columns; c += kThreads) row[c] = rank(x[int64_t{blockIdx.x} * columns + c]);
  __shared__ int taken[64];
  auto larger = [&](int a, int b) { return a < 0 || (b >= 0 && row[b] > row[a]) ? b : a; };
  for (int round = 0; round < k; ++round) {
    __syncthreads();
    int mine = -1;
    for (int c = threadIdx.x; c < columns; c += kThreads) {
      bool free = row[c] != -INFINITY;  // what is struck out holds -inf, and so may a number of the row
      if (!free) {
        free = true;
        for (int r = 0; r < round; ++r) free = free && taken[r] != c;
      }
      if (free) mine = larger(mine, c);
    }
    best[threadIdx.x] = mine;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) best[threadIdx.x] = larger(best[threadIdx.x], best[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) {
      const int64_t to = int64_t{blockIdx.x} * k + round;
      values[to] = x[int64_t{blockIdx.x} * columns + best[0]];
      indices[to] = taken[round] = best[0];
      row[best[0]] = -INFINITY;
    }
  }
}

std::tuple<at::Tensor, at::Tensor> top_k(const at::Tensor& x, int64_t k) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float32 (rows, columns) on CUDA");
  TORCH_CHECK(k >= 0 && k <= x.size(1), "cannot take ", k, " of ", x.size(1));
  TORCH_CHECK_NOT_IMPLEMENTED(k <= 64 && x.size(1) <= 11 * 1024, "takes k up to 64 and 11264 columns, got ", k, " of ",
                              x.size(1));
  at::Tensor values = at::empty({x.size(0), k}, x.options());
  at::Tensor indices = at::empty({x.size(0), k}, x.options().dtype(at::kLong));
  top_k_kernel<<<x.size(0), kThreads, x.size(1) * sizeof(float), c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), values.mutable_data_ptr<float>(), indices.mutable_data_ptr<int64_t>(), x.size(1), k);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {values, indices};
}
"""

extension = load_inline("assay_top_k_repeated", CPP_SOURCE, CUDA_SOURCE, functions=["top_k"])


class ModelNew(nn.Module):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return extension.top_k(x, self.k)
