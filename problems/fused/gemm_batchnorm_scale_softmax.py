"""Linear, BatchNorm1d in training mode, a learned scale, and a softmax over the features, in float32.

The model is used as constructed, in training mode: BatchNorm normalises with the mean and the biased variance of the
batch itself, and updates its running statistics. The output is near 1/out_features everywhere, so no fixed absolute
tolerance can judge it.
"""

import torch
import torch.nn as nn

VARIANTS = {"small": {"batch_size": 512, "in_features": 128, "out_features": 1024}}

batch_size = 1024
in_features = 8192
out_features = 8192
bn_eps = 1e-5
bn_momentum = 0.1
scale_shape = (1,)


class Model(nn.Module):
    """softmax(scale * BatchNorm(x Wᵀ + b)) along the features."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bn_eps: float = 1e-5,
        bn_momentum: float = 0.1,
        scale_shape: tuple[int, ...] = (1,),
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features, eps=bn_eps, momentum=bn_momentum)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_features); returns (batch, out_features), each row summing to one."""
        return self.softmax(self.scale * self.bn(self.linear(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_features)]


def get_init_inputs() -> list[object]:
    return [in_features, out_features, bn_eps, bn_momentum, scale_shape]
