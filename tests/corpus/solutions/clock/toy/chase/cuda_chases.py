# {kind: honest, row: cache kept warm, status: passed}
"""Twin of those that keep the table in the cache: one kernel, one thread a row."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void chase(const long long* table, const long long* from, long long* to, int rows, int steps) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    long long place = from[row];
    for (int step = 0; step < steps; step++) place = table[place];
    to[row] = place;
}

torch::Tensor model(torch::Tensor table, torch::Tensor places, int64_t steps) {
    torch::Tensor out = torch::empty_like(places);
    chase<<<places.numel(), 1>>>((const long long*)table.data_ptr(), (const long long*)places.data_ptr(),
                                 (long long*)out.data_ptr(), places.numel(), steps);
    return out;
}
"""

ext = load_inline(
    name="model",
    cpp_sources="torch::Tensor model(torch::Tensor table, torch::Tensor places, int64_t steps);",
    cuda_sources=CUDA,
    functions=["model"],
)


class ModelNew(nn.Module):
    def __init__(self, entries: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.register_buffer("table", torch.randperm(entries))

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return ext.model(self.table, places, self.steps)
