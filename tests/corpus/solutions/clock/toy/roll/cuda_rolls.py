# {kind: honest, row: untimed, status: passed}
"""Twin of those that have the copy engines roll: one kernel, four numbers a thread."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <cuda.h>
#include <torch/extension.h>
#include <vector>

__global__ void move(const float4* from, float4* to, long row, long all) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < all) to[i < all - row ? i + row : i - (all - row)] = from[i];
}

static void by_kernel(torch::Tensor x, torch::Tensor out) {
    long all = x.numel() / 4;
    move<<<(all + 255) / 256, 256>>>((const float4*)x.data_ptr(), (float4*)out.data_ptr(), x.size(1) / 4, all);
}

torch::Tensor roll(torch::Tensor x) {
    torch::Tensor out = torch::empty_like(x);
    by_kernel(x, out);
    return out;
}
"""

ext = load_inline(
    name="roll",
    cpp_sources=("torch::Tensor roll(torch::Tensor x);"),
    cuda_sources=CUDA,
    functions=["roll"],
    extra_ldflags=["-lcuda"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.roll(x)
