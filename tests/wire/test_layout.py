"""Tensors in shared blocks: what is placed comes back, and no claim reaches outside its block."""

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.wire import layout
from harness.wire.layout import BadReference, place, view
from harness.wire.nodes import TensorRef

shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
dtypes = st.sampled_from([torch.float32, torch.float16, torch.int64, torch.bool, torch.uint8, torch.complex64])


@st.composite
def tensors(draw):
    tensor = (torch.arange(625 * 2) % 97).to(draw(dtypes)).as_strided((5, 5, 5, 5), (125, 25, 5, 1))
    tensor = tensor[tuple(slice(0, size) for size in draw(shapes))]
    if draw(st.booleans()):
        tensor = tensor.permute(*draw(st.permutations(range(tensor.dim()))))
    if draw(st.booleans()) and tensor.dim():
        tensor = tensor[..., ::2]
    if draw(st.booleans()):
        tensor = tensor.unsqueeze(0).expand(3, *tensor.shape)
    return tensor


@given(st.lists(tensors(), max_size=4))
def test_tensors_do_not_touch_each_other(given_tensors):
    refs, nbytes = place(given_tensors, 0)
    block = torch.zeros(max(nbytes, 1), dtype=torch.uint8)
    for ref, tensor in zip(refs, given_tensors, strict=True):
        view(block, ref).copy_(tensor)
    for ref, tensor in zip(refs, given_tensors, strict=True):
        assert torch.equal(view(block, ref), tensor)
        assert ref.offset % 512 == 0


def test_strides_are_kept_where_elements_have_places_of_their_own():
    refs, _ = place([torch.zeros(4, 6).T, torch.zeros(1, 6).expand(4, 6)], 0)
    assert [ref.stride for ref in refs] == [(1, 6), (6, 1)]


numbers = st.integers(-4, 40) | st.sampled_from([2**31, 2**62, 2**63 - 1])


@given(
    st.lists(numbers, max_size=3),
    st.lists(numbers, max_size=3),
    numbers,
    st.sampled_from(["float32", "int8", "complex128", "float17", "", "Tensor", "bool"]),
)
def test_any_claim_is_inside_or_refused(shape, stride, offset, dtype):
    block = torch.zeros(64, dtype=torch.uint8)
    ref = TensorRef(block=0, offset=offset, dtype=dtype, shape=tuple(shape), stride=tuple(stride), device="cpu")
    try:
        seen = view(block, ref)
    except BadReference:
        return
    assert tuple(seen.shape) == tuple(shape)
    if seen.numel():
        storage = seen.untyped_storage()
        assert storage.data_ptr() == block.untyped_storage().data_ptr()
        last = seen.storage_offset() + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        assert (last + 1) * seen.element_size() <= 64


def test_an_empty_claim_of_sizes_that_no_tensor_has_is_refused():
    ref = TensorRef(block=0, offset=0, dtype="float32", shape=(0, 2**31, 2**62), stride=(1, 1, 1), device="cpu")
    with pytest.raises(BadReference):
        view(torch.zeros(64, dtype=torch.uint8), ref)


def test_misaligned_claims_are_refused():
    ref = TensorRef(block=0, offset=2, dtype="float32", shape=(1,), stride=(1,), device="cpu")
    with pytest.raises(BadReference):
        view(torch.zeros(64, dtype=torch.uint8), ref)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=6))
def test_places_are_disjoint_where_no_byte_is_in_two_of_them(places):
    spans = [(first, first + length) for first, length in places]
    counted = [byte for first, last in spans for byte in range(first, last)]
    with contextlib.nullcontext() if len(set(counted)) == len(counted) else pytest.raises(BadReference, match="share"):
        layout.check_disjoint(spans)
