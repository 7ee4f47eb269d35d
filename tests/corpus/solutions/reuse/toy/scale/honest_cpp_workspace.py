# {kind: honest, row: cached, status: passed}
"""Twin of `cpp_counts_calls`: static state, a workspace and a counter, and every answer computed with OpenMP."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cmath>
torch::Tensor tail(torch::Tensor x) {
    static long calls = 0;
    static torch::Tensor workspace;
    if (++calls == 1) workspace = torch::empty_like(x);
    if (!workspace.sizes().equals(x.sizes())) workspace = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = workspace.data_ptr<float>();
    #pragma omp parallel for
    for (long i = 0; i < x.numel(); ++i) to[i] = std::tanh(from[i]);
    return workspace.clone();
}
"""

ext = load_inline(
    name="tail", cpp_sources=SOURCE, functions=["tail"], extra_cflags=["-O2", "-fopenmp"], extra_ldflags=["-fopenmp"]
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tail(self.linear(x).contiguous().cpu()).to(x.device)
