"""Library product, then bias and GELU in one kernel, in place.

Eager's product adds the bias itself but needs a second pass for GELU, as here; what is saved is the second tensor.
The product is 2 * tokens * in * out FLOP (6.9e10 at full size), the kernel reads and writes 2 bytes for each output
(67 MB). Limit: the product; the extra pass is what an epilogue would save.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "void bias_gelu_(const at::Tensor& y, const at::Tensor& bias);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ float gelu(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

__global__ void bias_gelu_kernel(at::Half* y, const at::Half* bias, int64_t n, int features) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) y[i] = gelu(static_cast<float>(y[i]) + static_cast<float>(bias[i % features]));
}

void bias_gelu_(const at::Tensor& y, const at::Tensor& bias) {
  TORCH_CHECK_NOT_IMPLEMENTED(y.is_cuda() && y.scalar_type() == at::kHalf && y.is_contiguous(),
                              "takes contiguous float16 on CUDA");
  TORCH_CHECK(y.size(-1) == bias.numel(), "expected a bias for each feature");
  bias_gelu_kernel<<<(y.numel() + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      y.mutable_data_ptr<at::Half>(), bias.const_data_ptr<at::Half>(), y.numel(), bias.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline("assay_gemm_gelu_library", CPP_SOURCE, CUDA_SOURCE, functions=["bias_gelu_"])


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.mm(x, self.linear.weight.t())
        extension.bias_gelu_(y, self.linear.bias)
        return y
