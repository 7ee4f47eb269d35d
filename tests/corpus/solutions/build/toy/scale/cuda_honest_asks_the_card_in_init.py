# {kind: honest, row: build, status: passed}
"""Compiles inside __init__ for the number of its GPU's multiprocessors, which the build does not know at first."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(float* x, long n) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        x[i] = tanhf(x[i]);
}
torch::Tensor tail(torch::Tensor x) {
    kernel<<<BLOCKS, 256>>>(x.data_ptr<float>(), x.numel());
    return x;
}
"""


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        blocks = torch.cuda.get_device_properties(0).multi_processor_count
        self.ext = load_inline(
            name="tail",
            cpp_sources="torch::Tensor tail(torch::Tensor x);",
            cuda_sources=CUDA,
            functions=["tail"],
            extra_cuda_cflags=[f"-DBLOCKS={blocks}"],
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ext.tail(self.linear(x))
