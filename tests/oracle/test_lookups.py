"""A reference that is given a part of its inputs looks up no place that is gone: on a card that ends the judge."""

import pytest
import torch
from torch.nn import functional

from harness.oracle.mistakes.lookups import Lookups, OutOfPlace

ROWS, PLACES = torch.randn(8, 6), torch.tensor([0, 5, 3, 1, 5, 2, 0, 4])
CALLS = {
    "cross_entropy": lambda rows, places: functional.cross_entropy(rows, places),
    "nll_loss": lambda rows, places: functional.nll_loss(rows, places),
    "gather": lambda rows, places: rows.gather(1, places[:, None]),
    "index_select": lambda rows, places: rows.index_select(1, places),
    "index": lambda rows, places: rows[:, places],
    "embedding": lambda rows, places: functional.embedding(places, rows.T.contiguous()),
}


@pytest.mark.parametrize("call", CALLS)
def test_places_that_are_gone_are_not_looked_up(call):
    with pytest.raises(OutOfPlace), Lookups():
        CALLS[call](ROWS[:, :4], PLACES)


@pytest.mark.parametrize("call", [name for name in CALLS if name != "index"])
def test_those_that_are_there_are(call):
    with Lookups():
        found = CALLS[call](ROWS, PLACES)
    assert torch.equal(found, CALLS[call](ROWS, PLACES))


def test_an_index_that_is_left_out_is_no_place():
    places = PLACES.clone()
    places[0] = -100
    with Lookups():
        functional.cross_entropy(ROWS, places)


def test_masks_and_slices_look_up_nothing():
    with Lookups():
        assert ROWS[ROWS > 0].numel() == int((ROWS > 0).sum())
        assert ROWS[2:, ::2].shape == (6, 3)
