"""A call to be watched: a forward made of a function, and inputs for it."""

import torch
import torch.nn as nn

from harness.roofline.work import Estimate, Observer


class Call(nn.Module):
    """A forward as a function of inputs and named parameters."""

    def __init__(self, function, **parameters):
        super().__init__()
        self.function = function
        for name, value in parameters.items():
            setattr(self, name, nn.Parameter(value))

    def forward(self, *inputs):
        return self.function(*inputs, **dict(self.named_parameters()))


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def watched(model, *inputs) -> Estimate:
    """What an observer says of `model(*inputs)`."""
    with torch.no_grad(), Observer(inputs) as seen:
        outputs = model(*inputs)
    return seen.estimate(outputs)
