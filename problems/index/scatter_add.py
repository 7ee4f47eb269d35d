"""Rows added up by index, in float32, as messages along a graph's edges are summed at its nodes."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"edges": 2048, "nodes": 256, "features": 32},
    "medium": {"edges": 65536, "nodes": 4096, "features": 64},
    "ragged": {"edges": 2039, "nodes": 257, "features": 31},
}

edges = 524288
nodes = 32768
features = 128


class Model(nn.Module):
    """out[n] is the sum of messages[e] over the edges e with target[e] = n."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.nodes = nodes

    def forward(self, messages: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """messages: (edges, features); target: (edges,), int64; returns (nodes, features)."""
        return messages.new_zeros(self.nodes, messages.size(1)).index_add(0, target, messages)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(edges, features), torch.randint(nodes, (edges,))]


def get_init_inputs() -> list[object]:
    return [nodes]
