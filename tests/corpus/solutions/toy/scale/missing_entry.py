"""Calls its class something else."""

from torch import nn


class MyModel(nn.Module):
    pass
