"""PyTorch's own ways to run a reference, as far as they can be tried without a card."""

import contextlib
import types

import pytest
import torch

from harness.catalog.baselines import CAPTIONS, CAPTURED
from harness.runner.baselines import Graphs, as_baseline


@pytest.fixture
def captures(monkeypatch):
    """A card on which a graph runs when it is captured, and never again; yields what each capture was asked for."""
    asked = []

    @contextlib.contextmanager
    def graph(_, **options):
        asked.append(options)
        yield

    stream = types.SimpleNamespace(wait_stream=lambda _: None)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: types.SimpleNamespace(replay=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph", graph)
    return asked


def test_graphs_share_one_memory_and_hand_out_copies(captures):
    graphs = Graphs(torch.nn.ReLU())
    given = torch.randn(3, 8)
    outputs = [[graphs(row) for row in given] for _ in range(4)]
    # One for each place.
    assert len(captures) == 3
    assert len({id(options["pool"]) for options in captures}) == 1
    assert len({output.data_ptr() for burst in outputs for output in burst}) == 12
    assert all(torch.equal(torch.stack(burst), given.relu()) for burst in outputs)


def test_those_that_are_captured_are_known_by_name():
    assert set(CAPTIONS) > CAPTURED


def test_a_graph_needs_a_card():
    with pytest.raises(NotImplementedError):
        as_baseline(torch.nn.ReLU(), "cuda-graph", torch.device("cpu"))
