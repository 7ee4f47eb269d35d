"""A reference with some functions taken for simpler ones: all of them, or those of one line of its source alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harness.oracle.modes import Mode

# No lines of these are a reference's own.
_TORCH, _OURS = (str(Path(module).parent) + "/" for module in (torch.__file__, Path(__file__).parents[1]))

Call = Callable[[], Any]


class Simpler(Mode):
    """Within it such functions are others, only those called `at` a line if one is given; `met` tells whether any was.

    A kind of them says in `of` what an operator is taken for.
    """

    def __init__(self, at: str = "") -> None:
        super().__init__()
        self.met = False
        self._at = at

    def of(self, func: Any, args: Any, kwargs: Any) -> Call | None:
        """What to call in place of an operator; None where that stays."""
        raise NotImplementedError

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        simpler = self.of(func, args, kwargs)
        if simpler is None or self._at not in ("", line()):
            return func(*args, **kwargs)
        self.met = True
        return simpler()


class Lines(Mode):
    """Notes in `found` at which lines functions are called that some kinds of `Simpler` would take for others."""

    def __init__(self, kinds: dict[str, type[Simpler]]) -> None:
        super().__init__()
        self._kinds = {name: kind() for name, kind in kinds.items()}
        # In the order in which they are met.
        self.found: dict[str, dict[str, None]] = {name: {} for name in kinds}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for name, kind in self._kinds.items():
            if kind.of(func, args, kwargs) is not None:
                self.found[name].setdefault(line())
        return func(*args, **kwargs)


def line() -> str:
    """Of the code that is under way, the innermost line that is neither PyTorch's nor ours: `problem.py:12`."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_TORCH, _OURS)):
        frame = frame.f_back  # type: ignore[assignment]
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
