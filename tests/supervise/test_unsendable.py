"""Candidates and problems that no process can be told of: a record of their own, and the others' go on."""

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
def evaluate(tmp_path):
    """The records of sources by place; beside a `far` one lie as many files as may, all with long paths."""

    def run(sources):
        far = tmp_path.joinpath(*["far" * 70] * 9)
        for place, text in sources.items():
            file = (far if place.startswith("far/") else tmp_path) / f"{place.removeprefix('far/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            for number in range(MOST_DATA_FILES if place.startswith("far/") else 0):
                file.with_suffix(f".{number}").touch()
        config = Config(
            problems=[str(folder / "problems") for folder in (tmp_path, far) if (folder / "problems").exists()],
            solutions=[str(folder / "solutions") for folder in (tmp_path, far) if (folder / "solutions").exists()],
            device="cpu",
            timing=QUICK,
        )
        with open(tmp_path / "console", "w") as file:
            made = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
        return {f"{record.problem}/{record.candidate}": record for record in made}

    return run


@pytest.mark.parametrize("source", [CANDIDATE, BUILT], ids=["runner", "builder"])
def test_a_candidate_that_no_process_can_be_told_of_is_its_own_fault(source, evaluate):
    found = evaluate(
        {"problems/set/p": PROBLEM, "solutions/set/p/near": CANDIDATE, "far/solutions/set/p/distant": source}
    )
    assert (found["set/p/distant"].status, found["set/p/distant"].reason) == (Status.LOAD_ERROR, "unsendable")
    assert "bytes long" in found["set/p/distant"].message
    assert found["set/p/near"].status is Status.PASSED


def test_a_problem_that_no_process_can_be_told_of_is_its_own_fault(evaluate):
    sources = {f"solutions/{name}/p/{one}": CANDIDATE for name in ("one", "two") for one in ("a", "b")}
    found = evaluate({"far/problems/one/p": PROBLEM, "problems/two/p": PROBLEM, **sources})
    assert {(found[f"one/p/{one}"].status, found[f"one/p/{one}"].reason) for one in ("a", "b")} == {
        (Status.INVALID_REFERENCE, "unsendable")
    }
    assert {found[f"two/p/{one}"].status for one in ("a", "b")} == {Status.PASSED}
