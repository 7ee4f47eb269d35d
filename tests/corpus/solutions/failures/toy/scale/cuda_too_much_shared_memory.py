# {kind: fault, row: device, status: incorrect, twin: honest}
"""Asks for a megabyte of shared memory, and checks nothing."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(float* x, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) x[i] = tanhf(x[i]);
}

torch::Tensor tail(torch::Tensor x) {
    kernel<<<(x.numel() + 255) / 256, 256, 1 << 20>>>(x.data_ptr<float>(), x.numel());
    return x;
}
"""

ext = load_inline(
    name="tail", cpp_sources="torch::Tensor tail(torch::Tensor x);", cuda_sources=CUDA, functions=["tail"]
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tail(self.linear(x))
