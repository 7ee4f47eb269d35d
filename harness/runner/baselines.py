"""In the runner: a reference made into one of PyTorch's own baselines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from harness.errors import door
from harness.wire import values


@door
def as_baseline(model: nn.Module, baseline: str, device: torch.device) -> Callable[..., Any]:
    """What to call for `baseline` (see catalog.baselines); NotImplementedError where the device has no such way."""
    if baseline in ("", "eager"):
        return model
    if baseline == "compile":
        return torch.compile(model)
    if baseline == "compile-max-autotune":
        # Without graphs: a graph's outputs are overwritten by the next call, and copying them out would be timed.
        return torch.compile(model, mode="max-autotune-no-cudagraphs")
    if device.type != "cuda":
        raise NotImplementedError(f"the baseline '{baseline}' needs a CUDA device")
    if baseline == "cuda-graph":
        return Graphs(model)
    if baseline == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        return model
    raise ValueError(f"no baseline '{baseline}'")


class Graphs:
    """A CUDA graph for each set of inputs that it meets, told apart by where they lie.

    The judge puts a call's inputs at the same place in each burst, so there are as many graphs as calls in a burst.
    They run one after the other and share one memory: each has but its output to itself, of which callers get copies.
    """

    WARM_UP_CALLS = 3

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._captured: dict[tuple[int, ...], tuple[torch.cuda.CUDAGraph, Any]] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()

    @door
    def __call__(self, *inputs: Any) -> Any:
        """Replay the graph for these inputs, captured on first sight."""
        key = tuple(tensor.data_ptr() for tensor in values.tensors(inputs))
        if key not in self._captured:
            self._captured[key] = self._capture(inputs)
        graph, output = self._captured[key]
        graph.replay()
        return values.mapped(output, torch.clone)

    @door
    def _capture(self, inputs: tuple[Any, ...]) -> tuple[torch.cuda.CUDAGraph, Any]:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(self.WARM_UP_CALLS):
                self._model(*inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            output = self._model(*inputs)
        return graph, output
