"""Which layers go where CUDA does not work under all of them: tried on made-up machines, and for real on a card."""

import os

import pytest

from harness.worker import sandbox_cuda, sandbox_probe
from harness.worker.sandbox import LAYERS

ALL = tuple(LAYERS)


def machine(*breaking):
    """A card on which CUDA fails under each of these sets of layers, all of a set being in force."""
    return lambda layers: next((f"under {'+'.join(s)}" for s in map(sorted, breaking) if set(s) <= set(layers)), "")


def test_nothing_goes_where_all_is_well():
    assert sandbox_cuda.kept_working(ALL, machine()) == {}


@pytest.mark.parametrize("layer", ALL)
def test_the_layer_that_breaks_it_goes_alone(layer):
    assert sandbox_cuda.kept_working(ALL, machine({layer})) == {layer: f"under {layer}"}


def test_two_that_break_it_go_and_no_other():
    dropped = sandbox_cuda.kept_working(ALL, machine({"seccomp"}, {"landlock"}))
    assert dropped == {"seccomp": "under seccomp", "landlock": "under landlock"}


def test_one_of_two_goes_that_break_it_together():
    assert sandbox_cuda.kept_working(ALL, machine({"user", "landlock"})) == {"landlock": "under landlock+user"}


def test_a_card_that_works_nowhere_costs_no_layer():
    assert sandbox_cuda.kept_working(ALL, lambda layers: "no driver") == {}


def test_a_run_on_a_card_goes_without_what_breaks_it(monkeypatch):
    monkeypatch.setattr(sandbox_probe, "probe", lambda sources=(): sandbox_probe.Found(layers=("user", "seccomp")))
    monkeypatch.setattr(sandbox_probe, "harmful_on_a_card", lambda layers, sources: {"seccomp": "cuInit fails"})
    assert sandbox_probe.chosen("auto").layers == ("user", "seccomp")
    found = sandbox_probe.chosen("auto", gpu=True)
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
        return bytes([sandbox_cuda.FILL]) * sandbox_cuda.NBYTES


def rehearsed(monkeypatch, tmp_path, needs):
    monkeypatch.setattr(MadeUp, "needs", needs)
    monkeypatch.setattr(sandbox_cuda, "Driver", MadeUp)
    (tmp_path / "own").mkdir()
    layers = sandbox_probe.probe().layers
    return sandbox_cuda.main(str(tmp_path / "own"), sandbox_cuda.Rehearsal(layers=layers, sources=())), layers


def test_a_confined_process_plays_its_part(monkeypatch, tmp_path):
    assert rehearsed(monkeypatch, tmp_path, "/dev/null")[0] == ""


def test_and_says_what_it_was_refused(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("")
    fault, layers = rehearsed(monkeypatch, tmp_path, str(tmp_path / "secret"))
    # Covered by an empty folder, or closed.
    assert ("/secret" in fault) == ("landlock" in layers or "user" in layers)


def test_a_machine_without_a_driver_says_so():
    fault = sandbox_cuda.main(".", sandbox_cuda.Rehearsal(layers=(), sources=()))
    assert fault == "" or fault.startswith("outside the sandbox: ")


@pytest.mark.gpu
def test_no_layer_is_harmful_on_this_card():
    assert sandbox_probe.harmful_on_a_card(sandbox_probe.probe().layers, ()) == {}
