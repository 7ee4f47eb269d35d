import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.roofline.light import Ceilings, Work, faster_than_light, floor, sol_fraction

CARD = Ceilings(bytes_per_s=4e12, flops_per_s={"float16": 8e14, "float32": 5e13})


def test_memory_bound() -> None:
    least = floor(Work({"float16": 1e9}, streamed_bytes=4e9, resident_bytes=4e8), CARD)
    assert least.bound == "memory"
    assert least.us == pytest.approx(1100)
    assert least.streamed_us == pytest.approx(1000)


def test_compute_bound_by_the_slowest_class_without_adding() -> None:
    least = floor(Work({"float16": 8e11, "float32": 1e11}, streamed_bytes=4e6), CARD)
    assert least.bound == "compute:float32"
    assert least.us == pytest.approx(2000)


def test_a_class_without_a_ceiling_does_not_bound() -> None:
    assert floor(Work({"int8": 1e15}, streamed_bytes=4e6), CARD).bound == "memory"
    nothing = floor(Work({"int8": 1e15}, streamed_bytes=0), CARD)
    assert (nothing.us, nothing.bound) == (0, "none")


def test_sol_fraction() -> None:
    assert sol_fraction(200.0, 100.0) == 0.5
    assert sol_fraction(200.0, 0.0) is None
    assert sol_fraction(0.0, 100.0) is None


def test_faster_than_light_needs_more_than_error_and_margin() -> None:
    assert faster_than_light(50.0, 5.0, 100.0)
    assert not faster_than_light(50.0, 40.0, 100.0)
    # A reading kernel may beat the copy ceiling by some.
    assert not faster_than_light(90.0, 0.0, 100.0)
    assert faster_than_light(90.0, 0.0, 100.0, margin=0.05)
    assert not faster_than_light(1.0, 0.0, 0.0)


@given(st.floats(0, 1e15), st.floats(0, 1e12), st.floats(0, 1e12), st.floats(0.1, 10))
def test_the_floor_scales_with_the_work(flops: float, streamed: float, resident: float, factor: float) -> None:
    once = floor(Work({"float16": flops}, streamed, resident), CARD)
    more = floor(Work({"float16": flops * factor}, streamed * factor, resident * factor), CARD)
    assert more.us == pytest.approx(once.us * factor)
    assert once.streamed_us <= once.us


def test_ceilings_are_positive() -> None:
    with pytest.raises(ValueError, match="ceiling"):
        floor(Work({}, 1.0), Ceilings(0.0, {}))
    with pytest.raises(ValueError, match="ceiling"):
        floor(Work({}, 1.0), Ceilings(1.0, {"float16": 0.0}))
