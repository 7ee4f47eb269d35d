"""One thread for each pair of elements that turn together.

Read two, write two; the angle's cosine and sine come from the cache, since all heads share them. 8 bytes for each pair
(0.54 GB at full size) and 6 FLOP. Limit: memory; eager moves several times as much in its temporaries.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void rotate_kernel(const at::Half* x, const at::Half* cos, const at::Half* sin, at::Half* out,
                              int64_t pairs, int half, int sequence) {
  const int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (p >= pairs) return;
  const int64_t row = p / half, d = p % half, angle = row % sequence * half + d;
  const int64_t first = 2 * row * half + d, second = first + half;
  const float a = x[first], b = x[second], c = cos[angle], s = sin[angle];
  out[first] = a * c - b * s;
  out[second] = b * c + a * s;
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kHalf && x.is_contiguous() &&
                                  cos.is_contiguous() && sin.is_contiguous(),
                              "takes contiguous float16 on CUDA");
  const int half = x.size(-1) / 2, sequence = x.size(-2);
  TORCH_CHECK(cos.numel() == sequence * half && sin.numel() == sequence * half, "expected cos and sin (", sequence,
              ", ", half, "), got ", cos.sizes(), " and ", sin.sizes());
  at::Tensor out = at::empty_like(x);
  const int64_t pairs = x.numel() / 2;
  rotate_kernel<<<(pairs + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<at::Half>(), cos.const_data_ptr<at::Half>(), sin.const_data_ptr<at::Half>(),
      out.mutable_data_ptr<at::Half>(), pairs, half, sequence);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_rotary_plain", CPP_SOURCE, CUDA_SOURCE, functions=["rotate"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return extension.rotate(x, cos, sin)
