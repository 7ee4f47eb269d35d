# {kind: honest, row: build, status: passed}
"""Compiles at import for the GPU that it has asked about, which the build has not got at first."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

MAJOR, MINOR = torch.cuda.get_device_capability()
CUDA = """
__global__ void kernel(float* x, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) x[i] = tanhf(x[i]);
}
torch::Tensor tail(torch::Tensor x) {
    kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
    return x;
}
"""

ext = load_inline(
    name="tail",
    cpp_sources="torch::Tensor tail(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["tail"],
    extra_cuda_cflags=[f"-DCAPABILITY={MAJOR}{MINOR}"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tail(self.linear(x))
