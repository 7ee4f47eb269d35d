"""Keys and values staged in shared memory once for all query heads of a group; eight scores at a time.

A block takes 128 queries of a group and goes through tiles of 64 keys, widened to float32 as they are staged; threads
read them four at a time, all the same ones. Scores of eight keys are made side by side, in independent chains, and the
running sum is rescaled once for all eight. 4·B·H·S²·D FLOP (6.9e10 at full size). Limit: float32 multiply-adds; tensor
cores stay idle.
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

#include <cmath>

constexpr int kThreads = 128, kDim = 64, kTile = 64, kChunk = 8, kVector = 8;

struct alignas(16) Vector {
  at::BFloat16 value[kVector];
};

// Rows from `first` on as float32; zeros from row `end` on.
__device__ void stage(const at::BFloat16* rows, int first, int end, float (*tile)[kDim]) {
  for (int e = threadIdx.x * kVector; e < kTile * kDim; e += kThreads * kVector) {
    Vector data = {};
    if (first + e / kDim < end) data = *reinterpret_cast<const Vector*>(rows + int64_t{first} * kDim + e);
#pragma unroll
    for (int i = 0; i < kVector; ++i) tile[e / kDim][e % kDim + i] = data.value[i];
  }
}

// The query heads of a group stand side by side, so a group's queries are `queries` rows without a gap.
__global__ void __launch_bounds__(kThreads)
    attend(const at::BFloat16* __restrict__ q, const at::BFloat16* __restrict__ k, const at::BFloat16* __restrict__ v,
           at::BFloat16* __restrict__ out, int queries, int keys, float scale) {
  __shared__ __align__(16) float tile_k[kTile][kDim];
  __shared__ __align__(16) float tile_v[kTile][kDim];
  const int own = blockIdx.x * kThreads + threadIdx.x;
  // A thread without a query goes along with the last one's, for the barriers, and writes nothing.
  const int64_t row = int64_t{blockIdx.y} * queries + min(own, queries - 1);
  const at::BFloat16 *head_k = k + int64_t{blockIdx.y} * keys * kDim, *head_v = v + int64_t{blockIdx.y} * keys * kDim;
  float query[kDim], sum[kDim] = {}, top = -INFINITY, total = 0;
#pragma unroll
  for (int d = 0; d < kDim; ++d) query[d] = q[row * kDim + d] * scale;
  for (int first = 0; first < keys; first += kTile) {
    __syncthreads();  // all are done with the last tile
    stage(head_k, first, keys, tile_k);
    stage(head_v, first, keys, tile_v);
    __syncthreads();
    for (int chunk = 0; chunk < min(kTile, keys - first); chunk += kChunk) {
      float score[kChunk] = {};
#pragma unroll
      for (int d = 0; d < kDim; d += 4)
#pragma unroll
        for (int c = 0; c < kChunk; ++c) {
          const float4 key = *reinterpret_cast<const float4*>(&tile_k[chunk + c][d]);
          score[c] = fmaf(query[d], key.x, score[c]);
          score[c] = fmaf(query[d + 1], key.y, score[c]);
          score[c] = fmaf(query[d + 2], key.z, score[c]);
          score[c] = fmaf(query[d + 3], key.w, score[c]);
        }
      float larger = top;
#pragma unroll
      for (int c = 0; c < kChunk; ++c) {
        if (first + chunk + c >= keys) score[c] = -INFINITY;
        larger = fmaxf(larger, score[c]);
      }
      const float shrink = expf(top - larger);
      top = larger;
      total *= shrink;
#pragma unroll
      for (int c = 0; c < kChunk; ++c) total += score[c] = expf(score[c] - top);
#pragma unroll
      for (int d = 0; d < kDim; d += 4) {
        float4 part = make_float4(sum[d] * shrink, sum[d + 1] * shrink, sum[d + 2] * shrink, sum[d + 3] * shrink);
#pragma unroll
        for (int c = 0; c < kChunk; ++c) {
          const float4 value = *reinterpret_cast<const float4*>(&tile_v[chunk + c][d]);
          part.x = fmaf(score[c], value.x, part.x);
          part.y = fmaf(score[c], value.y, part.y);
          part.z = fmaf(score[c], value.z, part.z);
          part.w = fmaf(score[c], value.w, part.w);
        }
        sum[d] = part.x;
        sum[d + 1] = part.y;
        sum[d + 2] = part.z;
        sum[d + 3] = part.w;
      }
    }
  }
  if (own >= queries) return;
#pragma unroll
  for (int d = 0; d < kDim; d += kVector) {
    Vector result;
#pragma unroll
    for (int i = 0; i < kVector; ++i) result.value[i] = sum[d + i] / total;
    *reinterpret_cast<Vector*>(out + row * kDim + d) = result;
  }
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      q.is_cuda() && q.scalar_type() == at::kBFloat16 && q.is_contiguous() && k.is_contiguous() && v.is_contiguous(),
      "takes contiguous bfloat16 on CUDA");
  TORCH_CHECK(q.dim() == 4 && k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(1) % k.size(1) == 0,
              "expected Q (B, G * H, S, D) and K, V (B, H, T, D), got ", q.sizes(), " and ", k.sizes());
  TORCH_CHECK_NOT_IMPLEMENTED(q.size(3) == kDim && k.size(0) * k.size(1) <= 65535, "takes a head dimension of 64, got ",
                              q.size(3));
  at::Tensor out = at::empty_like(q);
  const c10::cuda::CUDAGuard guard(q.device());
  const int64_t groups = k.size(0) * k.size(1), queries = q.numel() / kDim / groups;
  attend<<<dim3((queries + kThreads - 1) / kThreads, groups), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      q.const_data_ptr<at::BFloat16>(), k.const_data_ptr<at::BFloat16>(), v.const_data_ptr<at::BFloat16>(),
      out.mutable_data_ptr<at::BFloat16>(), queries, k.size(2), 1.0f / std::sqrt(static_cast<float>(kDim)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_gqa_tiles", CPP_SOURCE, CUDA_SOURCE, functions=["attention"])


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return extension.attention(Q, K, V)
