"""Discovery and the matrix, over files in folders of any place."""

import re
from pathlib import Path

import msgspec
import pytest

from harness.catalog import jobs, problems, solutions
from harness.config import CheckConfig, Config, Pattern, ProvenanceConfig, TimingConfig
from harness.errors import UsageError
from tests.conftest import Here

PROBLEM = """
import torch
PRECISION = "float16"
VARIANTS = {"small": {"size": 2}}
size = 8
class Model(torch.nn.Module): pass
def get_inputs(): return []
def get_init_inputs(): return []
"""
FOREIGN = PROBLEM.replace('PRECISION = "float16"\n', "").replace('VARIANTS = {"small": {"size": 2}}\n', "")
SURROUNDINGS = {"device": "none", "torch": "0"}


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def tree(tmp_path):
    put(tmp_path / "problems/math/relu.py", PROBLEM)
    put(tmp_path / "bench/level1/19_ReLU.py", FOREIGN)
    put(tmp_path / "bench/level1/helper.py", "x = 1\n")
    put(tmp_path / "solutions/math/relu/fast.py", '"""Fast one.\n\nMore."""\n')
    put(tmp_path / "solutions/math/relu/slow.py", "")
    put(tmp_path / "mine/level1/19_ReLU/first.py", "")
    return tmp_path


def config(tree: Path, **changes) -> Config:
    defaults = {"problems": [str(tree / "problems")], "solutions": [str(tree / "solutions")]}
    return Config(**(defaults | changes))


def titles(tree: Path, **changes) -> list[str]:
    return [job.title for job in jobs.plan(config(tree, **changes), SURROUNDINGS, Here()).jobs]


def test_a_problem_s_id_is_its_last_two_path_parts(tree):
    found = problems.discover([str(tree / "problems"), str(tree / "bench")], Here())
    assert [problem.id for problem in found] == ["level1/19_ReLU", "math/relu"]
    assert [problem.precision for problem in found] == ["float32", "float16"]


def test_foreign_files_pair_by_path_whatever_the_root(tree):
    found = titles(tree, problems=[str(tree / "bench")], solutions=[str(tree / "mine")])
    assert found == ["level1/19_ReLU default float32 first"]


def test_captions_are_the_first_docstring_line(tree):
    assert [Here.read(one.path).caption for one in solutions.discover([str(tree / "solutions")])] == ["Fast one.", ""]


def test_the_matrix_multiplies_and_excludes(tree):
    found = titles(
        tree,
        variants=["default", "small"],
        precisions=["default", "float32"],
        exclude=[Pattern(variant="small", candidate="slow"), Pattern(precision="float32", variant="default")],
    )
    assert found == [
        "math/relu default float16 fast",
        "math/relu default float16 slow",
        "math/relu small float16 fast",
        "math/relu small float32 fast",
    ]
    assert titles(tree, include=[Pattern(candidate="s*")]) == ["math/relu default float16 slow"]


def test_a_config_can_define_variants_for_foreign_files(tree):
    found = jobs.plan(
        config(
            tree,
            problems=[str(tree / "bench")],
            solutions=[str(tree / "mine")],
            variants=["tiny"],
            define_variants={"level1/*": {"tiny": {"size": 1}}},
        ),
        SURROUNDINGS,
        Here(),
    )
    assert found.jobs[0].overrides == {"size": 1}


def test_only_problems_with_jobs_are_asked_for_a_variants_constants(tree):
    variants = {"variants": ["tiny"], "define_variants": {"*": {"tiny": {"size": 1}}}}
    folder = {"problems": [str(tree / "problems")], "solutions": [str(tree / "solutions")]}
    put(tree / "problems/math/other.py", FOREIGN.replace("size", "width"))
    assert len(titles(tree, **folder, **variants)) == 2
    put(tree / "solutions/math/other/first.py", "")
    with pytest.raises(UsageError, match="sets 'size', which the module does not assign"):
        titles(tree, **folder, **variants)
    assert len(titles(tree, **folder, **variants, include=[Pattern(problem="math/relu")])) == 2


def test_a_variant_that_is_named_twice_is_evaluated_once(tree):
    assert len(titles(tree, variants=["default", "default"])) == len(titles(tree)) == 2


def test_many_problems_without_a_candidate_are_one_note(tree):
    for number in range(99):
        put(tree / f"problems/math/p{number:02}.py", FOREIGN)
    found = jobs.plan(config(tree, variants=["default", "small"]), SURROUNDINGS, Here())
    assert found.notes == ["99 problems have no candidate: math/p00, math/p01, math/p02 and 96 more"]


def test_problems_without_a_variant_are_one_note_for_each_variant(tree):
    for name in ("a", "b"):
        put(tree / f"problems/math/{name}.py", FOREIGN)
        put(tree / f"solutions/math/{name}/first.py", "")
    assert jobs.plan(config(tree, variants=["small"]), SURROUNDINGS, Here()).notes == [
        "2 problems have no variant 'small': math/a, math/b"
    ]
    (tree / "problems/math/b.py").write_text(PROBLEM)
    assert jobs.plan(config(tree, variants=["small"]), SURROUNDINGS, Here()).notes == ["math/a has no variant 'small'"]


