import pytest

from harness.roofline import work


@pytest.fixture(params=[True, False], ids=["fake", "real"])
def of(request):
    def measure(model, *inputs):
        estimate = work.of(model, inputs, fake=request.param)
        assert estimate.notes == ()
        return estimate.work

    return measure
