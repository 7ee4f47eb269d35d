"""Eight elements of a position a thread, over several batch entries: the position stays in registers.

A thread keeps eight elements of one position's embedding and adds them to the tokens that stand there in each
sequence, by 16-byte loads and stores. 2 bytes gathered and 2 written for each element (0.27 GB at full size). Limit:
memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor embed(const at::Tensor& ids, const at::Tensor& table, const at::Tensor& positions);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 128, kVector = 8, kEntries = 8;  // batch entries of a thread

struct alignas(16) Vector {
  at::Half value[kVector];
};

// `vectors` is the number of vectors in an embedding.
__global__ void __launch_bounds__(kThreads)
    embed_kernel(const int64_t* __restrict__ ids, const Vector* __restrict__ table,
                 const Vector* __restrict__ positions, Vector* __restrict__ out, int batch, int sequence, int vectors) {
  const int at = blockIdx.x * kThreads + threadIdx.x;  // position * vectors + vector
  if (at >= sequence * vectors) return;
  const int position = at / vectors, v = at % vectors;
  const Vector own = positions[at];
  const int begin = blockIdx.y * kEntries, end = min(begin + kEntries, batch);
  for (int entry = begin; entry < end; ++entry) {
    const int64_t token = int64_t{entry} * sequence + position;
    Vector data = table[ids[token] * vectors + v];
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      data.value[i] = static_cast<float>(data.value[i]) + static_cast<float>(own.value[i]);
    out[token * vectors + v] = data;
  }
}

at::Tensor embed(const at::Tensor& ids, const at::Tensor& table, const at::Tensor& positions) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      table.is_cuda() && table.scalar_type() == at::kHalf && table.is_contiguous() && ids.is_contiguous(),
      "takes a contiguous float16 table on CUDA");
  TORCH_CHECK(ids.dim() == 2 && positions.dim() == 2 && ids.size(1) == positions.size(0) &&
                  positions.size(1) == table.size(1),
              "expected ids (batch, sequence) and positions (sequence, hidden), got ", ids.sizes(), " and ",
              positions.sizes());
  const int64_t batch = ids.size(0), sequence = ids.size(1), vectors = table.size(1) / kVector;
  TORCH_CHECK_NOT_IMPLEMENTED(table.size(1) % kVector == 0, "hidden must be a multiple of 8, got ", table.size(1));
  at::Tensor out = at::empty({batch, sequence, table.size(1)}, table.options());
  const c10::cuda::CUDAGuard guard(table.device());
  const dim3 grid((sequence * vectors + kThreads - 1) / kThreads, (batch + kEntries - 1) / kEntries);
  auto data = [](const at::Tensor& t) { return reinterpret_cast<const Vector*>(t.const_data_ptr<at::Half>()); };
  embed_kernel<<<grid, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      ids.const_data_ptr<int64_t>(), data(table), data(positions),
      reinterpret_cast<Vector*>(out.mutable_data_ptr<at::Half>()), batch, sequence, vectors);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_embedding_positions", CPP_SOURCE, CUDA_SOURCE, functions=["embed"])


class ModelNew(nn.Module):
    def __init__(self, vocabulary: int, sequence_length: int, hidden: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Parameter(torch.empty(sequence_length, hidden))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return extension.embed(ids, self.tokens.weight, self.positions)
