# {kind: fault, row: load, status: load_error, reason: missing_entry, twin: honest}
"""Calls its class something else."""

from torch import nn


class MyModel(nn.Module):
    pass