def test_what_was_asked_for_and_is_not_in_the_matrix_is_told_apart_from_other_notes(tree):
    put(tree / "problems/math/other.py", FOREIGN)
    put(tree / "solutions/math/unknown/first.py", "")
    (tree / "solutions/math/relu/gone.py").symlink_to("nowhere")
    found = jobs.outline(config(tree), SURROUNDINGS, Here())
    assert [note.partition(" ")[0] for note in found.left_out] == ["skipped", "skipped", "math/other"]
    assert found.left_out == found.notes
    narrow = config(tree, include=[Pattern(problem="math/relu")])
    assert "math/other has no candidate" not in jobs.outline(narrow, SURROUNDINGS, Here()).left_out


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"variants": ["smal"]}, "no problem has the variant 'smal'; did you mean 'small'?"),
        ({"precisions": ["float61"]}, "unknown precision 'float61'; did you mean 'float64'?"),
        ({"include": [Pattern(problem="nothing/*")]}, "include and exclude leave none of the 2 jobs"),
        ({"problems": ["/nonexistent/x"]}, "'/nonexistent/x' matches no Python file or folder"),
        (
            {"define_variants": {"*": {"tiny": {"sise": 1}}}, "variants": ["tiny"]},
            "sets 'sise', which the module does not",
        ),
    ],
)
def test_mistakes_are_sentences(tree, changes, sentence):
    with pytest.raises(UsageError) as raised:
        titles(tree, **changes)
    assert sentence in str(raised.value)


def test_two_files_of_one_id_are_refused(tree):
    put(tree / "other/math/relu.py", PROBLEM)
    with pytest.raises(UsageError, match="two problems are called math/relu"):
        problems.discover([str(tree / "problems"), str(tree / "other")], Here())


def test_candidates_of_one_name_are_each_refused_and_the_others_are_not(tree):
    second = put(tree / "solutions/math/relu/copies/math/relu/fast.py", "")
    found = {job.candidate.path: job for job in jobs.plan(config(tree), SURROUNDINGS, Here()).jobs}
    first, slow = tree / "solutions/math/relu/fast.py", tree / "solutions/math/relu/slow.py"
    assert found.keys() == {first, second, slow}
    assert found[slow].candidate.fault is None
    refused = [found[path].candidate for path in (first, second)]
    assert [one.fault.reason for one in refused] == ["doubled_name"] * 2
    assert refused[0].fault.message == f"{first} is called math/relu/fast, as is {second}; rename one"
    assert all(re.fullmatch("fast~[0-9a-f]{20}", one.name) for one in refused)
    assert len({job.key for job in found.values()}) == len({job.candidate.name for job in found.values()}) == 3


def test_candidates_of_one_name_are_chosen_by_it(tree):
    put(tree / "other/math/relu/fast.py", "")
    places = [str(tree / "solutions"), str(tree / "other")]
    assert len(titles(tree, solutions=places, include=[Pattern(candidate="fast")])) == 2
    assert titles(tree, solutions=places, exclude=[Pattern(candidate="fast")]) == ["math/relu default float16 slow"]


def test_one_file_that_is_found_twice_is_one(tree):
    assert len(titles(tree, solutions=[str(tree / "solutions"), str(tree / "solutions/math")])) == 2


def test_a_broken_problem_is_found_with_its_fault(tree):
    put(tree / "problems/math/broken.py", "class Model:\n    pass\n")
    put(tree / "problems/math/torn.py", "class Model(:\n")
    faults = {problem.id: problem.fault for problem in problems.discover([str(tree / "problems")], Here())}
    assert faults["math/broken"] == "broken.py defines no get_inputs and no get_init_inputs"
    assert "torn.py:1" in faults["math/torn"]


def test_keys_follow_content_not_place(tree):
    def keys(**changes):
        return {job.candidate.name: job.key for job in jobs.plan(config(tree, **changes), SURROUNDINGS, Here()).jobs}

    before = keys()
    assert keys() == before
    put(tree / "solutions/math/relu/fast.py", '"""Faster."""\n')
    after = keys()
    assert after["slow"] == before["slow"]
    assert after["fast"] != before["fast"]
    assert not set(keys(baseline="compile").values()) & set(after.values())
    put(tree / "problems/math/relu.py", PROBLEM + "\n")
    assert not set(keys().values()) & set(after.values())


