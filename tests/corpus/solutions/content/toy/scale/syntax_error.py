# {kind: fault, row: load, status: load_error, reason: syntax_error, twin: honest}
"""Not Python."""

class ModelNew(nn.Module:
    pass
