"""Who waits to have the device alone does not wait for more than one piece of the oracle's work."""

import torch
from torch import nn

from harness.machine.pauses import pause, pausing
from harness.oracle import slices
from harness.oracle.oracle import Oracle


def test_each_run_and_each_slice_is_a_piece(monkeypatch):
    monkeypatch.setitem(slices.SLICE, "cpu", 1 << 10)
    oracle, pieces = Oracle(nn.Linear(64, 64)), []

    def begun(work):
        pieces.clear()
        with pausing(lambda: pieces.append(work)):
            work()
        return len(pieces)

    inputs = [torch.randn(64, 64)]
    assert begun(lambda: list(slices.tiles(torch.empty(64, 64)))) == 4
    assert begun(lambda: list(slices.blocks((64, 64), 1 << 10))) == 4
    assert begun(lambda: oracle.glance(inputs)) == 1
    assert begun(lambda: oracle.expect(inputs)) > 20
    expected = oracle.expect(inputs)
    assert begun(lambda: oracle.check(expected, expected.native)) > 4
    # Outside nobody is told.
    before = len(pieces)
    pause()
    assert len(pieces) == before
