"""Files to begin with are right as they are, and one candidate can be run without a config."""

import ast
import json
from pathlib import Path

import pytest

from harness import cli
from harness.catalog import starting_points
from harness.errors import UsageError
from tests.conftest import Here


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_problem_and_a_candidate_of_it_pass(here, capsys):
    assert cli.main(["new", "problem", "mine/scaled"]) == 0
    assert cli.main(["new", "solution", "mine/scaled/first"]) == 0
    assert "next: " in capsys.readouterr().out
    words = ["run", "solutions/mine/scaled/first.py", "--variant", "small", "--device", "cpu", "--require", "passed"]
    assert cli.main([*words, "--set", "timing.budget_s=1", "--set", "timing.max_pairs=12"]) == 0
    assert "mine/scaled · small · float32" in capsys.readouterr().out
    # Not by the file's name alone: another problem's candidate may have that, too.
    assert [path.name for path in (here / "results").iterdir()] == ["mine.scaled.first"]


LIBRARY = sorted((Path(__file__).parents[2] / "problems").glob("*/*.py"))


@pytest.mark.parametrize("problem", LIBRARY, ids=lambda path: path.stem)
def test_a_candidate_of_a_problem_of_the_library_has_all_that_its_class_needs(here, problem):
    path = starting_points.solution(f"{problem.parent.name}/{problem.stem}/mine", here)
    tree = ast.parse(path.read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    assert "ModelNew" in defined
    assert not defined & {"Model", "get_inputs", "get_init_inputs"}
    assert Here.read(path).fault is None
    scope: dict = {}
    exec(compile(tree, path.name, "exec"), scope)
    assert scope["ModelNew"]


def test_constants_are_kept_only_where_the_class_uses_them(here):
    (here / "problems/a").mkdir(parents=True)
    (here / "problems/a/b.py").write_text(
        "import torch\n\nEPS = 1e-5\nrows = 4\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return super(Model, self).training + x + EPS  # of Model\n\n\ndef get_inputs():\n"
        "    return [torch.rand(rows)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    text = starting_points.solution("a/b/c", here).read_text()
    assert "EPS = 1e-5" in text
    assert "rows" not in text
    assert "super(ModelNew, self)" in text


def test_names_may_begin_with_a_digit_and_a_variant_is_named_only_where_there_is_one(here, capsys):
    (here / "problems/1st").mkdir(parents=True)
    source = "import torch\nVARIANTS = {}\nclass Model(torch.nn.Module): ...\ndef get_inputs(): ...\n"
    for name, variants in (("19_ReLU", {}), ("20_Tanh", {"small": {}})):
        (here / f"problems/1st/{name}.py").write_text(source.format(variants))
        assert cli.main(["new", "solution", f"1st/{name}/2_mine"]) == 0
    steps = [line.partition(" run ")[2] for line in capsys.readouterr().out.splitlines() if "next" in line]
    assert steps == ["solutions/1st/19_ReLU/2_mine.py", "solutions/1st/20_Tanh/2_mine.py --variant small"]


def test_nothing_is_replaced_and_names_have_their_form(here):
    path = starting_points.problem("mine/one", here)
    path.write_text("mine")
    for act, said in (
        (lambda: starting_points.problem("mine/one", here), "is there already"),
        (lambda: starting_points.problem("../one", here), "no name of the form SET/NAME"),
        (lambda: starting_points.solution("mine/one", here), "SET/PROBLEM/NAME"),
        (lambda: starting_points.solution("attention/spda/x", here), "did you mean 'attention/sdpa'"),
    ):
        with pytest.raises(UsageError, match=said):
            act()
    assert path.read_text() == "mine"


def test_a_candidate_anywhere_is_run_on_the_problem_that_is_named(here, capsys):
    (here / "kernel.py").write_text("class ModelNew: ...\n")
    assert cli.main(["run", "kernel.py", "--problem", "attention/sdpa", "--dry-run", "--device", "cpu"]) == 0
    assert capsys.readouterr().out == "attention/sdpa default float16 kernel\n"
    assert cli.main(["run", "kernel.py", "--dry-run"]) == 2
    assert "name it: --problem SET/NAME" in capsys.readouterr().err
    (here / "sdpa_mine.py").write_text("class ModelNew: ...\n")
    assert cli.main(["run", "sdpa_mine.py", "--dry-run"]) == 2
    assert "did you mean --problem attention/sdpa?" in capsys.readouterr().err
    assert cli.main(["run", "kernel.py", "--problem", "attention/spda", "--dry-run"]) == 2
    assert "did you mean 'attention/sdpa'" in capsys.readouterr().err
    assert cli.main(["run", "configs/quickstart.yaml", "--problem", "attention/sdpa", "--dry-run"]) == 2
    assert "goes with a candidate's file" in capsys.readouterr().err


def test_the_problem_of_one_candidate_is_looked_for_where_problems_says(here, capsys):
    theirs, mine = here / "bench/level1", here / "level1/19_ReLU/mine.py"
    for path in (theirs / "19_ReLU.py", theirs / "20_Tanh.py", mine, here / "kernel.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("class Model: ...\ndef get_inputs(): ...\nclass ModelNew: ...\n")

    def jobs(*words):
        code = cli.main(["run", *words, "--problems", str(here / "bench"), "--dry-run", "--device", "cpu"])
        told = capsys.readouterr()
        return told.err if code else told.out.split()[0]

    assert jobs(str(mine)) == "level1/19_ReLU"
    for name in ("level1/20_Tanh", "20_Tanh", str(theirs / "20_Tanh.py")):
        assert jobs(str(here / "kernel.py"), "--problem", name) == "level1/20_Tanh"
    assert "did you mean 'level1/20_Tanh'" in jobs(str(here / "kernel.py"), "--problem", "level1/20_Tahn")
    assert "its folders do not tell" in jobs(str(here / "kernel.py"))


def test_what_the_doctor_found_can_be_read_by_programs(capsys):
    cli.main(["doctor", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["conclusion"]
    assert "Python" in {one["name"] for one in told["found"]}
    assert not [one for one in told["found"] if one["ok"] and one["lack"]]
