import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.roofline.ceilings import CLASSES
from harness.roofline.light import ROUTES, Ceilings, Work, best_rate, faster_than_light, floor, sol_fraction

CARD = Ceilings(bytes_per_s=4e12, flops_per_s={"float16": 8e14, "float64": 5e13})


def test_memory_bound() -> None:
    least = floor(Work({"float16": 1e9}, streamed_bytes=4e9, resident_bytes=4e8), CARD)
    assert least.bound == "memory"
    assert least.us == pytest.approx(1100)
    assert least.streamed_us == pytest.approx(1000)


def test_compute_bound_by_the_slowest_class_without_adding() -> None:
    least = floor(Work({"float16": 8e11, "float64": 1e11}, streamed_bytes=4e6), CARD)
    assert least.bound == "compute:float64"
    assert least.us == pytest.approx(2000)


@pytest.mark.parametrize(
    ("kind", "rates", "best"),
    [
        # Three products of halves are as exact as one in float32.
        ("float32", {"float32": 5e13, "float16": 8e14, "bfloat16": 8e14}, 8e14 / 3),
        ("float32", {"float32": 2e11, "bfloat16": 9e11}, 2e11),
        # A processor with units for one of the halves only.
        ("float16", {"float16": 4e10, "bfloat16": 9e11, "float32": 2e11}, 9e11),
        ("int8", {"int8": 1.2e15, "float8": 1.6e15}, 1.6e15),
        ("float64", {"float64": 1e11, "float32": 9e11}, 1e11),
        ("complex32", {"float16": 1e12}, 0.0),
        # What the class's own units can do is not known.
        ("int8", {"float16": 8e14}, 0.0),
    ],
)
def test_a_product_takes_the_cheapest_route_that_keeps_its_accuracy(kind, rates, best) -> None:
    assert best_rate(kind, Ceilings(1.0, rates)) == pytest.approx(best)


def test_routes_lead_to_classes_that_are_measured() -> None:
    assert set(ROUTES) | {other for routes in ROUTES.values() for other in routes} <= set(CLASSES)


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
