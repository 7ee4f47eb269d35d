"""KernelBench's rule for a right answer, beside ours and without a say in it: one tolerance, in each of five calls.

As in its `run_and_check_correctness` since the tolerance goes by precision (2025); versions 0 and 0.1 had 1e-2 for
float32, too.
"""

from __future__ import annotations

from typing import Any

import torch

TRIALS = 5
# Both absolute and relative. It knows no other precision.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
# Elements compared together: temporaries are a few times as large.
AT_ONCE = 1 << 24


def applies(native: Any, precision: torch.dtype) -> bool:
    """Whether the rule says anything: it takes an output to be one tensor."""
    return isinstance(native, torch.Tensor) and precision in TOLERANCES


def close(native: torch.Tensor, output: Any, precision: torch.dtype) -> bool:
    """Whether the rule takes a candidate's output for the reference's, `native`.

    Of what it would raise at, another dtype for example, it says that it is wrong.
    """
    if not isinstance(output, torch.Tensor) or output.shape != native.shape or output.dtype != native.dtype:
        return False
    tolerance = TOLERANCES[precision]
    expected, given = native.reshape(-1), output.reshape(-1)
    try:
        return all(
            torch.allclose(one, other, atol=tolerance, rtol=tolerance)
            for one, other in zip(expected.split(AT_ONCE), given.split(AT_ONCE), strict=True)
        )
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return False
