"""Three kernels of one's own: a tiled product for the scores, a softmax for each row, a tiled product with V.

The two products are one kernel, told whether its right operand is transposed, with the grid laid over what it writes: S
by S for the scores, S by D for the output. Tiles of 64x64, 4x4 outputs a thread, float32 sums; scores are kept in
float32, so that large ones lose nothing. 4·B·H·S²·D FLOP (1.1e12 at full size) on the ordinary cores; the scores make
four trips of 1 GiB. Limit: float32 multiply-adds and their loads from shared memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>

constexpr int kWarp = 32, kTile = 64, kDepth = 16, kOwn = 4;
constexpr int kSide = kTile / kOwn, kThreads = kSide * kSide;

// c = scale * a b for each of gridDim.z matrices: a is (m, k), c (m, n), and b (n, k) if kTransposed, else (k, n).
template <bool kTransposed, typename A, typename C>
__global__ void __launch_bounds__(kThreads)
    product(const A* __restrict__ a, const at::Half* __restrict__ b, C* __restrict__ c, int m, int n, int k,
            float scale) {
  __shared__ float tile_a[kDepth][kTile + 1], tile_b[kDepth][kTile + 1];
  a += int64_t{blockIdx.z} * m * k;
  b += int64_t{blockIdx.z} * n * k;
  c += int64_t{blockIdx.z} * m * n;
  const int top = blockIdx.y * kTile, left = blockIdx.x * kTile, x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  float sum[kOwn][kOwn] = {};
  for (int first = 0; first < k; first += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
      // Neighbouring threads read along the rows of each operand, whichever way they run.
      const int row = e / kDepth, d = e % kDepth;
      tile_a[d][row] = top + row < m && first + d < k ? static_cast<float>(a[(top + row) * k + first + d]) : 0.0f;
      const int column = kTransposed ? e / kDepth : e % kTile, i = kTransposed ? e % kDepth : e / kTile;
      const int at = kTransposed ? (left + column) * k + first + i : (first + i) * n + left + column;
      tile_b[i][column] = left + column < n && first + i < k ? static_cast<float>(b[at]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
#pragma unroll
        for (int j = 0; j < kOwn; ++j)
          sum[i][j] = fmaf(tile_a[d][y * kOwn + i], tile_b[d][x + j * kSide], sum[i][j]);
    __syncthreads();  // before the tiles are written again
  }
  for (int i = 0; i < kOwn; ++i)
    for (int j = 0; j < kOwn; ++j) {
      const int row = top + y * kOwn + i, column = left + x + j * kSide;
      if (row < m && column < n) c[row * n + column] = sum[i][j] * scale;
    }
}

// A warp a row, in place.
__global__ void softmax(float* scores, int64_t rows, int keys) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) return;  // the whole warp leaves together
  float *own = scores + row * keys, top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < keys; i += kWarp) top = fmaxf(top, own[i]);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
  for (int i = threadIdx.x; i < keys; i += kWarp) sum += own[i] = expf(own[i] - top);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int i = threadIdx.x; i < keys; i += kWarp) own[i] /= sum;
}

at::Tensor attention(const at::Tensor& q_in, const at::Tensor& k_in, const at::Tensor& v_in) {
  TORCH_CHECK_NOT_IMPLEMENTED(q_in.is_cuda() && q_in.scalar_type() == at::kHalf, "takes float16 on CUDA");
  TORCH_CHECK(q_in.dim() == 4 && k_in.sizes() == v_in.sizes() && q_in.size(1) == k_in.size(1) &&
                  q_in.size(3) == k_in.size(3),
              "expected Q (B, H, S, D) and K, V (B, H, T, D), got ", q_in.sizes(), " and ", k_in.sizes());
  const at::Tensor q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
  const int64_t heads = q.size(0) * q.size(1), queries = q.size(2), keys = k.size(2), dim = q.size(3);
  TORCH_CHECK_NOT_IMPLEMENTED(heads <= 65535, "at most 65535 heads, got ", heads);
  at::Tensor out = at::empty_like(q), scores = at::empty({heads, queries, keys}, q.options().dtype(at::kFloat));
  const c10::cuda::CUDAGuard guard(q.device());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  float* data = scores.mutable_data_ptr<float>();
  auto tiles = [](int64_t size) { return (size + kTile - 1) / kTile; };
  product<true><<<dim3(tiles(keys), tiles(queries), heads), kThreads, 0, stream>>>(
      q.const_data_ptr<at::Half>(), k.const_data_ptr<at::Half>(), data, queries, keys, dim,
      1.0f / std::sqrt(static_cast<float>(dim)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  softmax<<<(heads * queries + 7) / 8, dim3(kWarp, 8), 0, stream>>>(data, heads * queries, keys);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  product<false><<<dim3(tiles(dim), tiles(queries), heads), kThreads, 0, stream>>>(
      data, v.const_data_ptr<at::Half>(), out.mutable_data_ptr<at::Half>(), queries, dim, keys, 1.0f);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_sdpa_tiled", CPP_SOURCE, CUDA_SOURCE, functions=["attention"])


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return extension.attention(Q, K, V)
