"""How long sums are is known of a card's own operators, too, which no CPU runs."""

import pytest
import torch

from harness.oracle.lengths import Longest

X = torch.rand(8, 16, 5, 5)


@pytest.mark.parametrize("name", ["native_batch_norm", "cudnn_batch_norm", "_batch_norm_with_update"])
def test_a_batch_norm_adds_up_each_channel(name):
    longest = Longest()
    longest.meet(f"aten::{name}", (X, torch.ones(16), torch.zeros(16), None, None, True, 0.1, 1e-5), {})
    assert longest.any == 8 * 5 * 5
    assert "centred" in longest.kinds
    assert longest.lift > 1


def test_an_rms_norm_adds_up_each_row():
    longest = Longest()
    longest.meet("aten::_fused_rms_norm", (X, [5, 5], None, 1e-6), {})
    assert longest.any == 25
