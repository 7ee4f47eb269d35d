"""What a candidate does in a process without a card that is told of one."""

from types import SimpleNamespace

import pytest
import torch

from harness.runner import absent_card, builder
from harness.wire.messages import Build

PROBLEM = "def get_init_inputs():\n    return [8]\n"
CANDIDATE = """
import torch
def note(word):
    with open(LOG, "a") as log:
        log.write(word)
class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        note("begun ")
        BEFORE
        note("compiles ")
"""
CASES = [
    # It compiles only where there is a card; what it reads of one goes into the build.
    ("assert torch.cuda.is_available()", "begun compiles", ""),
    ("assert torch.cuda.get_device_capability(0) == (9, 0)", "begun compiles", ""),
    ("assert (torch.cuda.device_count(), torch.cuda.get_device_name()) == (1, 'made up')", "begun compiles", ""),
    # It uses a card that it has been told of, and would not without.
    ("torch.ones(1, device='cuda' if torch.cuda.is_available() else 'cpu')", "begun begun compiles", ""),
    # It uses one whatever it has been told.
    ("torch.cuda.is_available(); raise OSError('no card')", "begun begun", "OSError: no card"),
    # It has asked nothing, and is carried out once.
    ("raise OSError('no card')", "begun", "OSError: no card"),
]


def carried_out(tmp_path, before, at_import=""):
    (tmp_path / "problem.py").write_text(PROBLEM)
    log = tmp_path / "log"
    text = CANDIDATE.replace("LOG", repr(str(log))).replace("BEFORE", before) + at_import
    (tmp_path / "candidate.py").write_text(text)
    request = Build(
        candidate=str(tmp_path / "candidate.py"),
        folder=str(tmp_path),
        problem=str(tmp_path / "problem.py"),
        arch="9.0a",
        absent_card="made up",
    )
    raised = builder._carried_out(tmp_path / "candidate.py", request, SimpleNamespace(failures={}))
    return log.read_text().strip(), raised


@pytest.mark.parametrize(("before", "did", "raised"), CASES)
def test_a_constructor_is_told_of_the_runner_s_card(tmp_path, before, did, raised):
    assert carried_out(tmp_path, before) == (did, raised)


def test_a_module_that_uses_the_card_is_carried_out_by_the_truth(tmp_path):
    used = "if torch.cuda.is_available():\n    raise OSError('no card')\n"
    assert carried_out(tmp_path, "pass", used) == ("begun compiles", "")


def test_a_module_that_fails_without_having_asked_fails_at_once(tmp_path):
    with pytest.raises(OSError, match="no card"):
        carried_out(tmp_path, "pass", "raise OSError('no card')\n")


def test_torch_is_as_before_behind_the_block():
    before = torch.cuda.is_available
    with absent_card.announced("12.0", "made up") as asked:
        assert torch.cuda.get_device_capability() == (12, 0)
    assert asked == ["get_device_capability"]
    assert torch.cuda.is_available is before
