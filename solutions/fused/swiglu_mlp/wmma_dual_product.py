"""Gate and up products in one tensor-core kernel that writes only silu(gate) * up; the last product by the library.

A block makes the same 64x64 tile of both products: each tile of x is staged once and serves two, and the gate is
applied to float32 sums in shared memory. Neither product is ever stored. 6 * tokens * hidden * intermediate FLOP
(7.1e10 at full size), 2 bytes written for each intermediate element instead of 6 moved by a kernel between. Limit:
staging, which waits for memory at every step.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor gated(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

constexpr int kTile = 64, kDepth = 32, kStep = 16, kThreads = 256, kPad = 8;
enum { kX, kGate, kUp };

union alignas(32) Shared {
  __half tiles[3][kTile][kDepth + kPad];
  float results[2][kTile][kTile + kPad];
};

__device__ void stage(const __half* matrix, int top, int rows, int first, int inner, __half (*tile)[kDepth + kPad]) {
  for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
    const int row = top + e / kDepth, at = first + e % kDepth;
    tile[e / kDepth][e % kDepth] = row < rows && at < inner ? matrix[int64_t{row} * inner + at] : __float2half(0.0f);
  }
}

// Warps 0 to 3 make the gate, 4 to 7 the other product, 32x32 each.
__global__ void __launch_bounds__(kThreads)
    gated_kernel(const __half* __restrict__ x, const __half* __restrict__ gate, const __half* __restrict__ up,
                 __half* __restrict__ out, int tokens, int features, int inner) {
  __shared__ Shared shared;
  const int top = blockIdx.y * kTile, left = blockIdx.x * kTile, warp = threadIdx.x / 32, product = warp / 4;
  const int down = warp % 4 / 2 * 32, across = warp % 2 * 32;
  wmma::fragment<wmma::accumulator, kStep, kStep, kStep, float> sum[2][2];
  for (auto& row : sum)
    for (auto& one : row) wmma::fill_fragment(one, 0.0f);
  for (int first = 0; first < inner; first += kDepth) {
    stage(x, top, tokens, first, inner, shared.tiles[kX]);
    stage(gate, left, features, first, inner, shared.tiles[kGate]);
    stage(up, left, features, first, inner, shared.tiles[kUp]);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; d += kStep) {
      wmma::fragment<wmma::matrix_a, kStep, kStep, kStep, __half, wmma::row_major> of_x[2];
      wmma::fragment<wmma::matrix_b, kStep, kStep, kStep, __half, wmma::col_major> of_w[2];
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        wmma::load_matrix_sync(of_x[s], &shared.tiles[kX][down + s * kStep][d], kDepth + kPad);
        wmma::load_matrix_sync(of_w[s], &shared.tiles[kGate + product][across + s * kStep][d], kDepth + kPad);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int s = 0; s < 2; ++s) wmma::mma_sync(sum[r][s], of_x[r], of_w[s], sum[r][s]);
    }
    __syncthreads();  // before the tiles are written again, or the results over them
  }
  for (int r = 0; r < 2; ++r)
    for (int s = 0; s < 2; ++s)
      wmma::store_matrix_sync(&shared.results[product][down + r * kStep][across + s * kStep], sum[r][s], kTile + kPad,
                              wmma::mem_row_major);
  __syncthreads();
  for (int e = threadIdx.x; e < kTile * kTile; e += kThreads) {
    const int token = top + e / kTile, feature = left + e % kTile;
    const float g = shared.results[0][e / kTile][e % kTile], u = shared.results[1][e / kTile][e % kTile];
    if (token < tokens && feature < features)
      out[int64_t{token} * features + feature] = __float2half(g / (1.0f + expf(-g)) * u);
  }
}

at::Tensor gated(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      x.is_cuda() && x.scalar_type() == at::kHalf && x.is_contiguous() && gate.is_contiguous() && up.is_contiguous(),
      "takes contiguous float16 on CUDA");
  TORCH_CHECK(x.dim() == 2 && gate.sizes() == up.sizes() && x.size(1) == gate.size(1), "cannot apply weights ",
              gate.sizes(), " to ", x.sizes());
  const int tokens = x.size(0), features = gate.size(0), inner = x.size(1);
  at::Tensor out = at::empty({tokens, features}, x.options());
  const c10::cuda::CUDAGuard guard(x.device());
  const dim3 grid((features + kTile - 1) / kTile, (tokens + kTile - 1) / kTile);
  auto halves = [](const at::Tensor& t) { return reinterpret_cast<const __half*>(t.const_data_ptr<at::Half>()); };
  gated_kernel<<<grid, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      halves(x), halves(gate), halves(up), reinterpret_cast<__half*>(out.mutable_data_ptr<at::Half>()), tokens,
      features, inner);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_mlp_dual", CPP_SOURCE, CUDA_SOURCE, functions=["gated"])


class ModelNew(nn.Module):
    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(extension.gated(x, self.gate.weight, self.up.weight))
