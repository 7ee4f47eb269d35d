"""Tiles of 64 queries and 64 keys on tensor cores, softmax in between, nothing stored but the output.

After FlashAttention (Dao et al., 2022): a block keeps its queries in shared memory and goes through the keys up to the
diagonal; each of four warps makes the scores of 16 queries, turns them into weights against the running maximum, and
adds the weighted values to a float32 sum in shared memory. 2·B·H·S²·D FLOP (1.4e11 at full size), half of the tiles
fall away. Limit: shared memory, through which scores, weights and sums go; registers would hold them, but `wmma` does
not say which lane holds which element.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cmath>

namespace wmma = nvcuda::wmma;

constexpr int kWarp = 32, kTile = 64, kStep = 16, kThreads = 128, kPad = 8, kVector = 8;

template <int kDim>
struct Shared {
  __half q[kTile][kDim + kPad], k[kTile][kDim + kPad], v[kTile][kDim + kPad], weights[kTile][kTile + kPad];
  float scores[kTile][kTile + kPad], sums[kTile][kDim + kPad];
};

// 64 rows from `first` on, zeros from `end` on.
template <int kDim>
__device__ void stage(const __half* rows, int first, int end, __half (*tile)[kDim + kPad]) {
  for (int e = threadIdx.x * kVector; e < kTile * kDim; e += kThreads * kVector) {
    const int row = first + e / kDim;
    uint4 data = make_uint4(0, 0, 0, 0);
    if (row < end) data = *reinterpret_cast<const uint4*>(rows + int64_t{row} * kDim + e % kDim);
    *reinterpret_cast<uint4*>(&tile[e / kDim][e % kDim]) = data;
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads)
    attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
           __half* __restrict__ out, int sequence, float scale) {
  extern __shared__ __align__(128) char raw[];
  Shared<kDim>& shared = *reinterpret_cast<Shared<kDim>*>(raw);
  const int64_t head = int64_t{blockIdx.y} * sequence * kDim;
  const int first_query = (gridDim.x - 1 - blockIdx.x) * kTile;  // those with most keys first
  const int mine = threadIdx.x / kWarp * kStep;                  // the warp's 16 rows of the tile
  // Two lanes a row for the softmax: lane l has row l / 2 and half of the columns.
  const int row = mine + threadIdx.x % kWarp / 2, half = threadIdx.x % 2, query = first_query + row;
  float top = -INFINITY, total = 0;

  stage<kDim>(q + head, first_query, sequence, shared.q);
  for (int d = half * kDim / 2; d < (half + 1) * kDim / 2; ++d) shared.sums[row][d] = 0;
  for (int first = 0; first < min(first_query + kTile, sequence); first += kTile) {
    __syncthreads();  // all warps are done with the last keys and values
    stage<kDim>(k + head, first, sequence, shared.k);
    stage<kDim>(v + head, first, sequence, shared.v);
    __syncthreads();

    for (int column = 0; column < kTile; column += kStep) {
      wmma::fragment<wmma::accumulator, kStep, kStep, kStep, float> score;
      wmma::fill_fragment(score, 0.0f);
#pragma unroll
      for (int d = 0; d < kDim; d += kStep) {
        wmma::fragment<wmma::matrix_a, kStep, kStep, kStep, __half, wmma::row_major> of_q;
        wmma::fragment<wmma::matrix_b, kStep, kStep, kStep, __half, wmma::col_major> of_k;
        wmma::load_matrix_sync(of_q, &shared.q[mine][d], kDim + kPad);
        wmma::load_matrix_sync(of_k, &shared.k[column][d], kDim + kPad);
        wmma::mma_sync(score, of_q, of_k, score);
      }
      wmma::store_matrix_sync(&shared.scores[mine][column], score, kTile + kPad, wmma::mem_row_major);
    }
    __syncwarp();

    float larger = top;
    const int begin = half * kTile / 2, end = begin + kTile / 2;
    for (int c = begin; c < end; ++c)
      if (first + c <= query) larger = fmaxf(larger, shared.scores[row][c] * scale);
    larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 1));  // every query sees the first key: it is finite
    const float shrink = expf(top - larger);
    top = larger;
    float sum = 0;
    for (int c = begin; c < end; ++c) {
      const float weight = first + c <= query ? expf(shared.scores[row][c] * scale - top) : 0.0f;
      sum += weight;
      shared.weights[row][c] = __float2half(weight);
    }
    total = total * shrink + sum + __shfl_xor_sync(0xffffffffu, sum, 1);
    for (int d = half * kDim / 2; d < (half + 1) * kDim / 2; ++d) shared.sums[row][d] *= shrink;
    __syncwarp();

    for (int d = 0; d < kDim; d += kStep) {
      wmma::fragment<wmma::accumulator, kStep, kStep, kStep, float> sums;
      wmma::load_matrix_sync(sums, &shared.sums[mine][d], kDim + kPad, wmma::mem_row_major);
#pragma unroll
      for (int c = 0; c < kTile; c += kStep) {
        wmma::fragment<wmma::matrix_a, kStep, kStep, kStep, __half, wmma::row_major> weights;
        wmma::fragment<wmma::matrix_b, kStep, kStep, kStep, __half, wmma::row_major> values;
        wmma::load_matrix_sync(weights, &shared.weights[mine][c], kTile + kPad);
        wmma::load_matrix_sync(values, &shared.v[c][d], kDim + kPad);
        wmma::mma_sync(sums, weights, values, sums);
      }
      wmma::store_matrix_sync(&shared.sums[mine][d], sums, kDim + kPad, wmma::mem_row_major);
    }
    __syncwarp();
  }
  if (query >= sequence) return;
  for (int d = half * kDim / 2; d < (half + 1) * kDim / 2; ++d)
    out[head + int64_t{query} * kDim + d] = __float2half(shared.sums[row][d] / total);
}

template <int kDim>
void launch(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::Tensor& out) {
  auto halves = [](const at::Tensor& t) { return reinterpret_cast<const __half*>(t.const_data_ptr<at::Half>()); };
  const int64_t heads = q.size(0) * q.size(1), sequence = q.size(2), bytes = sizeof(Shared<kDim>);
  C10_CUDA_CHECK(cudaFuncSetAttribute(attend<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const dim3 grid((sequence + kTile - 1) / kTile, heads);
  attend<kDim><<<grid, kThreads, bytes, c10::cuda::getCurrentCUDAStream()>>>(
      halves(q), halves(k), halves(v), reinterpret_cast<__half*>(out.mutable_data_ptr<at::Half>()), sequence,
      1.0f / std::sqrt(static_cast<float>(kDim)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      q.is_cuda() && q.scalar_type() == at::kHalf && q.is_contiguous() && k.is_contiguous() && v.is_contiguous(),
      "takes contiguous float16 on CUDA");
  TORCH_CHECK(q.dim() == 4 && q.sizes() == k.sizes() && q.sizes() == v.sizes(), "expected Q, K and V of one shape");
  const int64_t dim = q.size(3), heads = q.size(0) * q.size(1);
  TORCH_CHECK_NOT_IMPLEMENTED((dim == 64 || dim == 128) && heads <= 65535,
                              "takes head dimensions of 64 and 128 and up to 65535 heads, got ", dim, " and ", heads);
  at::Tensor out = at::empty_like(q);
  const c10::cuda::CUDAGuard guard(q.device());
  dim == 64 ? launch<64>(q, k, v, out) : launch<128>(q, k, v, out);
  return out;
}
"""

extension = load_inline("assay_causal_flash", CPP_SOURCE, CUDA_SOURCE, functions=["attention"])


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return extension.attention(Q, K, V)
