"""Where a command has candidates evaluated."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from harness.errors import UsageError
from harness.execution.workplace import Workplace


def workplace(executor: str, address: str) -> AbstractContextManager[Workplace | None]:
    """The machines that `--executor` and `--address` name; None is this one. Raises UsageError."""
    if executor == "local":
        if address:
            raise UsageError("--address goes with --executor ray")
        return nullcontext()
    try:
        from harness.cluster.cluster import Cluster
    except ModuleNotFoundError as error:
        raise UsageError(f"--executor ray needs {error.name}: pip install 'kernel-assay[cluster]'") from error
    return Cluster(address or "auto")
