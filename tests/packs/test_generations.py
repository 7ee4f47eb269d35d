"""KernelBench's runs: kernels with their verdicts."""

import json

import pytest

from harness.catalog.claims import Claim
from harness.packs import generations
from tests.packs.conftest import NEW

RIGHT = {"compiled": True, "correctness": True, "runtime": 2.0}


@pytest.fixture
def folder(tmp_path):
    generations._verdicts.cache_clear()

    def make(verdicts, *kernels: str):
        for name in kernels or ("level_1_problem_19_sample_0_kernel.py", "level_1_problem_19_sample_1_kernel.py"):
            (tmp_path / name).write_text(NEW)
        (tmp_path / "eval_results.json").write_text(verdicts if isinstance(verdicts, str) else json.dumps(verdicts))
        return tmp_path

    return make


@pytest.mark.parametrize(
    "verdicts",
    [
        {"19": [RIGHT | {"sample_id": 0}, {"sample_id": 1, "compiled": False, "correctness": False, "runtime": -1.0}]},
        {"19": {"0": RIGHT, "1": {"compiled": False, "correctness": False}}},
    ],
)
def test_each_sample_has_its_verdict(folder, read, verdicts):
    samples, left = read(folder(verdicts))
    assert left == []
    assert [(one.identity, one.number, one.claim) for one in samples] == [
        ((1, "19"), 0, Claim(status="correct", time=2.0)),
        ((1, "19"), 1, Claim(status="not_compiled")),
    ]


def test_a_mapping_of_one_is_that_of_its_sample(folder, read):
    samples, _ = read(folder({"19": RIGHT | {"ref_runtime": 3.0, "sample_id": 0}}))
    assert [one.claim for one in samples] == [Claim(status="correct", time=2.0, speedup=1.5), Claim()]


def test_a_wrong_answer_has_no_speedup(folder, read):
    samples, _ = read(folder({"19": [RIGHT | {"correctness": False, "ref_runtime": 3.0}]}))
    assert samples[0].claim == Claim(status="incorrect")


def test_why_it_failed_there_is_kept_in_a_line(folder, read):
    """On a card of 40 GB many a right answer was `incorrect`."""
    metadata = {
        "hardware": "A100",
        "runtime_error": "CUDA out of memory. Tried 6 GiB.\nMore.",
        "correctness_issue": "x",
    }
    verdicts = {"19": [RIGHT | {"correctness": False, "metadata": metadata}], "20": [{"metadata": ["odd"]}]}
    samples, _ = read(folder(verdicts))
    assert samples[0].claim == Claim(status="incorrect", said="CUDA out of memory. Tried 6 GiB.")


def test_a_verdict_without_a_kernel_is_named(folder, read):
    _, (left,) = read(folder({"19": [RIGHT], "20": [RIGHT | {"sample_id": 2}]}))
    assert (left.origin.row, left.reason) == ("problem 20, sample 2", "there is a verdict, but no kernel")


@pytest.mark.parametrize(
    "verdicts", ["{", "[" * 100_000, "[]", "\ud800".encode("utf-16", "surrogatepass").decode("latin-1")]
)
def test_verdicts_that_cannot_be_read_cost_no_sample(folder, read, verdicts):
    samples, (left,) = read(folder(verdicts))
    assert [one.claim for one in samples] == [Claim(), Claim()]
    assert left.origin.file == "eval_results.json"


@pytest.mark.parametrize("verdicts", [{"x": [RIGHT]}, {"19": 3}, {"19": ["a", None]}, {"19": [{"sample_id": "z"}]}])
def test_odd_verdicts_say_nothing(folder, read, verdicts):
    assert [one.claim for one in read(folder(verdicts))[0]] == [Claim(), Claim()]


def test_verdicts_that_do_not_say_whose_they_are_are_nobodys(folder, read):
    samples, (left,) = read(folder({"19": [RIGHT | {"correctness": False}, RIGHT]}))
    assert [one.claim for one in samples] == [Claim(), Claim()]
    assert "has no sample_id" in left.reason


def test_verdicts_for_two_levels_at_once_are_nobodys(folder, read):
    place = folder({"19": [RIGHT]}, "level_1_problem_19_sample_0_kernel.py", "level_2_problem_19_sample_0_kernel.py")
    samples, (left,) = read(place)
    assert [one.claim for one in samples] == [Claim(), Claim()]
    assert "levels 1, 2" in left.reason
