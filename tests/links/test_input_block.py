"""How large the memory is that a burst's inputs lie in."""

import pytest
import torch

from harness.config import Limits
from harness.links.link import INPUT_PLACES, SPREAD_BYTES, Draw, Link
from harness.wire.layout import ALIGNMENT_BYTES, place
from harness.wire.nodes import INPUT_BLOCK, NOWHERE


class Sized(Link):
    """A link that makes no block."""

    def _add_block(self, number, nbytes):
        assert number == INPUT_BLOCK
        self.nbytes = nbytes


@pytest.mark.parametrize("nbytes", [4, 512, 1 << 20, 6 << 30])
@pytest.mark.parametrize("calls", [1, 4])
def test_places_differ_and_lie_no_further_apart_than_they_have_to(nbytes, calls):
    link = Sized(None, None, torch.device("cpu"), Limits(), False)
    # Of the size that is asked for, without its memory.
    refs, end = place([torch.empty(nbytes // 4, device="meta")], NOWHERE)
    link.reserve(calls, refs, {"output": refs[0]})
    assert link._step_bytes >= ALIGNMENT_BYTES
    assert link.nbytes - calls * end == (INPUT_PLACES - 1) * link._step_bytes
    assert link.nbytes - calls * end <= min(SPREAD_BYTES, max(end, INPUT_PLACES * ALIGNMENT_BYTES))
    assert [ref.offset for refs in link._input_refs for ref in refs] == [call * end for call in range(calls)]
    assert {ref.block for refs in link._input_refs for ref in refs} == {INPUT_BLOCK}


def test_who_has_to_know_where_its_inputs_lie_finds_them_at_one_place():
    link = Sized(None, None, torch.device("cpu"), Limits(), False)
    given = torch.empty(1 << 10)
    refs, end = place([given], NOWHERE)
    link.reserve(3, refs, {"output": refs[0]}, places=1)
    assert link.nbytes == 3 * end
    bursts = [link._calls([Draw(inputs=(given,), seed=0)] * 3) for _ in range(20)]
    assert {tuple(ref.offset for call in calls for ref in call.inputs.items) for calls in bursts} == {(0, end, 2 * end)}
