"""One thread for each output: nine multiply-adds, the neighbours from cache.

8 bytes for each pixel from and to memory (0.21 GB at full size), nine loads from cache. Limit: the number of load
instructions, not the bytes.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor depthwise(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void conv_kernel(const float* x, const float* weight, const float* bias, float* out, int channels,
                            int height, int width) {
  const int pixel = blockIdx.y * blockDim.x + threadIdx.x, row = pixel / width, column = pixel % width;
  if (row >= height) return;
  const int channel = blockIdx.x % channels;  // blockIdx.x counts images and channels
  const float* plane = x + int64_t{blockIdx.x} * height * width;
  float sum = bias[channel];
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j) {
      const int r = row + i, c = column + j;
      if (r >= 0 && r < height && c >= 0 && c < width)
        sum += plane[r * width + c] * weight[channel * 9 + (i + 1) * 3 + j + 1];
    }
  out[int64_t{blockIdx.x} * height * width + pixel] = sum;
}

at::Tensor depthwise(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 4,
                              "takes contiguous float32 (batch, channels, height, width) on CUDA");
  TORCH_CHECK(weight.numel() == 9 * x.size(1) && bias.numel() == x.size(1), "expected a 3x3 filter for each channel");
  at::Tensor out = at::empty_like(x);
  const int64_t pixels = x.size(2) * x.size(3);
  const dim3 grid(x.size(0) * x.size(1), (pixels + 255) / 256);
  conv_kernel<<<grid, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), weight.const_data_ptr<float>(), bias.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), x.size(1), x.size(2), x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_depthwise_plain", CPP_SOURCE, CUDA_SOURCE, functions=["depthwise"])


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.depthwise(x, self.conv.weight, self.conv.bias)
