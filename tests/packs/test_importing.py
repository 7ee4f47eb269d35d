"""The command: a folder like any other, import.json, and what it says."""

import json
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness import cli, config
from harness.catalog import claims, problems, solutions
from harness.config import PackConfig
from harness.errors import UsageError
from harness.packs import importing, remainder
from harness.packs.names import LONGEST
from harness.reading.reading import Reader
from harness.records import SAMPLE
from tests.packs.conftest import MODEL, NEW

FIELDS = {"code_field": "code", "problem_field": "task", "level_field": "level", "reference_field": "ref"}


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_generations_become_a_folder_that_a_config_runs(tmp_path, checkout, capsys):
    runs = tmp_path / "runs"
    for run, sample in (("a", 0), ("a", 1), ("b", 0)):
        place = runs / run / f"level_1_problem_19_sample_{sample}_kernel.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(NEW)
    (runs / "a" / "level_1_problem_7_sample_0_kernel.py").write_text(NEW)
    (runs / "a" / "eval_results.json").write_text(json.dumps({"19": [{"compiled": True, "correctness": True}]}))
    out = tmp_path / "out"
    assert cli.main(["import", str(runs), "--kernelbench", str(checkout), "--out", str(out)]) == 0
    folder = "solutions/level1/19_ReLU"
    assert files_in(out) == sorted(
        ["import.json", "out.yaml", "problems/level1/19_ReLU.py"]
        + [f"{folder}/{name}.py" for name in ("a-sample_0", "a-sample_1", "b-sample_0")]
    )
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("Imported 3 candidates for 1 problem. To run them: ")
    assert said[1] == "Their sources claim: 2 nothing, 1 correct; 0 with a speedup."
    assert said[2] == "left a/level_1_problem_7_sample_0_kernel.py: KernelBench has no problem '7' in level 1"
    manifest = claims.read(out / claims.MANIFEST)
    first = manifest.candidates[0]
    assert (first.file, first.claim.status) == (f"{folder}/a-sample_0.py", "correct")
    assert first.origin.file == "a/level_1_problem_19_sample_0_kernel.py"
    assert manifest.problems[0].kernelbench
    wanted = config.load(out / "out.yaml")
    with Reader() as reader:
        assert [one.id for one in problems.discover(wanted.problems, reader)] == ["level1/19_ReLU"]
    assert {one.problem for one in solutions.discover(wanted.solutions)} == {"level1/19_ReLU"}


def test_with_require_all_what_is_left_fails(tmp_path, checkout):
    (tmp_path / "level1").mkdir()
    for number in (19, 20):
        (tmp_path / "level1" / f"task_{number}.py").write_text(NEW)
    arguments = ["import", str(tmp_path / "level1"), "--kernelbench", str(checkout)]
    assert cli.main([*arguments, "--out", str(tmp_path / "a")]) == 0
    assert cli.main([*arguments, "--out", str(tmp_path / "b"), "--require", "all"]) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing", "--out", "out"], "there is no such file or folder"),
        (["source", "--out", "source"], "is not an empty folder"),
        (["source", "--out", "out", "--kernelbench", "source"], "no level1/ in "),
        (["source", "--out", "out", "--kernelbench", "kb", "--reference-field", "x"], "choose whose problems"),
        (["source", "--out", "out"], "has nothing to import: task_1.py: its text holds no problem"),
        (["source", "--out", "out", "--kernelbench", "kb"], "it does not say of which level problem 1 is"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(tmp_path, checkout, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "task_1.py").write_text(NEW)
    assert cli.main(["import", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def imported(tmp_path, texts, **wishes) -> claims.Manifest:
    return importing.run(tmp_path / "pack", tmp_path / "out", PackConfig(**wishes), None, texts)


def test_a_text_with_problem_and_candidate_becomes_both(tmp_path, texts):
    other = MODEL.replace("8", "9")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "relu.py").write_text(other + NEW)
    (tmp_path / "pack" / "chat.md").write_text(f"Do\n```\n{MODEL}```\nDone\n```\n{NEW}```\n")
    manifest = imported(tmp_path, texts)
    assert [one.file for one in manifest.problems] == ["problems/pack/chat.py", "problems/pack/relu.py"]
    assert {(tmp_path / "out" / one.file).read_text() for one in manifest.problems} == {MODEL, other}
    assert [one.problem for one in manifest.candidates] == ["pack/chat", "pack/relu"]
    assert (tmp_path / "out" / manifest.candidates[1].file).read_text() == other + NEW


def test_one_problem_for_all_its_samples_and_another_for_another_text(tmp_path, texts):
    rows = [{"code": NEW, "ref": MODEL, "task": 1}, {"code": NEW, "ref": MODEL, "task": 1}]
    rows.append({"code": NEW, "ref": MODEL.replace("8", "9"), "task": 1})
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "t.json").write_text(json.dumps(rows))
    manifest = imported(tmp_path, texts, code_field="code", reference_field="ref", problem_field="task", level=1)
    assert [one.file for one in manifest.problems] == ["problems/level1/1.py", "problems/level1/1_2.py"]
    assert [one.file for one in manifest.candidates] == [
        "solutions/level1/1/sample_0.py",
        "solutions/level1/1/sample_1.py",
        "solutions/level1/1_2/sample_0.py",
    ]


def test_a_samples_number_stays_readable_whatever_its_series_is_called(tmp_path, checkout, texts):
    pack = tmp_path / "pack" / ("gpt-4.1 " + "x" * 100)
    pack.mkdir(parents=True)
    for number in (0, 12):
        (pack / f"level_1_problem_19_sample_{number}_kernel.py").write_text(NEW)
    manifest = importing.run(tmp_path / "pack", tmp_path / "out", PackConfig(), checkout, texts)
    names = [Path(one.file).stem for one in manifest.candidates]
    assert all(len(name) <= LONGEST for name in names)
    found = [SAMPLE.fullmatch(name) for name in names]
    assert [int(one[2]) for one in found] == [0, 12]


def test_a_table_may_say_which_sample_a_row_is(tmp_path, texts):
    rows = [{"code": NEW, "ref": MODEL, "name": "m", "n": number} for number in (7, "8", "eight")]
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "t.json").write_text(json.dumps(rows))
    fields = {"code_field": "code", "reference_field": "ref", "name_field": "name", "sample_field": "n"}
    manifest = imported(tmp_path, texts, **fields)
    assert [Path(one.file).stem for one in manifest.candidates] == ["m-sample_7", "m-sample_8"]
    assert [one.reason for one in manifest.left] == ["its sample is no whole number from 0 to 999999"]


