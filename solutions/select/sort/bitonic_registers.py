"""The bitonic network with eight neighbours a thread: most exchanges happen in registers or by shuffles.

Pairs up to 4 apart lie in one thread, up to 128 apart in one warp; only farther ones go through shared memory. Of the
66 steps of a row of 2048, 56 need no barrier. Floats are compared as integers of the same order, so a step is a
minimum and a maximum. 8 bytes for each element (0.27 GB at full size). Limit: the instructions of the network.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor sort_rows(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kWarp = 32, kOwn = 8;

// Integers in the order of the floats, NaN last; and back. Equal to its inverse.
__device__ int turn(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
__device__ int key(float value) { return isnan(value) ? 0x7fffffff : turn(__float_as_int(value)); }
__device__ float value(int key) { return key == 0x7fffffff ? nanf("") : __int_as_float(turn(key)); }

template <int kThreads>  // sorts kThreads * kOwn elements
__global__ void __launch_bounds__(kThreads)
    sort_kernel(const float* __restrict__ x, float* __restrict__ out, int columns) {
  __shared__ int row[kThreads * kOwn];
  const int64_t first = int64_t{blockIdx.x} * columns;
  const int t = threadIdx.x;
  int own[kOwn];  // elements t * kOwn to t * kOwn + 7
  for (int i = t; i < kThreads * kOwn; i += kThreads) row[i] = i < columns ? key(x[first + i]) : 0x7fffffff;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kOwn; ++i) own[i] = row[t * kOwn + i];

  // Keeps the smaller of its own and the partner's where `lower`, else the larger.
  auto keep = [](int& mine, int other, bool lower) { mine = lower ? min(mine, other) : max(mine, other); };
  for (int run = 2; run <= kThreads * kOwn; run *= 2) {
    for (int distance = run / 2; distance >= kOwn; distance /= 2) {
      const int apart = distance / kOwn;  // in threads
      const bool lower = (t & apart) == 0 == ((t * kOwn & run) == 0);
      if (apart < kWarp) {
#pragma unroll
        for (int i = 0; i < kOwn; ++i) keep(own[i], __shfl_xor_sync(0xffffffffu, own[i], apart), lower);
      } else {
        __syncthreads();  // all have read the last exchange
#pragma unroll
        for (int i = 0; i < kOwn; ++i) row[i * kThreads + t] = own[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kOwn; ++i) keep(own[i], row[i * kThreads + (t ^ apart)], lower);
      }
    }
#pragma unroll
    for (int distance = kOwn / 2; distance > 0; distance /= 2) {
      if (distance > run / 2) continue;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        if (i & distance) continue;
        const bool ascending = ((t * kOwn + i) & run) == 0;
        const int a = own[i], b = own[i + distance];
        own[i] = ascending ? min(a, b) : max(a, b);
        own[i + distance] = ascending ? max(a, b) : min(a, b);
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kOwn; ++i) row[t * kOwn + i] = own[i];
  __syncthreads();
  for (int i = t; i < columns; i += kThreads) out[first + i] = value(row[i]);
}

at::Tensor sort_rows(const at::Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2,
                              "takes contiguous float32 (rows, columns) on CUDA");
  const int64_t rows = x.size(0), columns = x.size(1);
  TORCH_CHECK_NOT_IMPLEMENTED(columns <= 4096, "sorts rows of up to 4096, got ", columns);
  at::Tensor out = at::empty_like(x);
  const c10::cuda::CUDAGuard guard(x.device());
  const int threads = columns <= 256 ? 32 : columns <= 1024 ? 128 : columns <= 2048 ? 256 : 512;
  const auto kernel = threads == 32    ? sort_kernel<32>
                      : threads == 128 ? sort_kernel<128>
                      : threads == 256 ? sort_kernel<256>
                                       : sort_kernel<512>;
  kernel<<<rows, threads, 0, c10::cuda::getCurrentCUDAStream()>>>(x.const_data_ptr<float>(),
                                                                  out.mutable_data_ptr<float>(), columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_sort_registers", CPP_SOURCE, CUDA_SOURCE, functions=["sort_rows"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.sort_rows(x)
