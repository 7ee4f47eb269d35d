"""What one problem's code may leave behind in a judge: switches, replaced functions, memory. The next problem must not
meet any of it."""

from __future__ import annotations

import builtins
import gc
import itertools
import math
import os
import random
import signal
import sys
import threading
from types import ModuleType
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from harness.catalog import modules
from harness.machine import procfs

# Of the host's memory, since allocators keep some of what was freed.
KEPT_BYTES = 1 << 30
# Where a problem may put a function of its own in place of another.
NAMESPACES: tuple[ModuleType | type, ...] = (
    builtins,
    math,
    random,
    torch,
    torch.nn.functional,
    torch.Tensor,
    torch.nn.Module,
    torch.linalg,
)
NOTHING = object()


class Footprint:
    """The state of a process before any problem was opened in it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._switches = _switches()
        self._names = [(where, dict(vars(where))) for where in (*NAMESPACES, *_layers())]
        self._rss_bytes = procfs.rss_bytes(os.getpid())
        self._tensors = _tensors()

    def changed(self) -> str:
        """The first thing that differs now, in words; empty where the next problem can be opened.

        Modules of problem files are forgotten, and what only they held is freed.
        """
        modules.forget()
        gc.collect()
        for name, value in _switches().items():
            if value != self._switches[name]:
                return name
        for where, names in self._names:
            if name := _replaced(where, names):
                return f"{where.__name__}.{name}"
        return self._held()

    def _held(self) -> str:
        if self._device.type == "cuda":
            # cuBLAS keeps its workspaces in torch's own memory.
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
            held = torch.cuda.memory_allocated(self._device)
            return f"{held} bytes of the card's memory" if held else ""
        if (kept := _tensors() - self._tensors) > 0:
            return f"{kept} tensor{'s' if kept > 1 else ''}"
        more = procfs.rss_bytes(os.getpid()) - self._rss_bytes
        return f"{more} bytes of memory" if more > KEPT_BYTES else ""


def _tensors() -> int:
    """How many this process holds."""
    return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())


def _replaced(where: ModuleType | type, before: dict[str, Any]) -> str:
    """A name that means something else than before. A new one does where it hides a base class's."""
    now = vars(where)
    bases = where.__mro__[1:] if isinstance(where, type) else ()
    hiding = (name for name in now.keys() - before.keys() if any(callable(vars(base).get(name)) for base in bases))
    other = (name for name, value in before.items() if now.get(name, NOTHING) is not value)
    return next(itertools.chain(other, hiding), "")


def _layers() -> list[type]:
    """PyTorch's own layers, whose methods a problem may replace."""
    return [value for value in vars(torch.nn).values() if isinstance(value, type)]


def _switches() -> dict[str, Any]:
    """What torch, Python and the system have one of in each process."""
    matmul, cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cuda, torch.backends.cudnn
    return {
        "os.environ": dict(os.environ),
        "the current folder": os.getcwd(),
        "sys.path": list(sys.path),
        "sys.meta_path": list(sys.meta_path),
        "sys.getrecursionlimit()": sys.getrecursionlimit(),
        "the number of threads": threading.active_count(),
        "signal handlers": [signal.getsignal(number) for number in signal.valid_signals()],
        "torch.get_default_dtype()": torch.get_default_dtype(),
        "torch.get_default_device()": torch.get_default_device(),
        "torch.is_grad_enabled()": torch.is_grad_enabled(),
        "torch.is_anomaly_enabled()": torch.is_anomaly_enabled(),
        "torch.get_num_threads()": torch.get_num_threads(),
        "torch.set_flush_denormal": bool(torch.tensor(1e-40).add(0) == 0),
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
        "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision(),
        "torch.is_autocast_enabled()": [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")],
        "torch.backends.cudnn": [
            getattr(cudnn, name) for name in ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
        ],
        "torch.backends.cuda.matmul": [
            getattr(matmul, name)
            for name in (
                "allow_tf32",
                "allow_fp16_reduced_precision_reduction",
                "allow_bf16_reduced_precision_reduction",
            )
        ],
        "torch.backends.cuda": [
            ask()
            for ask in (
                cuda.flash_sdp_enabled,
                cuda.mem_efficient_sdp_enabled,
                cuda.math_sdp_enabled,
                cuda.cudnn_sdp_enabled,
                cuda.fp16_bf16_reduction_math_sdp_allowed,
            )
        ],
        "torch.backends.mkldnn.enabled": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
        "modes of torch": [*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack()],
        "hooks of all modules": [
            len(value) for name, value in vars(torch.nn.modules.module).items() if name.startswith("_global_") and value
        ],
    }
