"""Square tiles of 16 through shared memory, one output a thread and one batch entry a layer of the grid.

Halves are widened when they are staged, and summed in float32. 2 * batch * rows * inner * columns FLOP (6.9e10 at full
size) on the ordinary cores. Limit: two loads from shared memory for each multiply-add; tensor cores stay idle.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor bmm(const at::Tensor& a, const at::Tensor& b);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kTile = 16;

// (m, k) by (k, n) for each entry of the batch.
__global__ void bmm_kernel(const at::Half* a, const at::Half* b, at::Half* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int64_t entry = blockIdx.z;
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < k; first += kTile) {
    const int across = first + threadIdx.x, down = first + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < m && across < k ? float{a[(entry * m + row) * k + across]} : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = down < k && column < n ? float{b[(entry * k + down) * n + column]} : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();  // before the tiles are written again
  }
  if (row < m && column < n) c[(entry * m + row) * n + column] = sum;
}

at::Tensor bmm(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK_NOT_IMPLEMENTED(a.is_cuda() && a.scalar_type() == at::kHalf && a.is_contiguous() && b.is_contiguous(),
                              "takes contiguous float16 on CUDA");
  TORCH_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), "cannot multiply ",
              a.sizes(), " by ", b.sizes());
  TORCH_CHECK_NOT_IMPLEMENTED(a.size(0) <= 65535, "at most 65535 batch entries, got ", a.size(0));
  const int batch = a.size(0), m = a.size(1), n = b.size(2), k = a.size(2);
  at::Tensor c = at::empty({batch, m, n}, a.options());
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile, batch), block(kTile, kTile);
  bmm_kernel<<<grid, block, 0, c10::cuda::getCurrentCUDAStream()>>>(
      a.const_data_ptr<at::Half>(), b.const_data_ptr<at::Half>(), c.mutable_data_ptr<at::Half>(), m, n, k);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}
"""

extension = load_inline("assay_bmm_tile", CPP_SOURCE, CUDA_SOURCE, functions=["bmm"])


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return extension.bmm(a, b)
