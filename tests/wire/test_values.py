"""Values as data: whatever may cross comes back equal, whatever may not is named and harmless."""

import math

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.wire import values
from harness.wire.nodes import Node, Opaque, TensorRef

scalars = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text()
trees = st.recursive(
    scalars | st.sampled_from([torch.float16, torch.int8]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=20,
)


def no_tensor(_: object) -> TensorRef:
    raise AssertionError("no tensor here")


@given(trees)
def test_values_survive_the_wire(value):
    wire = msgspec.json.encode(values.encode(value, no_tensor))
    back = values.decode(msgspec.json.decode(wire, type=Node), no_tensor)
    assert back == value
    assert repr(back) == repr(value)


def test_nan_and_infinities_survive():
    wire = msgspec.json.encode(values.encode((math.nan, math.inf, -math.inf), no_tensor))
    nan, *rest = values.decode(msgspec.json.decode(wire, type=Node), no_tensor)
    assert math.isnan(nan)
    assert rest == [math.inf, -math.inf]


class Trap:
    def __reduce__(self):
        raise AssertionError("never pickled")


@pytest.mark.parametrize(
    ("value", "name"),
    [(Trap(), "Trap"), (lambda: 0, "function"), (1 << 80, "int"), ({(1, 2): 3}, "dict"), (1j, "complex")],
)
def test_other_things_cross_by_the_name_of_their_type(value, name):
    node = values.encode(value, no_tensor)
    assert isinstance(node, Opaque)
    assert name in node.python_type


def test_a_nesting_without_end_is_cut():
    loop: list = []
    loop.append(loop)
    values.encode(loop, no_tensor)


def test_only_floating_tensors_are_cast():
    given_values = [torch.ones(2), (torch.ones(2, dtype=torch.int64), {"a": torch.ones(1, dtype=torch.bool)}), 3.5]
    cast = values.cast_floating(given_values, torch.float16)
    assert [tensor.dtype for tensor in values.tensors(cast)] == [torch.float16, torch.int64, torch.bool]
    assert cast[2] == 3.5


def test_unknown_dtypes_are_refused():
    with pytest.raises(ValueError, match="'float17' is not a dtype"):
        values.dtype_named("float17")
    with pytest.raises(ValueError, match="not a dtype"):
        values.dtype_named("save")


def test_what_a_message_has_no_room_for_is_named():
    assert values.encode([0.0] * (values.MAX_ITEMS + 1), no_tensor) == Opaque(
        python_type=f"list of more than {values.MAX_ITEMS} values"
    )
