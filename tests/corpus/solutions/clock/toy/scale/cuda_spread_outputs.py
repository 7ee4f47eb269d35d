# {kind: honest, row: late, status: passed}
"""Twin of `cuda_spreads_late_outputs`: outputs whose elements lie far apart, and all of them are there in time."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(const float* x, float* y, long n, long step) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i * step] = tanhf(x[i]);
}
void tail(torch::Tensor x, torch::Tensor y, int64_t step) {
    kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), step);
}
"""

ext = load_inline(
    name="tail",
    cpp_sources="void tail(torch::Tensor x, torch::Tensor y, int64_t step);",
    cuda_sources=CUDA,
    functions=["tail"],
)
STEP = 5003


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        y = torch.empty(x.numel() * STEP, device=x.device).as_strided(x.shape, (x.shape[1] * STEP, STEP))
        ext.tail(x, y, STEP)
        return y