@pytest.mark.parametrize("blocks", ["last", "all"])
def test_an_answer_without_a_candidate_counts_if_it_says_which_sample_it_is(tmp_path, checkout, texts, blocks):
    (tmp_path / "pack/level_1/task_19").mkdir(parents=True)
    (tmp_path / "pack/level_1/task_19/sample_0.md").write_text(f"So\n```\n{NEW}```\n")
    for name in ("sample_1.md", "draft.md"):
        (tmp_path / "pack/level_1/task_19" / name).write_text(f"So\n```python\n{NEW}and here it was cut o")
    manifest = importing.run(tmp_path / "pack", tmp_path / "out", PackConfig(blocks=blocks), checkout, texts)
    first = "sample_0" if blocks == "last" else "sample_0-block_1"
    assert [Path(one.file).stem for one in manifest.candidates] == [first, "sample_1"]
    cut = tmp_path / "out" / manifest.candidates[1].file
    assert cut.read_text().startswith("So\n```python\n")
    # Why it holds none is said of both.
    assert [one.origin.file.rpartition("/")[2] for one in manifest.left] == ["draft.md", "sample_1.md"]


def test_each_block_of_a_transcript_is_a_sample_of_its_own(tmp_path, texts):
    (tmp_path / "pack").mkdir()
    blocks = "".join(f"So\n```\n{NEW.replace('0', str(number))}```\n" for number in range(3))
    (tmp_path / "pack" / "chat.md").write_text(f"Do\n```\n{MODEL}```\n{blocks}")
    manifest = imported(tmp_path, texts, blocks="all")
    assert [one.file for one in manifest.candidates] == [
        f"solutions/pack/chat/chat-block_{number}.py" for number in (2, 3, 4)
    ]


@given(st.text(max_size=50), st.text(max_size=50), st.sampled_from([None, 1, 99999]))
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_of_a_row_leaves_the_folder(tmp_path_factory, texts, problem, name, level):
    place = tmp_path_factory.mktemp("names")
    rows = [{"code": NEW, "ref": MODEL, "task": problem, "name": name, "level": level}]
    (place / "pack").mkdir()
    (place / "pack" / "t.json").write_text(json.dumps(rows))
    fields = {"code_field": "code", "reference_field": "ref", "problem_field": "task", "level_field": "level"}
    manifest = imported(place, texts, name_field="name", **fields)
    assert {path.name for path in place.iterdir()} == {"pack", "out"}
    expected = [manifest.candidates[0].file, manifest.problems[0].file, "import.json", "out.yaml"]
    assert files_in(place / "out") == sorted(expected)
    (found,) = solutions.discover([str(place / "out" / "solutions")])
    assert found.problem == manifest.candidates[0].problem


