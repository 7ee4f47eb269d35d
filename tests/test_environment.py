"""What the harness knows of the machine."""

import pytest

from harness.environment import Device


@pytest.mark.parametrize(
    ("visible", "card"), [(None, "1"), ("3,5", "5"), ("GPU-one, GPU-other", "GPU-other"), ("2,0,1", "0")]
)
def test_a_process_sees_the_one_card_that_it_is_for(monkeypatch, visible, card):
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    device = Device(kind="cuda", spec="cuda:1", name="a card")
    assert device.environment == {"CUDA_VISIBLE_DEVICES": card}
    assert device.alone == "cuda:0"


def test_a_processor_needs_no_such_thing():
    device = Device(kind="cpu", spec="cpu", name="a processor")
    assert (device.alone, device.environment) == ("cpu", {})
