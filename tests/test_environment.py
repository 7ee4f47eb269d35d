"""What the harness knows of the machine."""

import msgspec
import pytest

from harness import environment
from harness.environment import Card, Device


@pytest.mark.parametrize(
    ("visible", "card"), [(None, "1"), ("3,5", "5"), ("GPU-one, GPU-other", "GPU-other"), ("2,0,1", "0")]
)
def test_a_process_sees_the_one_card_that_it_is_for(monkeypatch, visible, card):
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(environment, "_cards", lambda: ())
    device = Device(kind="cuda", spec="cuda:1", name="a card")
    assert device.environment == {"CUDA_VISIBLE_DEVICES": card}
    assert device.alone == "cuda:0"


@pytest.mark.parametrize(
    ("named", "indices"),
    [(None, [0, 1, 2]), (["2", "0"], [2, 0]), (["GPU-b2"], [1]), (["GPU-c3-long", "1"], [2, 1]), (["7", ""], [])],
)
def test_cards_are_named_by_number_or_uuid(named, indices):
    cards = [Card(index=index, uuid=f"GPU-{name}-long") for index, name in enumerate(["a1", "b2", "c3"])]
    assert [card.index for card in environment.visible(cards, named)] == indices


def test_a_card_that_the_driver_names_is_told_by_its_uuid(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    cards = (Card(index=3, uuid="GPU-three", minor=0), Card(index=5, uuid="GPU-five", minor=4))
    monkeypatch.setattr(environment, "_cards", lambda: cards)
    device = Device(kind="cuda", spec="cuda:1", name="a card")
    assert (device.environment, device.minor) == ({"CUDA_VISIBLE_DEVICES": "GPU-five"}, 4)
    assert "GPU" not in msgspec.json.encode(device).decode()


@pytest.mark.parametrize(
    ("groups", "files", "room"),
    [
        ("0::/a/b\n", {"a/b/pids.max": "max", "a/pids.max": "100", "a/pids.current": "30"}, 70),
        ("0::/a\n", {"a/pids.max": "100", "a/pids.current": "130"}, 0),
        # Version 1, and beside it a group whose place is not to be seen from here.
        ("3:cpu,pids:/x\n0::/y\n", {"pids/x/pids.max": "50", "pids/x/pids.current": "8"}, 42),
        ("8:pids:/gone\n", {"pids/pids.max": "50", "pids/pids.current": "8"}, 42),
        ("0::/\n", {}, None),
    ],
)
def test_the_room_that_control_groups_leave_for_processes(groups, files, room, tmp_path, monkeypatch):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "groups").write_text(groups)
    monkeypatch.setattr(environment, "CGROUPS", tmp_path)
    monkeypatch.setattr(environment, "OWN_GROUPS", tmp_path / "groups")
    assert environment.room_for_processes() == room


def test_a_processor_needs_no_such_thing():
    device = Device(kind="cpu", spec="cpu", name="a processor")
    assert (device.alone, device.environment) == ("cpu", {})
