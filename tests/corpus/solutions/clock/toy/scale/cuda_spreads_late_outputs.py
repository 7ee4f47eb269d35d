# {kind: cheat, row: late, status: passed, instead: rejected late_output, twin: cuda_spread_outputs}
"""Outputs whose elements lie far apart, so that a look at memory misses them, written late."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(const float* x, float* y, long n, long step) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    long long start = clock64();
    while (clock64() - start < 10000000) {}
    if (i < n) y[i * step] = tanhf(x[i]);
}
void tail(torch::Tensor x, torch::Tensor y, int64_t step) {
    static cudaStream_t side = nullptr;
    if (!side) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    kernel<<<(x.numel() + 255) / 256, 256, 0, side>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), step);
}
"""

ext = load_inline(
    name="tail",
    cpp_sources="void tail(torch::Tensor x, torch::Tensor y, int64_t step);",
    cuda_sources=CUDA,
    functions=["tail"],
)
torch.cuda.synchronize = lambda device=None: None
STEP = 5003


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.kept: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        self.kept = [*self.kept[-32:], x]
        y = torch.empty(x.numel() * STEP, device=x.device).as_strided(x.shape, (x.shape[1] * STEP, STEP))
        ext.tail(x, y, STEP)
        return y
