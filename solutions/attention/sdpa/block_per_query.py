"""One block for each query, warps over the keys: the plain design, with no reuse between queries.

Each block keeps its query and its S weights in shared memory. A warp takes a key at a time and splits the head
dimension over its lanes; shuffles give the row's maximum and sum; then each thread sums four columns of V.
4·B·H·S²·D FLOP on the ordinary cores (1.1e12 at full size), and every block reads its head's whole K and V: B·H·S
times 4·S·D bytes, 1.1e12, from L2. Limit: those L2 reads; blocks of several queries would divide them.
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

#include <cmath>
#include <limits>

constexpr int kWarp = 32, kThreads = 256, kWarps = kThreads / kWarp;

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// All lanes of the warp get the combined value.
template <typename Op>
__device__ float warp_reduce(float value, Op op) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

// All threads of the block get the combined value.
template <typename Op>
__device__ float block_reduce(float value, Op op) {
  __shared__ float partial[kWarps];
  value = warp_reduce(value, op);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = partial[0];
  for (int w = 1; w < kWarps; ++w) value = op(value, partial[w]);
  __syncthreads();  // the next reduction writes `partial` again
  return value;
}

__global__ void __launch_bounds__(kThreads) attend(const __half* __restrict__ q, const __half* __restrict__ k,
                                                   const __half* __restrict__ v, __half* __restrict__ out, int queries,
                                                   int keys, int dim, float scale) {
  extern __shared__ float shared[];
  float *query = shared, *weight = shared + dim;
  const int64_t head = blockIdx.x / queries;  // neighbouring blocks share a head, so its K and V stay in L2
  const __half *head_k = k + head * keys * dim, *head_v = v + head * keys * dim, *row = q + int64_t{blockIdx.x} * dim;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;

  for (int d = threadIdx.x; d < dim; d += kThreads) query[d] = __half2float(row[d]) * scale;
  __syncthreads();

  // Lanes over the head dimension rather than a key a thread: a warp then reads whole lines of K.
  for (int key = warp; key < keys; key += kWarps) {
    const __half* key_row = head_k + int64_t{key} * dim;
    float dot = 0;
    for (int d = lane * 8; d < dim; d += kWarp * 8) {
      const uint4 packed = *reinterpret_cast<const uint4*>(key_row + d);  // one 16-byte load
      const __half2* pairs = reinterpret_cast<const __half2*>(&packed);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(pairs[i]);
        dot = fmaf(pair.x, query[d + 2 * i], fmaf(pair.y, query[d + 2 * i + 1], dot));
      }
    }
    dot = warp_reduce(dot, Sum());
    if (lane == 0) weight[key] = dot;
  }
  __syncthreads();

  float top = -INFINITY, sum = 0;
  for (int key = threadIdx.x; key < keys; key += kThreads) top = fmaxf(top, weight[key]);
  top = block_reduce(top, Larger());
  for (int key = threadIdx.x; key < keys; key += kThreads) sum += weight[key] = expf(weight[key] - top);
  const float inverse = 1.0f / block_reduce(sum, Sum());  // its barriers also publish the weights

  for (int d = threadIdx.x * 4; d < dim; d += kThreads * 4) {
    float acc[4] = {0, 0, 0, 0};
    for (int key = 0; key < keys; ++key) {
      const uint2 packed = *reinterpret_cast<const uint2*>(head_v + int64_t{key} * dim + d);
      const __half2* pairs = reinterpret_cast<const __half2*>(&packed);
      const float2 low = __half22float2(pairs[0]), high = __half22float2(pairs[1]);
      const float w = weight[key];
      acc[0] = fmaf(w, low.x, acc[0]);
      acc[1] = fmaf(w, low.y, acc[1]);
      acc[2] = fmaf(w, high.x, acc[2]);
      acc[3] = fmaf(w, high.y, acc[3]);
    }
    __half* target = out + int64_t{blockIdx.x} * dim + d;
#pragma unroll
    for (int i = 0; i < 4; ++i) target[i] = __float2half(acc[i] * inverse);
  }
}

at::Tensor attention(const at::Tensor& q_in, const at::Tensor& k_in, const at::Tensor& v_in) {
  TORCH_CHECK_NOT_IMPLEMENTED(q_in.is_cuda() && k_in.is_cuda() && v_in.is_cuda(), "block_per_query runs on CUDA only");
  TORCH_CHECK_NOT_IMPLEMENTED(
      q_in.scalar_type() == at::kHalf && k_in.scalar_type() == at::kHalf && v_in.scalar_type() == at::kHalf,
      "block_per_query takes float16 only");
  TORCH_CHECK(q_in.dim() == 4 && k_in.dim() == 4 && k_in.sizes() == v_in.sizes() && q_in.size(0) == k_in.size(0) &&
                  q_in.size(1) == k_in.size(1) && q_in.size(3) == k_in.size(3),
              "expected Q (B, H, S, D) and K, V (B, H, T, D), got ", q_in.sizes(), ", ", k_in.sizes(), " and ",
              v_in.sizes());
  const at::Tensor q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
  const int64_t queries = q.size(2), keys = k.size(2), dim = q.size(3), blocks = q.size(0) * q.size(1) * queries;
  const int64_t shared_bytes = (dim + keys) * static_cast<int64_t>(sizeof(float));
  TORCH_CHECK_NOT_IMPLEMENTED(dim % 8 == 0, "block_per_query loads eight halves at a time; head dimension ", dim,
                              " is no multiple of 8");
  TORCH_CHECK_NOT_IMPLEMENTED(shared_bytes <= 47 * 1024,
                              "block_per_query keeps a query and its scores in 47 KiB of shared memory; ", dim, " + ",
                              keys, " floats do not fit");
  TORCH_CHECK_NOT_IMPLEMENTED(blocks <= std::numeric_limits<int>::max(), "too many queries for one grid: ", blocks);
  at::Tensor out = at::empty_like(q);
  if (out.numel() == 0) return out;
  const c10::cuda::CUDAGuard guard(q.device());
  auto halves = [](const at::Tensor& t) { return reinterpret_cast<const __half*>(t.const_data_ptr<at::Half>()); };
  attend<<<blocks, kThreads, shared_bytes, c10::cuda::getCurrentCUDAStream()>>>(
      halves(q), halves(k), halves(v), reinterpret_cast<__half*>(out.mutable_data_ptr<at::Half>()), queries, keys, dim,
      1.0f / std::sqrt(static_cast<float>(dim)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="assay_sdpa_block_per_query",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["attention"],
)


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return extension.attention(Q, K, V)
