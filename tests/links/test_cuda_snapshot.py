"""The look at outputs behind the end: whatever changes later is seen, few elements of many, too."""

import pytest
import torch

from harness.links import cuda_snapshot
from harness.links.cuda_snapshot import Snapshot
from harness.links.link import LateOutput
from tests.links import made_up_card


@pytest.fixture
def outputs(monkeypatch):
    """Memory of the host in place of a card's."""
    monkeypatch.setattr(cuda_snapshot, "as_bytes", made_up_card._bytes_at)
    return lambda count, dtype: [torch.randint(2, (count, 1 << 16)).to(dtype) for _ in range(3)]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.float16, torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize("late", [0, 1, 2])
def test_one_element_of_a_million_is_seen(outputs, dtype, late):
    tensors = outputs(16, dtype)
    snapshot = Snapshot(tensors)
    snapshot.take()
    assert all(torch.equal(snapshot.output(call), tensor) for call, tensor in enumerate(tensors))
    assert len(snapshot.together([0, 2])) == 2
    last = tensors[late][-1, -1:]
    last.copy_(last.logical_not())
    with pytest.raises(LateOutput):
        snapshot.output(late)
    assert snapshot.together([0, 1, 2]) is None
    assert torch.equal(snapshot.output((late + 1) % 3), tensors[(late + 1) % 3])


FORMS = {
    "odd": lambda tensor: tensor[:, :-1].contiguous(),
    "across": lambda tensor: tensor.T,
    "every_second_row": lambda tensor: tensor[::2],
    "from_the_second_on": lambda tensor: tensor[:, 1:],
    "one_dimension": lambda tensor: tensor.reshape(-1),
}


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.float32, torch.complex64, torch.complex128])
@pytest.mark.parametrize("form", FORMS)
def test_so_is_one_of_an_output_of_any_form(outputs, dtype, form):
    tensors = [FORMS[form](tensor) for tensor in outputs(16, dtype)]
    snapshot = Snapshot(tensors)
    snapshot.take()
    assert all(torch.equal(snapshot.output(call), tensor) for call, tensor in enumerate(tensors))
    last = tensors[1][(-1,) * tensors[1].dim()]
    last.copy_(last.logical_not())
    with pytest.raises(LateOutput):
        snapshot.output(1)
    assert snapshot.together([0, 1, 2]) is None


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.float32, torch.int64, torch.complex128])
@pytest.mark.parametrize("form", FORMS)
def test_elements_that_change_places_are_seen(outputs, dtype, form, monkeypatch):
    """As the ones of a one-hot output do, whatever is moved how far; none of them is looked at by itself."""
    monkeypatch.setattr(cuda_snapshot, "ELEMENTS", 1)
    seen = 0
    for apart in range(1, 65):
        tensors = [torch.zeros_like(FORMS[form](tensor)) for tensor in outputs(4, dtype)]
        along = max(range(tensors[0].dim()), key=lambda d: tensors[0].shape[d])
        there = tensors[0].movedim(along, -1)[(0,) * (tensors[0].dim() - 1)]
        there[7] = 1
        snapshot = Snapshot(tensors)
        snapshot.take()
        there[7], there[7 + 40 * apart] = 0, 1
        seen += snapshot.together([0]) is None
    assert seen >= 60


def test_inputs_are_looked_at_where_they_are_part_of_the_answer(outputs):
    inputs = outputs(4, torch.float32)
    snapshot = Snapshot([torch.ones(8), 1.0], [inputs[:2], inputs[2:]])
    assert len(snapshot.tensors) == 1
    snapshot.take()
    assert torch.equal(snapshot.inputs(0)[1], inputs[1])
    inputs[2][0, 5] += 1
    assert torch.equal(snapshot.output(0), torch.ones(8))
    with pytest.raises(LateOutput):
        snapshot.inputs(1)


def test_what_is_added_up_needs_no_copy(outputs):
    """Two halves, or four bytes, are one integer where they lie together."""
    sums = {form: Snapshot([of(tensor) for tensor in outputs(16, torch.float16)]) for form, of in FORMS.items()}
    assert {form: snapshot._summing[0]._word.itemsize for form, snapshot in sums.items()} == {
        "odd": 2,
        "across": 2,
        "every_second_row": 8,
        "from_the_second_on": 2,
        "one_dimension": 8,
    }


def test_every_element_of_a_small_output_is_looked_at(outputs):
    tensors = [tensor[0, :4096] for tensor in outputs(1, torch.float32)]
    snapshot = Snapshot(tensors)
    snapshot.take()
    tensors[1][17] = 7
    with pytest.raises(LateOutput):
        snapshot.output(1)


def test_of_very_many_outputs_some_are_added_up(outputs, monkeypatch):
    monkeypatch.setattr(cuda_snapshot, "SUMS", 2)
    snapshot = Snapshot(outputs(1, torch.float32))
    assert sum(len(group.summed) for group in snapshot._summing) == 2
