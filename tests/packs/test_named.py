"""Packs that a run names itself: found among folders of the run's own layout, imported once, resumed."""

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from harness import cli, session
from harness.catalog import problems, solutions
from harness.config import Config, PackConfig
from harness.errors import UsageError
from harness.options import options
from harness.packs import named
from harness.reading.reading import Reader
from tests.packs.conftest import MODEL, NEW
from tests.test_session import CONSOLE, FakeExecutor

FIELDS = PackConfig(code_field="code", reference_field="ref", problem_field="task", level=1)


@pytest.fixture
def pack(tmp_path, checkout, monkeypatch):
    """A folder of generations, one of them for a problem that is not there."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "runs"
    place.mkdir()
    for number in (0, 1):
        (place / f"level_1_problem_19_sample_{number}_kernel.py").write_text(NEW)
    (place / "level_1_problem_7_sample_0_kernel.py").write_text(NEW)
    (place / "eval_results.json").write_text(json.dumps({"19": [{"compiled": True, "correctness": True}]}))
    return place


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "pack.json"
    path.write_text(json.dumps([{"code": NEW, "ref": MODEL, "task": number} for number in (1, 2)]))
    return path


def selected(config: Config, reader) -> tuple[list[str], list[str], list[str]]:
    """Problems, candidates by problem, and notes."""
    changed, notes, _ = named.resolved(config, reader)
    with Reader() as process:
        owners = [one.id for one in problems.discover(changed.problems, process)]
    return owners, [f"{one.problem}/{one.name}" for one in solutions.discover(changed.solutions)], notes


@pytest.mark.parametrize("named_as", ["kb", "kb/KernelBench", "kb/KernelBench/level1", "kb/KernelBench/level1/19*.py"])
def test_a_checkout_among_the_problems_is_what_a_pack_solves(tmp_path, pack, texts, named_as):
    config = Config(problems=[str(tmp_path / named_as)], solutions=[str(pack)])
    owners, candidates, (note,) = selected(config, texts)
    assert "level1/19_ReLU" in owners
    assert ("level2/19_Other" in owners) is (named_as in ("kb", "kb/KernelBench"))
    assert candidates == ["level1/19_ReLU/sample_0", "level1/19_ReLU/sample_1"]
    assert note.startswith(f"pack {pack}: 2 candidates for 1 problem (KernelBench's), 1 left (import.json says why); ")


def test_a_pack_that_is_named_among_the_problems_brings_its_own(table, texts):
    config = Config(problems=[str(table)], solutions=[str(table)], packs=FIELDS)
    owners, candidates, (note,) = selected(config, texts)
    assert owners == ["level1/1", "level1/2"]
    assert candidates == ["level1/1/sample_0", "level1/2/sample_0"]
    assert "(its own)" in note


@pytest.mark.parametrize("beside", [[], ["own"], ["other.json"]])
def test_a_pack_brings_no_problems_that_nobody_asked_for(tmp_path, table, texts, beside):
    """Its text would run in the judge, which has no sandbox."""
    (tmp_path / "own/set").mkdir(parents=True)
    (tmp_path / "own/set/add.py").write_text(MODEL)
    shutil.copy(table, tmp_path / "other.json")
    config = Config(problems=[str(tmp_path / one) for one in beside], solutions=[str(table)], packs=FIELDS)
    with pytest.raises(UsageError, match="is a pack, and whose problems it solves is not said"):
        named.resolved(config, texts)
    assert not (tmp_path / "cache/packs").exists()


@pytest.mark.parametrize(
    "name", ["level1_task_19.py", "level_1_problem_19_sample_0_kernel.py", "answer.md", "level_1/task_19.py", "x.json"]
)
@pytest.mark.parametrize("part", ["", "set", "set/add"])
def test_no_file_makes_a_pack_of_a_folder_that_is_laid_out_for_the_problems(tmp_path, texts, name, part):
    (tmp_path / "own/set").mkdir(parents=True)
    (tmp_path / "own/set/add.py").write_text(MODEL)
    for file in ("honest.py", name):
        (tmp_path / "theirs/set/add" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "theirs/set/add" / file).write_text(MODEL + NEW)
    config = Config(problems=[str(tmp_path / "own")], solutions=[str(tmp_path / "theirs" / part)])
    assert named.resolved(config, texts) == (config, [], [])


def test_what_a_pack_left_is_told(pack, tmp_path, texts):
    config = Config(problems=[str(tmp_path / "kb")], solutions=[str(pack)])
    (note,) = named.resolved(config, texts).left_out
    assert "1 left" in note
    (pack / "level_1_problem_7_sample_0_kernel.py").unlink()
    (pack / "generation_config.yaml").write_text("")
    assert named.resolved(config, texts).left_out == []


def test_what_was_imported_is_no_pack_itself(tmp_path, table, texts):
    first, *_ = named.resolved(Config(problems=[str(table)], solutions=[str(table)], packs=FIELDS), texts)
    for place in ("problems", "solutions"):
        shutil.copytree(tmp_path / getattr(first, place)[0], tmp_path / "own" / place)
    config = Config(problems=[str(tmp_path / "own/problems")], solutions=[str(tmp_path / "own/solutions")])
    assert selected(config, texts) == (["level1/1", "level1/2"], ["level1/1/sample_0", "level1/2/sample_0"], [])


def test_a_pack_is_kept_once_and_again_when_anything_of_it_changes(pack, tmp_path, texts, monkeypatch):
    done = []
    real = named._replace
    monkeypatch.setattr(named, "_replace", lambda *given: done.append(1) or real(*given))
    config = Config(problems=[str(tmp_path / "kb")], solutions=[str(pack)])
    first, again = named.resolved(config, texts), named.resolved(config, texts)
    assert len(done) == 1
    assert again[0] == first[0]
    assert "imported into" in first[1][0]
    assert "as imported before" in again[1][0]
    (pack / "level_1_problem_19_sample_2_kernel.py").write_text(NEW)
    changed, *_ = named.resolved(config, texts)
    assert len(done) == 2
    assert changed.solutions != first[0].solutions
    named.resolved(msgspec.structs.replace(config, packs=PackConfig(blocks="all")), texts)
    problem = tmp_path / "kb/KernelBench/level1/19_ReLU.py"
    problem.write_text("# changed")
    named.resolved(config, texts)
    assert len(done) == 4


@pytest.mark.parametrize("elsewhere", [False, True])
def test_another_pack_of_the_same_name_size_and_time_is_imported_itself(table, tmp_path, texts, elsewhere):
    def imported(path) -> str:
        places = Config(problems=[str(path)], solutions=[str(path)], packs=FIELDS)
        (folder,) = named.resolved(places, texts).config.solutions
        return (tmp_path / folder / "level1/1/sample_0.py").read_text()

    before = table.stat()
    assert imported(table) == NEW
    other = tmp_path / "other" / table.name if elsewhere else table
    other.parent.mkdir(exist_ok=True)
    other.write_text(table.read_text().replace("min=0", "min=9"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert imported(other) == NEW.replace("min=0", "min=9")


def test_an_import_that_was_killed_is_done_again(pack, tmp_path, texts):
    config = Config(problems=[str(tmp_path / "kb")], solutions=[str(pack)])
    changed, *_ = named.resolved(config, texts)
    folder = tmp_path / changed.solutions[0]
    (folder.parent / "import.json").unlink()
    (folder / "level1/19_ReLU/sample_0.py").write_text("half")
    named.resolved(config, texts)
    assert (folder / "level1/19_ReLU/sample_0.py").read_text() == NEW


def put_other_text(folder):
    (folder / "problems/level1/1.py").write_text("import os")


def put_another_problem(folder):
    (folder / "problems/level1/3.py").write_text("import os")


def put_a_link(folder):
    (folder / "problems/level1/1.py").rename(folder.parents[2] / "1.py")
    (folder / "problems/level1/1.py").symlink_to(folder.parents[2] / "1.py")


def put_a_linked_folder(folder):
    folder.rename(folder.parents[2] / "elsewhere")
    folder.symlink_to(folder.parents[2] / "elsewhere")


def put_a_config(folder):
    (folder / f"{folder.name}.yaml").write_text("problems: [elsewhere]")


@pytest.mark.parametrize("put", [put_other_text, put_another_problem, put_a_link, put_a_linked_folder, put_a_config])
def test_what_is_in_the_cache_counts_only_if_the_pack_gives_the_same(table, texts, put):
    """A repository may bring the pack and a cache folder, with an import of it in which other problems lie."""
    config = Config(problems=[str(table)], solutions=[str(table)], packs=FIELDS)
    folder = Path(named.resolved(config, texts).config.problems[0]).parent
    honest = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    put(folder)
    changed, (note,), _ = named.resolved(config, texts)
    assert Path(changed.problems[0]).parent == folder
    assert "imported into" in note
    assert not folder.is_symlink()
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == honest


def test_a_lock_is_no_file_of_the_user_s(table, texts, tmp_path, monkeypatch):
    config = Config(problems=[str(table)], solutions=[str(table)], packs=FIELDS)
    monkeypatch.setattr(named, "_digest", lambda *given: "0" * 64)
    (tmp_path / "cache/packs").mkdir(parents=True)
    (tmp_path / "diary").write_text("the user's")
    (tmp_path / f"cache/packs/pack-{'0' * 16}.lock").symlink_to(tmp_path / "diary")
    with pytest.raises(UsageError, match=r"\.lock cannot be written: "):
        named.resolved(config, texts)
    assert (tmp_path / "diary").read_text() == "the user's"


def test_a_run_of_a_pack_resumes_and_has_its_claims(pack, tmp_path):
    config = Config(problems=[str(tmp_path / "kb")], solutions=[str(pack)], device="cpu")
    first, second = FakeExecutor(), FakeExecutor()
    for executor in (first, second):
        out = tmp_path / "out"
        records = session.run(config, out, CONSOLE, command=["test"], make_executor=executor)
    assert (first.seen, second.seen) == (["sample_0", "sample_1"], [])
    assert [one.claimed_status for one in records] == ["correct", ""]


def test_the_command_line_takes_packs_too(table, capsys):
    fields = {"code_field": "code", "reference_field": "ref", "problem_field": "task", "level": "1"}
    sets = [word for name, value in fields.items() for word in ("--set", f"packs.{name}={value}")]
    places = ["--problems", str(table), "--solutions", str(table)]
    arguments = ["run", "configs/quickstart.yaml", *places, "--variant", "default", "--device", "cpu", "--dry-run"]
    assert cli.main([*arguments, *sets]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [f"level1/{number} default float32 sample_0" for number in (1, 2)]
    assert said.err.startswith(f"note: pack {table}: 2 candidates for 2 problems (its own); imported into ")


def test_what_is_missing_is_said_in_words_of_the_config(table, texts):
    with pytest.raises(UsageError, match=r"name the field that holds code .*--set packs.code_field"):
        named.resolved(Config(problems=[str(table)], solutions=[str(table)]), texts)


@pytest.mark.parametrize(
    ("files", "is_one"),
    [
        (["level_1_problem_19_sample_0_kernel.py"], True),
        (["model/level_1/task_19.py", "README.md"], True),
        (["chat_1.md", "chat_2.md"], True),
        (["rows.jsonl"], True),
        (["relu/fast.py", "relu/README.md", "relu/fast.json"], False),
        (["level1/19_ReLU/sample_0.py"], False),
        (["level1/19_ReLU/task_2.py"], False),
        (["relu/task_2.py"], False),
        (["2024_runs/level_1_problem_19_sample_0_kernel.py"], True),
        (["notes.png"], False),
        ([], False),
    ],
)
def test_a_folder_is_a_pack_by_the_names_in_it(tmp_path, files, is_one):
    folder = tmp_path / "place"
    folder.mkdir()
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    assert named._is_pack(str(folder)) is is_one


def test_the_librarys_own_folders_are_no_packs(texts):
    config = Config()
    assert named.resolved(config, texts) == (config, [], [])


def test_what_is_run_as_one_problems_candidate_is_no_pack(pack, texts):
    place = pack / "level_1_problem_19_sample_0_kernel.py"
    config = Config(problems=["problems/attention/sdpa.py"], solutions=[str(place)], solves="attention/sdpa")
    assert named.resolved(config, texts) == (config, [], [])


def test_every_field_option_of_import_is_a_key():
    keys = {field.name for field in msgspec.structs.fields(PackConfig) if field.name.endswith("_field")}
    assert keys == {f"{name.replace('-', '_')}_field" for name in options.FIELDS}


@pytest.mark.parametrize(
    "entry", ["", "~nobody_of_that_name/x", "x" * 5000, "a\0b", "/nonexistent", "kb/*/[*.py", "\udcff"]
)
def test_what_is_no_path_is_left_to_who_reads_it(texts, entry):
    config = Config(problems=[entry], solutions=[entry])
    assert named.resolved(config, texts) == (config, [], [])
