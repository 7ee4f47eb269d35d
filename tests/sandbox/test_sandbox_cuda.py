"""Which layers go where CUDA does not work under all of them: tried on made-up machines, and for real on a card."""

import os

import pytest

from harness.sandbox import cuda_probe, probe
from harness.sandbox.enforcement import LAYERS

ALL = tuple(LAYERS)


def machine(*breaking):
    """A card on which CUDA fails under each of these sets of layers, all of a set being in force."""
    return lambda layers: next((f"under {'+'.join(s)}" for s in map(sorted, breaking) if set(s) <= set(layers)), "")


def test_nothing_goes_where_all_is_well():
    assert cuda_probe.kept_working(ALL, machine()) == {}


@pytest.mark.parametrize("layer", ALL)
def test_the_layer_that_breaks_it_goes_alone(layer):
    assert cuda_probe.kept_working(ALL, machine({layer})) == {layer: f"under {layer}"}


def test_two_that_break_it_go_and_no_other():
    dropped = cuda_probe.kept_working(ALL, machine({"seccomp"}, {"landlock"}))
    assert dropped == {"seccomp": "under seccomp", "landlock": "under landlock"}


def test_one_of_two_goes_that_break_it_together():
    assert cuda_probe.kept_working(ALL, machine({"user", "landlock"})) == {"landlock": "under landlock+user"}


def test_a_card_that_works_nowhere_costs_no_layer():
    assert cuda_probe.kept_working(ALL, lambda layers: "no driver") == {}


def test_a_run_on_a_card_goes_without_what_breaks_it(monkeypatch):
    monkeypatch.setattr(probe, "probe", lambda: probe.Found(layers=("user", "seccomp")))
    monkeypatch.setattr(probe, "harmful_on_a_card", lambda layers: {"seccomp": "cuInit fails"})
    assert probe.chosen("auto").layers == ("user", "seccomp")
    found = probe.chosen("auto", gpu=True)
    assert (found.layers, found.missing) == (("user",), {"seccomp": "CUDA: cuInit fails"})


class MadeUp:
    """In place of libcuda: what is handed over can be opened, if a file can be read."""

    needs = "/dev/null"

    def create(self):
        return os.open(os.devnull, os.O_RDONLY)

    def export(self):
        pass

    def opened(self, descriptor):
        os.fstat(descriptor)
        open(self.needs).close()
        return bytes([cuda_probe.FILL]) * cuda_probe.NBYTES


def rehearsed(monkeypatch, tmp_path, needs):
    monkeypatch.setattr(MadeUp, "needs", needs)
    monkeypatch.setattr(cuda_probe, "Driver", MadeUp)
    (tmp_path / "own").mkdir()
    layers = probe.probe().layers
    return cuda_probe.main(str(tmp_path / "own"), cuda_probe.Rehearsal(layers=layers)), layers


def test_a_confined_process_plays_its_part(monkeypatch, tmp_path):
    assert rehearsed(monkeypatch, tmp_path, "/dev/null")[0] == ""


def test_and_says_what_it_was_refused(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("")
    fault, layers = rehearsed(monkeypatch, tmp_path, str(tmp_path / "secret"))
    # Covered by an empty folder, or closed.
    assert ("/secret" in fault) == ("landlock" in layers or "user" in layers)


def test_a_machine_without_a_driver_says_so():
    fault = cuda_probe.main(".", cuda_probe.Rehearsal(layers=()))
    assert fault == "" or fault.startswith("already outside the sandbox: ")


@pytest.mark.gpu
def test_no_layer_is_harmful_on_this_card():
    assert probe.harmful_on_a_card(probe.probe().layers) == {}
