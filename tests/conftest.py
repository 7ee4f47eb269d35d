"""What several tests share: the specimens, and runs of them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import torch
import yaml
from rich.console import Console

from harness import session
from harness.catalog import solutions
from harness.config import CompileConfig, Config, Limits, Pattern, TimingConfig
from harness.processes import zygote
from harness.reading import reader
from harness.records import Record
from tests.warm_zygotes import WarmZygotes

HONEST = ("honest", "honest_after", "honest_cpp")
CORPUS = Path(__file__).parent / "corpus"
# Precompiled headers outlive a run of the tests; built extensions do not, so that builds are really tested.
os.environ["ASSAY_CACHE"] = str(Path(__file__).parents[1] / ".pytest_cache" / "assay")

# Several of these processes share the cores. With a thread for each core, each would mostly wait for threads of others.
torch.set_num_threads(1)

# Enough pairs for an interval, not for a precise one.
QUICK = TimingConfig(budget_s=2.0, min_pairs=4, max_pairs=4, burst_ms=1.0)


def corpus_config(*candidates: str, **changes) -> Config:
    """A config over the specimens named, on the CPU."""
    return Config(
        problems=[str(CORPUS / "problems")],
        solutions=[str(CORPUS / "solutions")],
        include=[Pattern(problem="toy/scale", candidate=name) for name in candidates],
        device=changes.pop("device", "cpu"),
        timing=QUICK,
        compile=changes.pop("compile", CompileConfig(cache_gb=0.0)),
        limits=Limits(call_s=5.0, first_call_s=10.0, load_s=60.0),
        **changes,
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a long test go first. At the end everybody would wait for the one who has it."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


class Here:
    """Reads files as reading.reader does, in the test's own process."""

    candidate = staticmethod(reader.candidate)
    problem = staticmethod(reader.problem)

    @classmethod
    def read(cls, path: Path) -> solutions.Candidate:
        """The candidate of this file."""
        (place,) = solutions.discover([str(path)])
        return solutions.read(place, cls())


@pytest.fixture(scope="session", autouse=True)
def warm_zygotes() -> Iterator[WarmZygotes]:
    """What this process begins of zygotes, begins at once."""
    made = WarmZygotes()
    with made:
        yield made


@pytest.fixture
def cold_zygotes(warm_zygotes, monkeypatch) -> None:
    """For tests that are about how they begin."""
    monkeypatch.setattr(zygote, "start", warm_zygotes.usual)


@pytest.fixture
def evaluate(tmp_path) -> Callable[..., dict[str, Record]]:
    """Run specimens by name and return their records by name."""

    def run(*candidates: str, **changes) -> dict[str, Record]:
        console = Console(file=open(tmp_path / "console", "w"), width=200)  # noqa: SIM115 - closed with the test
        with console.file:
            records = session.run(corpus_config(*candidates, **changes), tmp_path / "run", console, command=["test"])
        return {record.candidate: record for record in records}

    return run


def dump_config(config: Config, path: Path) -> Path:
    path.write_text(yaml.safe_dump(msgspec.to_builtins(config)))
    return path


@pytest.fixture
def evaluate_made(tmp_path) -> Callable[..., Record]:
    """The record of one candidate of one problem, both given as text."""

    def run(problem: str, candidate: str, **settings) -> Record:
        for place, text in (("problems/made/problem.py", problem), ("solutions/made/problem/candidate.py", candidate)):
            path = tmp_path / place
            path.parent.mkdir(parents=True)
            path.write_text(text)
        config = Config(problems=[str(tmp_path / "problems")], solutions=[str(tmp_path / "solutions")], **settings)
        with open(tmp_path / "console", "w") as file:
            (record,) = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
        return record

    return run
