# {kind: honest, row: clock, status: passed}
"""Twin of `cuda_watches_its_inputs`: the same kernel on the stream that waits for the inputs."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(const float* x, const float* weight, const float* bias, float* y, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    float sum = bias[i % columns];
    for (int k = 0; k < columns; k++) sum += x[i / columns * columns + k] * weight[i % columns * columns + k];
    y[i] = tanhf(sum);
}
torch::Tensor model(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    torch::Tensor y = torch::empty_like(x);
    kernel<<<(x.numel() + 255) / 256, 256>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), x.size(0),
        x.size(1));
    return y;
}
"""

ext = load_inline(
    name="model",
    cpp_sources="torch::Tensor model(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=CUDA,
    functions=["model"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.model(x, self.linear.weight, self.linear.bias)
