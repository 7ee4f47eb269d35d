# {kind: fault, row: device, status: runtime_error, reason: misaligned_address, twin: honest}
"""Four floats at a time, from the second on."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(float* x, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (4 * i + 4 < n) {
        float4* at = (float4*)(x + 1) + i;
        float4 v = *at;
        *at = make_float4(tanhf(v.x), tanhf(v.y), tanhf(v.z), tanhf(v.w));
    }
}
torch::Tensor tail(torch::Tensor x) {
    kernel<<<(x.numel() / 4 + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
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
