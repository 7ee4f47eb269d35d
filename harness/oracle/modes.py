"""What the oracle's torch modes have in common."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    """A mode whose operations are never compiled."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asked by torch; yes would load all of torch's compiler, seconds, with the first operation."""
        return False