def test_an_outline_has_the_keys_of_the_plan_and_parses_no_candidate(tree):
    class Problems:
        problem = staticmethod(Here.problem)

    (tree / "solutions/math/relu/linked.py").symlink_to(tree / "solutions/math/relu/slow.py")
    put(tree / "solutions/math/relu/fast.weights.bin", "x" * 100_000)
    put(tree / "solutions/math/relu/long.py", f"# {'x' * 100_000}")
    put(tree / "more/math/relu/slow.py", "# of the same name")
    chosen = config(
        tree,
        solutions=[str(tree / "solutions"), str(tree / "more")],
        variants=["default", "small"],
        baselines=["compile"],
    )
    found = jobs.outline(chosen, SURROUNDINGS, Problems())
    whole = jobs.plan(chosen, SURROUNDINGS, Here())
    assert len(found.cells) == 12
    assert [cell.key for cell in found.cells] == [job.key for job in whole.jobs]
    assert jobs.read(found.cells, chosen, SURROUNDINGS, Here()) == whole.jobs


OTHER = {
    "baseline": "compile",
    "seed": 3,
    "allow": ["tf32"],
    "check": CheckConfig(stress=False),
    "provenance": ProvenanceConfig(min_own_share=0.5),
    "timing": TimingConfig(burst_ms=1.0),
}
# Keys that choose jobs, which have keys of their own; that say where and how long a job runs; how it is held, which
# each run shows in its reports; or how it is built, which is in the surroundings.
NOT_IN_THE_KEY = {
    "lanes",
    "problems",
    "solutions",
    "solves",
    "variants",
    "precisions",
    "include",
    "exclude",
    "define_variants",
    "baselines",
}
NOT_IN_THE_KEY |= {"packs", "device", "out", "sandbox", "build", "compile", "limits"}


def test_every_setting_that_may_change_a_verdict_is_in_the_key(tree):
    def keys(**changes):
        return {job.key for job in jobs.plan(config(tree, **changes), SURROUNDINGS, Here()).jobs}

    assert OTHER.keys() | NOT_IN_THE_KEY == {field.name for field in msgspec.structs.fields(Config)}
    assert all(not keys() & keys(**{name: value}) for name, value in OTHER.items())


@pytest.mark.parametrize("name", ["fast.cu", "fast.weights.bin"])
def test_data_beside_a_candidate_are_part_of_its_key(tree, name):
    def keys() -> dict[str, str]:
        return {job.candidate.name: job.key for job in jobs.plan(config(tree), SURROUNDINGS, Here()).jobs}

    seen = [keys()]
    for text in ("one", "two"):
        put(tree / "solutions/math/relu" / name, text)
        seen.append(keys())
    assert len({some["fast"] for some in seen}) == 3
    assert len({some["slow"] for some in seen}) == 1
    # Nothing that its runner is not shown.
    put(tree / "solutions/math/relu/faster.cu", "another's")
    assert keys() == seen[-1]


def test_data_beside_a_problem_are_part_of_its_digest(tree):
    path = tree / "problems/math/relu.py"
    before = problems.read(path, Here()).digest
    put(path.with_suffix(".npy"), "table")
    assert problems.read(path, Here()).digest != before


def test_data_that_two_candidates_could_own_refuse_both_and_no_other(tree):
    folder = tree / "solutions/math/relu"
    put(folder / "fast.weights.py", "")
    put(folder / "fast.bin", "of fast.py alone")

    def faults() -> dict[str, str]:
        found = (job.candidate for job in jobs.plan(config(tree), SURROUNDINGS, Here()).jobs)
        return {one.name: f"{one.fault.reason} {one.fault.message}" for one in found if one.fault}

    assert faults() == {}
    (folder / "fast.weights.d").mkdir()
    assert faults() == {}
    put(folder / "fast.weights.bin", "of which one?")
    said = (
        "doubled_data {}: fast.weights.bin beside it could be data of fast.py or of fast.weights.py; rename one of "
        "these two, so that its name does not begin with the other's and a dot"
    )
    assert faults() == {name: said.format(f"{name}.py") for name in ("fast", "fast.weights")}
    (folder / "fast.weights.py").rename(folder / "fast_weights.py")
    assert faults() == {}


def test_data_that_two_problems_could_own_refuse_both(tree):
    put(tree / "problems/math/relu.large.py", PROBLEM)
    put(tree / "problems/math/relu.large.npy", "table")
    found = problems.discover([str(tree / "problems")], Here())
    assert [problem.fault.partition(";")[0] for problem in found] == [
        f"{name}.py: relu.large.npy beside it could be data of relu.py or of relu.large.py"
        for name in ("relu", "relu.large")
    ]


BUILT = "from torch.utils.cpp_extension import load_inline\n"


@pytest.mark.parametrize(("source", "another"), [(BUILT, True), (f"{BUILT}def (", True), ("", False)])
def test_what_decides_about_builds_is_in_the_keys_of_candidates_that_need_one(tree, source, another):
    """Also of one that no parser accepts, so that the outline's key is the job's."""
    put(tree / "solutions/math/relu/fast.py", source)
    chosen = config(tree, include=[Pattern(candidate="fast")])

    def keys(value):
        here = SURROUNDINGS | {jobs.BUILDS: value}
        (job,) = jobs.plan(chosen, here, Here()).jobs
        (cell,) = jobs.outline(chosen, here, Here()).cells
        assert cell.key == job.key
        return job.key

    assert (keys("gcc 12") != keys("gcc 13")) == another
