# {kind: fault, row: load, status: load_error, reason: "exception:ModuleNotFoundError", twin: honest}
"""Imports a module whose name cannot be written down: \ud800."""

import importlib

from torch import nn

nothing = importlib.import_module("\ud800")


class ModelNew(nn.Module):
    pass
