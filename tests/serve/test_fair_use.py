"""A service does not share its card unless told to."""

import threading
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from harness.api import Evaluator
from harness.environment import Device
from harness.errors import UsageError
from harness.execution.pool import HELD
from harness.execution.workplace import ThisMachine
from harness.machine import card_users
from harness.machine.card_users import CardUser
from harness.serve import fair_use, prometheus
from harness.serve.fair_use import FairUse
from harness.serve.service import Settings
from tests.conftest import corpus_config
from tests.serve.conftest import RIGHT


class Card(Device, frozen=True):
    """Of a machine that has none."""

    @property
    def uuid(self):
        return f"GPU-{self.spec}"


CARD = Card(kind="cuda", spec="cuda:0", name="made up")
CPU = Device(kind="cpu", spec="cpu", name="a processor")


# Somebody else's program: the one process that no other can have started.
TRAINER = CardUser(pid=1, name="train", memory_mib=70_000)


@pytest.fixture
def all_seen(monkeypatch):
    """Process numbers are those of the whole machine."""
    monkeypatch.setattr(card_users, "ALL_PROCESSES", Path("/proc/self/ns/pid").stat().st_ino)


def test_a_card_that_others_use_is_refused_at_the_start_unless_it_is_to_be_shared():
    watched = FairUse([CPU, CARD], shared=False, look=lambda uuid: [TRAINER])
    with pytest.raises(
        UsageError, match=rf"computes on cuda:0 \(train, process {TRAINER.pid}, 70000 MiB\).*--share-card"
    ):
        watched.check_start(patience_s=0.0)
    FairUse([CPU, CARD], shared=True, look=lambda uuid: [TRAINER]).check_start(patience_s=0.0)
    FairUse([CPU, CARD], shared=False, look=lambda uuid: None).check_start(patience_s=0.0)


def test_what_ends_in_time_does_not_keep_it_from_starting():
    looks = iter([[TRAINER], [TRAINER], []])
    FairUse([CARD], shared=False, look=lambda uuid: next(looks)).check_start(patience_s=5.0)
    assert next(looks, None) is None


def test_no_evaluation_begins_while_others_are_there(all_seen, monkeypatch):
    monkeypatch.setattr(fair_use, "REFRESH_S", 0.0)
    there = []
    watched = FairUse([CPU, CARD], shared=False, look=lambda uuid: list(there))
    assert watched.admits(CARD)
    there.append(TRAINER)
    assert not watched.admits(CARD)
    assert watched.admits(CPU)
    (use,) = watched.uses()
    assert (use.device, [other.pid for other in use.others]) == ("cuda:0", [TRAINER.pid])
    # For as long as they are there.
    assert watched.uses()[0].held_since == use.held_since
    there.clear()
    assert watched.admits(CARD)
    assert watched.uses()[0].held_since is None


def test_a_shared_card_admits_and_tells(all_seen):
    watched = FairUse([CARD], shared=True, look=lambda uuid: [TRAINER])
    assert watched.admits(CARD)
    (use,) = watched.uses()
    assert [other.name for other in use.others] == ["train"]
    assert use.held_since is None


def test_metrics_name_the_card(all_seen):
    service = SimpleNamespace(
        counts={},
        length=0,
        settings=Settings(),
        evaluator=SimpleNamespace(devices=[CARD], alive=True),
        fair_use=FairUse([CARD], shared=False, look=lambda uuid: [TRAINER]),
    )
    page = prometheus.page(service)
    assert 'assay_card_others{device="cuda:0"} 1\n' in page
    assert 'assay_card_held{device="cuda:0"} 1\n' in page


def test_what_is_held_is_built_and_evaluated_once_the_others_are_gone():
    free, held = threading.Event(), threading.Event()
    phases = []

    def phase(slot, title, name):
        phases.append((title, name))
        if title == HELD:
            held.set()

    config = msgspec.structs.replace(corpus_config(), device="cpu")
    with Evaluator(config, report_phase=phase, workplace=ThisMachine(admits=lambda device: free.is_set())) as evaluator:
        future = evaluator.submit("tests/corpus/problems/toy/scale.py", RIGHT)
        assert held.wait(60)
        with pytest.raises(TimeoutError):
            future.result(1.0)
        assert not any(name in ("starting", "loading") for _, name in phases)
        free.set()
        assert future.result(120).status == "passed"
    assert (HELD, "") in phases
