# {kind: fault, row: hang, status: timeout, reason: call, twin: honest}
"""A kernel that never ends."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(float* x, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) x[i] = tanhf(x[i]);
    // A tanh never reaches 2, and only the device's memory could tell the compiler so.
    while (((volatile float*)x)[0] < 2.0f) {}
}
torch::Tensor tail(torch::Tensor x) {
    kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
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