def test_an_interrupted_import_leaves_nothing(tmp_path, texts, monkeypatch):
    (tmp_path / "pack").mkdir()
    for name in ("a", "b"):
        (tmp_path / "pack" / f"{name}.py").write_text(MODEL + NEW)

    def interrupted(out):
        assert files_in(out) == ["problems/pack/a.py", "solutions/pack/a/a.py", "solutions/pack/a/b.py"]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(importing, "_config", interrupted)
        with pytest.raises(KeyboardInterrupt):
            imported(tmp_path, texts)
    assert len(imported(tmp_path, texts).candidates) == 2


def test_a_folder_that_cannot_be_written_is_a_wrong_argument(tmp_path, texts):
    (tmp_path / "file").write_text("")
    (tmp_path / "pack.py").write_text(MODEL + NEW)
    for place in ("file/out", "x" * 300):
        with pytest.raises(UsageError, match="cannot be written"):
            importing.run(tmp_path / "pack.py", tmp_path / place, PackConfig(), None, texts)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
@example("out\x7f")
@example("a\x85b\u2028c\ufeffd\uffffe\n'\" ")
def test_a_config_names_any_folder(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("any") / f"_{name}"
    (tmp_path_factory.getbasetemp() / "any.yaml").write_bytes(importing._config(folder))
    found = config.load(tmp_path_factory.getbasetemp() / "any.yaml")
    assert (found.problems, found.solutions) == ([str(folder / "problems")], [str(folder / "solutions")])


def test_a_folder_that_no_config_can_name_is_a_wrong_argument(tmp_path, capsys):
    (tmp_path / "a.json").write_text(json.dumps([{"code": NEW, "ref": MODEL}]))
    words = ["import", str(tmp_path / "a.json"), "--code-field", "code", "--reference-field", "ref", "--out"]
    assert cli.main([*words, os.fsdecode(os.fsencode(tmp_path) + b"/out\xff")]) == 2
    assert "its path is not valid UTF-8" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["a.json"]


def test_the_command_to_go_on_with_is_quoted_for_a_shell(tmp_path, capsys):
    (tmp_path / "a.json").write_text(json.dumps([{"code": NEW, "ref": MODEL}]))
    words = ["import", str(tmp_path / "a.json"), "--code-field", "code", "--reference-field", "ref", "--out"]
    assert cli.main([*words, str(tmp_path / "a b; echo $HOME")]) == 0
    hint = capsys.readouterr().out.partition("To run them: ")[2].partition("\n")[0]
    assert shlex.split(hint)[-1] == str(importing.config(tmp_path / "a b; echo $HOME"))


def test_what_is_left_of_a_pack_without_end_is_counted(tmp_path, texts, monkeypatch):
    row = {"level": 1, "task": 19, "code": NEW, "ref": MODEL}
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/a.json").write_text(json.dumps([row, *[0] * 50]))
    (tmp_path / "pack/b.json").write_text(json.dumps([*[row | {"code": None}] * 30, *[{"code": NEW}] * 20]))
    monkeypatch.setattr(remainder, "MOST_LISTED", 10)
    monkeypatch.setattr(remainder, "MOST_REASONS", 2)
    manifest = importing.run(tmp_path / "pack", tmp_path / "out", PackConfig(**FIELDS), None, texts)
    more = [(one.origin.file, one.origin.row) for one in manifest.left[10:]]
    assert more == [("a.json", "40 more"), ("b.json", "30 more"), ("other files", "20 more")]
    assert claims.read(tmp_path / "out" / claims.MANIFEST) == manifest


def test_an_import_that_could_not_be_read_again_is_refused(tmp_path, texts, monkeypatch):
    (tmp_path / "a.json").write_text(json.dumps([{"level": 1, "task": 19, "code": NEW, "ref": MODEL}]))
    monkeypatch.setattr(claims, "MOST_BYTES", 100)
    with pytest.raises(UsageError, match="too many candidates to import at once"):
        importing.run(tmp_path / "a.json", tmp_path / "out", PackConfig(**FIELDS), None, texts)
    assert not list((tmp_path / "out").rglob("*.py"))


def test_what_import_json_says_is_checked(tmp_path):
    (tmp_path / "import.json").write_text('{"source": "x"}')
    with pytest.raises(UsageError, match="import the pack again"):
        claims.read(tmp_path / "import.json")
