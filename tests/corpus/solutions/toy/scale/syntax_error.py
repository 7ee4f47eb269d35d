"""Not Python."""

class ModelNew(nn.Module:
    pass
