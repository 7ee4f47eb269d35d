"""Candidates and problems that no process can be told of: a record of their own, and the others' go on."""

import tempfile

import pytest
from rich.console import Console

from harness import session
from harness.catalog.sources import MOST_DATA_FILES
from harness.config import Config
from harness.records import Status
from tests.conftest import QUICK

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return x + 1
def get_inputs(): return [torch.randn(8)]
def get_init_inputs(): return []
"""
CANDIDATE = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x + 1\n"
BUILT = f"from torch.utils import cpp_extension\n{CANDIDATE}"


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    """The records of sources by place; beside a `crowded` one lie as many files as may. Copies are made where every
    path is long, or in the usual folder."""

    def run(sources, *, deep):
        for place, text in sources.items():
            file = tmp_path / f"{place}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            for number in range(MOST_DATA_FILES if file.stem == "crowded" else 0):
                file.with_suffix(f".{number}").touch()
        if deep:
            far = tmp_path.joinpath(*["far" * 70] * 9)
            far.mkdir(parents=True)
            monkeypatch.setattr(tempfile, "tempdir", str(far))
        config = Config(
            problems=[str(tmp_path / "problems")],
            solutions=[str(tmp_path / "solutions")],
            device="cpu",
            timing=QUICK,
        )
        with open(tmp_path / "console", "w") as file:
            made = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
        return {f"{record.problem}/{record.candidate}": record for record in made}

    return run


@pytest.mark.parametrize("source", [CANDIDATE, BUILT], ids=["runner", "builder"])
def test_a_candidate_that_no_process_can_be_told_of_is_its_own_fault(source, evaluate):
    sources = {"problems/set/p": PROBLEM, "solutions/set/p/near": CANDIDATE, "solutions/set/p/crowded": source}
    found = evaluate(sources, deep=True)
    assert (found["set/p/crowded"].status, found["set/p/crowded"].reason) == (Status.LOAD_ERROR, "unsendable")
    assert "bytes long" in found["set/p/crowded"].message
    assert found["set/p/near"].status is Status.PASSED


def test_in_the_usual_folder_as_much_data_as_may_be_is_told(evaluate):
    found = evaluate({"problems/set/p": PROBLEM, "solutions/set/p/crowded": BUILT}, deep=False)
    assert found["set/p/crowded"].status is Status.PASSED


def test_a_problem_that_no_process_can_be_told_of_is_its_own_fault(evaluate):
    sources = {f"solutions/{name}/{one}": CANDIDATE for name in ("one/crowded", "two/p") for one in ("a", "b")}
    found = evaluate({"problems/one/crowded": PROBLEM, "problems/two/p": PROBLEM, **sources}, deep=True)
    assert {(found[f"one/crowded/{one}"].status, found[f"one/crowded/{one}"].reason) for one in ("a", "b")} == {
        (Status.INVALID_REFERENCE, "unsendable")
    }
    assert {found[f"two/p/{one}"].status for one in ("a", "b")} == {Status.PASSED}
