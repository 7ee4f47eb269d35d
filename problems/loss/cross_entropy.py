"""Cross-entropy of each sample, in float32: a reduction over classes and the target's logit."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VARIANTS = {
    "small": {"samples": 64, "classes": 1000},
    "medium": {"samples": 512, "classes": 16384},
    "ragged": {"samples": 61, "classes": 1003},
}

samples = 4096
classes = 16384
spread = 2.0


class Model(nn.Module):
    """log(sum(exp(logits))) - logits[target], one loss a sample."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """logits: (samples, classes); target: (samples,), int64; returns (samples,)."""
        return F.cross_entropy(logits, target, reduction="none")


def get_inputs() -> list[torch.Tensor]:
    return [spread * torch.randn(samples, classes), torch.randint(classes, (samples,))]


def get_init_inputs() -> list[object]:
    return []
