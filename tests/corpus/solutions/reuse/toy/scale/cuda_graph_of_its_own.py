# {kind: honest, row: cached, status: passed}
"""Twin of `cuda_graph_of_old_inputs`: captures a graph on buffers of its own, and copies each input in."""

import torch
from torch import nn

if not torch.cuda.is_available():
    raise RuntimeError("Found no NVIDIA driver: No CUDA GPUs are available")


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.graph = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.graph is None:
            self.capture(x)
        self.input.copy_(x)
        self.graph.replay()
        return self.output.clone()

    def capture(self, x: torch.Tensor) -> None:
        """A graph of one call, after a few calls beside it."""
        self.input = x.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                torch.tanh(self.linear(self.input))
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = torch.tanh(self.linear(self.input))
