"""A reference whose products err by as much as adding up may lose: what honest errors come to at the end."""

from __future__ import annotations

from typing import Any

import torch

from harness.oracle import rule
from harness.oracle.formats import FLOAT32
from harness.oracle.lengths import terms_of
from harness.oracle.modes import Mode


class AddedUp(Mode):
    """Within it, each element of a float32 product has an error of its own (rule.apart). `met`: there was a product."""

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        terms = terms_of(func._schema.name, args)
        if not terms or not isinstance(result, torch.Tensor) or result.dtype is not torch.float32 or not result.numel():
            return result
        self.met = True
        spread, mean = torch.std_mean(result, correction=0)
        size = float(torch.hypot(spread, mean))
        lost = rule.apart(terms, FLOAT32.roundoff * size, size, float(spread))
        # Not of PyTorch's own generators: the reference may draw, too.
        generator = torch.Generator(result.device).manual_seed(terms)
        return result + lost * torch.empty_like(result).normal_(generator=generator)
