# {kind: honest, row: cache kept warm, status: passed}
"""Twin of the caches in C++: static workspace, events and stream, every answer computed."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = tanhf(x[i]);
}
torch::Tensor tail(torch::Tensor x) {
    static torch::Tensor workspace;
    if (!workspace.defined() || !workspace.sizes().equals(x.sizes())) workspace = torch::empty_like(x);
    kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), workspace.data_ptr<float>(), x.numel());
    return workspace.clone();
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
