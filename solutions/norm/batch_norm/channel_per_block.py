"""One block for each channel: mean, variance and result in three sweeps over the channel's images.

A channel's pixels lie apart in one stretch per image, so a block walks images and, within one, neighbouring pixels.
4 bytes for each element three times read and once written (0.8 GB at full size). Limit: memory, and 256 channels keep
few of the card's threads busy.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& running_mean, const at::Tensor& running_var, double momentum, double eps);
"""

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 1024;

__device__ float block_sum(float value) {
  __shared__ float part[kThreads];
  part[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  __syncthreads();
  const float total = part[0];
  __syncthreads();  // before the next sum writes `part` again
  return total;
}

__global__ void norm_kernel(const float* x, const float* weight, const float* bias, float* running_mean,
                            float* running_var, float* out, int images, int channels, int pixels, float momentum,
                            float eps) {
  const int channel = blockIdx.x;
  const float count = static_cast<float>(images) * pixels;
  float sum = 0, squares = 0;
  for (int n = 0; n < images; ++n) {
    const float* image = x + (int64_t{n} * channels + channel) * pixels;
    for (int p = threadIdx.x; p < pixels; p += kThreads) sum += image[p];
  }
  const float mean = block_sum(sum) / count;
  for (int n = 0; n < images; ++n) {
    const float* image = x + (int64_t{n} * channels + channel) * pixels;
    for (int p = threadIdx.x; p < pixels; p += kThreads) squares += (image[p] - mean) * (image[p] - mean);
  }
  squares = block_sum(squares);
  const float factor = weight[channel] / sqrtf(squares / count + eps), shift = bias[channel];
  for (int n = 0; n < images; ++n) {
    const int64_t first = (int64_t{n} * channels + channel) * pixels;
    for (int p = threadIdx.x; p < pixels; p += kThreads) out[first + p] = (x[first + p] - mean) * factor + shift;
  }
  if (threadIdx.x == 0) {
    running_mean[channel] += momentum * (mean - running_mean[channel]);
    running_var[channel] += momentum * (squares / (count - 1) - running_var[channel]);  // the unbiased one
  }
}

at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& running_mean, const at::Tensor& running_var, double momentum, double eps) {
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cuda() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 4,
                              "takes contiguous float32 (batch, channels, height, width) on CUDA");
  at::Tensor out = at::empty_like(x);
  norm_kernel<<<x.size(1), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), weight.const_data_ptr<float>(), bias.const_data_ptr<float>(),
      running_mean.mutable_data_ptr<float>(), running_var.mutable_data_ptr<float>(), out.mutable_data_ptr<float>(),
      x.size(0), x.size(1), x.size(2) * x.size(3), momentum, eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline("assay_batch_norm_plain", CPP_SOURCE, CUDA_SOURCE, functions=["batch_norm"])


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.norm
        if not self.training:
            raise NotImplementedError("training mode only")
        norm.num_batches_tracked.add_(1)
        return extension.batch_norm(
            x, norm.weight, norm.bias, norm.running_mean, norm.running_var, norm.momentum, norm.eps
        )
