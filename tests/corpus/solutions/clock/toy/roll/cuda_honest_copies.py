# {kind: honest, row: untimed, status: passed}
"""Twin of the copies ahead of the clock: two copies, on the current stream."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>

torch::Tensor roll(torch::Tensor x) {
    torch::Tensor out = torch::empty_like(x);
    char* from = (char*)x.data_ptr();
    char* to = (char*)out.data_ptr();
    size_t row = x.size(1) * 4, all = x.numel() * 4;
    cudaMemcpyAsync(to + row, from, all - row, cudaMemcpyDeviceToDevice, 0);
    cudaMemcpyAsync(to, from + all - row, row, cudaMemcpyDeviceToDevice, 0);
    return out;
}
"""

ext = load_inline(
    name="roll",
    cpp_sources="torch::Tensor roll(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["roll"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.roll(x)
