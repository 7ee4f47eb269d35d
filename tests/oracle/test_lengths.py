"""How long sums are is known of a card's own operators, too, which no CPU runs."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

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


BAGS = torch.nn.EmbeddingBag(10, 3, mode="sum")
Y, P = torch.rand(6, 7), torch.rand(6, 7)


@pytest.mark.parametrize(
    ("function", "terms"),
    [
        (lambda: F.cross_entropy(X, torch.randint(16, (8, 5, 5))), 8 * 25),
        (lambda: F.cross_entropy(Y, torch.randint(7, (6,))), 7),
        (lambda: F.binary_cross_entropy(Y, P), 42),
        (lambda: F.soft_margin_loss(Y, P), 42),
        (lambda: F.multi_margin_loss(Y, torch.randint(7, (6,))), 42),
        (lambda: F.multilabel_margin_loss(Y, torch.randint(7, (6, 7))), 42),
        (lambda: Y.nansum(1), 7),
        (lambda: torch.std_mean(Y), 42),
        (lambda: F.avg_pool2d(X, (2, 3)), 6),
        (lambda: F.adaptive_avg_pool2d(X, (1, 5)), 5 * 2),
        (lambda: torch.cdist(Y, P), 7),
        (lambda: F.pdist(Y), 7),
        (lambda: torch.zeros(3, 7).index_add(0, torch.tensor([0] * 6), Y), 6),
        (lambda: torch.zeros(3, 7).scatter_add_(0, torch.zeros(6, 7, dtype=torch.long), Y), 6),
        (lambda: BAGS(torch.randint(10, (2, 9))), 18),
        (lambda: torch.zeros(3, 7).scatter_reduce(0, torch.zeros(6, 7, dtype=torch.long), Y, "sum"), 6),
        (lambda: torch.zeros(3, 7).scatter_reduce(0, torch.zeros(6, 7, dtype=torch.long), Y, "amax"), 1),
        (lambda: torch.nn.EmbeddingBag(10, 3, mode="max")(torch.randint(10, (2, 9))), 1),
        (lambda: Y.trace(), 6),
        (lambda: Y.clone().cumsum_(1), 7),
    ],
)
def test_how_many_terms_an_operator_adds_up_is_known(function, terms):
    class Met(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            longest.meet(func._schema.name, args, kwargs or {})
            return func(*args, **(kwargs or {}))

    longest = Longest()
    with Met():
        function()
    assert longest.any == terms
