"""The starter library: every problem is well formed and has its candidates. That candidates are right, a run tells."""

import ast
from pathlib import Path

import pytest
import torch
from torch import nn

from harness import audit
from harness.catalog import modules, problems, solutions
from harness.config import load
from tests.conftest import Here

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = problems.discover([str(ROOT / "problems")], Here())
CANDIDATES = solutions.discover([str(ROOT / "solutions")])
IDS = [problem.id for problem in PROBLEMS]
# One of each kind of output: `run_eval.py audit problems/ --variant small` goes through all of them.
AUDITED = ["index/embedding", "loss/cross_entropy", "matmul/int8", "norm/rms_norm_residual", "select/top_k"]


def candidates_of(problem: problems.Problem) -> list[solutions.Place]:
    return [candidate for candidate in CANDIDATES if candidate.problem == problem.id]


def constants(candidate: solutions.Place) -> dict[str, str]:
    """The strings that a candidate's module assigns to names."""
    found = {}
    for statement in modules.parse(candidate.path).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
    return found


def test_the_library_is_as_wide_as_it_says() -> None:
    assert len(PROBLEMS) >= 26
    assert {problem.precision for problem in PROBLEMS} == {"float32", "float16", "bfloat16"}


def test_enough_problems_have_candidates_in_cpp_and_triton() -> None:
    def having(prefix: str) -> set[str]:
        return {candidate.problem for candidate in CANDIDATES if candidate.name.startswith(prefix)}

    assert len(having("cpp_")) >= 10
    assert len(having("triton_")) >= 6


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_a_problem_says_what_it_is_and_comes_in_a_small_size(problem: problems.Problem) -> None:
    assert not problem.fault
    assert ast.get_docstring(modules.parse(problem.path))
    assert "small" in problem.variants
    for variant in problem.variants:
        problems.overrides(problem, variant)  # raises where it sets a name that the module does not assign


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_a_problem_runs_in_its_small_size_with_outputs_that_vary(problem: problems.Problem) -> None:
    module = modules.execute(problem.path, problem.variants["small"])
    dtype = getattr(torch, problem.precision)
    torch.manual_seed(1)
    model: nn.Module = module.Model(*module.get_init_inputs()).to(dtype)
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in module.get_inputs()]
    with torch.no_grad():
        output = model(*inputs)
    for leaf in output if isinstance(output, tuple) else (output,):
        assert leaf.double().isfinite().all()
        assert leaf.double().std() > 0


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_a_problem_has_at_least_two_cuda_candidates(problem: problems.Problem) -> None:
    with_cuda = [candidate for candidate in candidates_of(problem) if "CUDA_SOURCE" in constants(candidate)]
    assert len(with_cuda) >= 2


@pytest.mark.parametrize("candidate", CANDIDATES, ids=[f"{c.problem}/{c.name}" for c in CANDIDATES])
def test_a_candidate_explains_itself_and_solves_a_problem_that_exists(candidate: solutions.Place) -> None:
    assert candidate.problem in IDS
    assert 20 <= len(Here.read(candidate.path).caption) <= 118
    tree = modules.parse(candidate.path)
    assert len((ast.get_docstring(tree) or "").splitlines()) >= 3  # the idea, bytes and FLOPs, what limits it
    assert "ModelNew" in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize("candidate", CANDIDATES, ids=[f"{c.problem}/{c.name}" for c in CANDIDATES])
def test_every_launch_is_checked_and_on_the_current_stream(candidate: solutions.Place) -> None:
    source = constants(candidate).get("CUDA_SOURCE", "")
    assert source.count("<<<") == source.count("C10_CUDA_KERNEL_LAUNCH_CHECK();")
    assert not source or "getCurrentCUDAStream()" in source


@pytest.mark.slow
def test_problems_of_each_kind_tell_right_from_wrong() -> None:
    told: list[str] = []
    rows = audit.run(
        [str(ROOT / "problems" / f"{name}.py") for name in AUDITED],
        variants=["small"],
        constants={},
        device="cpu",
        compiled=False,
        timeout_s=120.0,
        seed=1,
        at_once=2,
        planned=lambda count, sentence: told.append(sentence),
        started=lambda job: None,
    )
    assert {row.problem: row.verdict for row in rows} == dict.fromkeys(AUDITED, "sound")
    assert told == [f"{len(AUDITED)} audits at variant small on cpu"]


def test_names_of_extensions_are_told_apart() -> None:
    names = []
    for candidate in CANDIDATES:
        for node in ast.walk(modules.parse(candidate.path)):
            match node:
                case ast.Call(func=ast.Name(id="load_inline"), args=[ast.Constant(value=name), *_]):
                    names.append(name)
                case ast.Call(func=ast.Name(id="load_inline"), keywords=keywords):
                    names += [k.value.value for k in keywords if k.arg == "name" and isinstance(k.value, ast.Constant)]
    assert len(names) == len(set(names))


def test_the_starter_config_is_valid() -> None:
    config = load(ROOT / "configs" / "starter.yaml")
    assert config.variants == ["default"]
