"""The reference with its product in TF32: a specimen to be rejected unless the run allows TF32.

TF32 keeps 10 of float32's 23 mantissa bits, which makes the product (2·N·I·O FLOP) about 8x faster on tensor cores and
its error about 175x float32's: 5.7e-4 against 3.2e-6, measured on an H200. Fast only because it answers a less exact
question. On a CPU, or a card before Ampere, the switch does nothing and the answer is float32's own.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
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

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            y = F.linear(x, self.linear.weight, self.linear.bias)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed
        return torch.softmax(self.scale * self.bn(y), dim=1)
