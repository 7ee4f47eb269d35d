"""The plot of a run with an executor that runs nothing: resuming, interruption, reports, notes."""

import errno
import io
import json
import os

import msgspec
import pytest
from rich.console import Console

from harness import cli, session
from harness.config import CompileConfig, Pattern, load
from harness.errors import UsageError
from harness.execution import workplace
from harness.records import Record, Status
from harness.sandbox.probe import Found
from harness.store import run_directory
from tests.conftest import CORPUS, HONEST, corpus_config

CONSOLE = Console(quiet=True)


class FakeExecutor:
    """Records every job as incorrect, in order; raises `error` after `limit` jobs."""

    def __init__(self, limit: int = 1000, error: BaseException | None = None) -> None:
        self.limit = limit
        self.error = error
        self.seen: list[str] = []

    def __call__(self, devices, config, logs, seed):
        return self

    def run(self, jobs, report_phase):
        for number, job in enumerate(jobs):
            if number == self.limit and self.error:
                raise self.error
            report_phase("cpu", job.title, "evaluating")
            self.seen.append(job.candidate.name)
            yield Record(
                key=job.key,
                problem=job.problem.id,
                variant=job.variant,
                precision=job.precision,
                candidate=job.candidate.name,
                status=Status.INCORRECT,
                reason="mismatch",
                device="fake",
                baseline="eager",
            )


def run(out, executor, *candidates, **options):
    config = corpus_config(*candidates)
    return session.run(config, out, CONSOLE, command=["test"], make_executor=executor, **options)


@pytest.mark.parametrize(("lanes", "said"), [(1, False), (2, True)])
def test_lanes_that_the_cpu_does_not_have_are_told(lanes, said, tmp_path):
    told = io.StringIO()
    config = msgspec.structs.replace(corpus_config("honest"), lanes=lanes)
    session.run(config, tmp_path, Console(file=told), command=["test"], make_executor=FakeExecutor())
    assert (f"lanes: {lanes} changes nothing here" in told.getvalue()) is said


def test_a_second_run_does_only_what_is_missing(tmp_path):
    first = FakeExecutor(limit=2, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, first, *HONEST)
    assert first.seen == ["honest", "honest_after"]
    assert len(run_directory.read(tmp_path)[1]) == 2
    second = FakeExecutor()
    records = run(tmp_path, second, *HONEST)
    assert second.seen == ["honest_cpp"]
    assert [record.candidate for record in records] == ["honest", "honest_after", "honest_cpp"]
    third = FakeExecutor()
    run(tmp_path, third, *HONEST)
    assert third.seen == []


def files_of(out):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.iterdir() if path.is_file()}


def test_with_another_compiler_what_is_compiled_is_done_again_and_nothing_else(tmp_path, monkeypatch):
    executors = [FakeExecutor(), FakeExecutor()]
    for executor in executors:
        run(tmp_path, executor, "honest", "honest_cpp")
        monkeypatch.setenv("CXXFLAGS", "-O0")
    assert [executor.seen for executor in executors] == [["honest", "honest_cpp"], ["honest_cpp"]]


def test_a_run_with_nothing_to_do_leaves_its_folder_as_it_is(tmp_path):
    run(tmp_path, FakeExecutor(), *HONEST)
    before = files_of(tmp_path)
    assert len(run(tmp_path, FakeExecutor(), *HONEST)) == 3
    assert files_of(tmp_path) == before


def test_a_run_with_nothing_to_do_asks_for_no_sandbox_and_makes_no_executor(tmp_path, monkeypatch):
    run(tmp_path, FakeExecutor(), *HONEST)
    monkeypatch.delattr(workplace.probe, "chosen")
    assert len(run(tmp_path, NotImplemented, *HONEST)) == 3


@pytest.mark.parametrize("name", ["run.json", "results.csv", "leaderboard.md", "report.html"])
def test_a_run_with_nothing_to_do_writes_a_file_again_that_somebody_changed_or_removed(tmp_path, name):
    run(tmp_path, FakeExecutor(), *HONEST)
    kept = (tmp_path / name).read_text()
    (tmp_path / name).write_text("{}")
    run(tmp_path, FakeExecutor(), *HONEST)
    assert len((tmp_path / name).read_text()) > len(kept) / 2
    (tmp_path / name).unlink()
    run(tmp_path, FakeExecutor(), *HONEST)
    assert len((tmp_path / name).read_text()) > len(kept) / 2


def test_a_run_with_nothing_to_do_by_another_config_says_by_which(tmp_path):
    run(tmp_path, FakeExecutor(), *HONEST)
    run(tmp_path, FakeExecutor(), "honest")
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert [one["candidate"] for one in manifest["config"]["include"]] == ["honest"]


def test_candidates_whose_jobs_are_finished_are_not_parsed_again(tmp_path, monkeypatch):
    run(tmp_path, FakeExecutor(), "honest", "honest_after")
    parsed = []
    candidate = session.Reader.candidate

    def counted(reader, source, file):
        parsed.append(file)
        return candidate(reader, source, file)

    monkeypatch.setattr(session.Reader, "candidate", counted)
    assert len(run(tmp_path, FakeExecutor(), *HONEST)) == 3
    assert parsed == ["honest_cpp.py"]


def test_a_candidate_that_is_changed_while_it_is_planned_is_evaluated_as_it_then_is(tmp_path, monkeypatch):
    place = tmp_path / "solutions/toy/scale/mine.py"
    place.parent.mkdir(parents=True)
    text = next((CORPUS / "solutions").rglob("scale/honest.py")).read_text()
    place.write_text(text)
    config = msgspec.structs.replace(corpus_config(), solutions=[str(tmp_path / "solutions")])
    read = session.jobs.read

    def meanwhile(*told):
        place.write_text(f"{text}# later\n")
        return read(*told)

    monkeypatch.setattr(session.jobs, "read", meanwhile)
    (record,) = session.run(config, tmp_path / "run", CONSOLE, command=["test"], make_executor=FakeExecutor())
    monkeypatch.undo()
    assert [job.key for job in session.plan(config).jobs] == [record.key]


def test_fresh_forgets(tmp_path):
    run(tmp_path, FakeExecutor(), *HONEST)
    again = FakeExecutor()
    assert len(run(tmp_path, again, *HONEST, fresh=True)) == 3
    assert len(again.seen) == 3


def test_a_cache_that_is_somebody_else_s_is_refused_before_anything_is_forgotten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/one.tex").write_text("years of work")
    run(tmp_path / "out", FakeExecutor(), *HONEST)
    before = files_of(tmp_path / "out")
    config = corpus_config(*HONEST, compile=CompileConfig(cache_dir=str(tmp_path / "thesis")))
    with pytest.raises(UsageError, match="is no cache folder of Assay's"):
        session.run(config, tmp_path / "out", CONSOLE, command=["x"], make_executor=FakeExecutor(), fresh=True)
    assert files_of(tmp_path / "out") == before
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["one.tex"]


def test_a_record_that_cannot_be_put_together_costs_its_own_job_alone(tmp_path):
    deep = {}
    for _ in range(5000):
        deep = {"a": deep}

    class Deep(FakeExecutor):
        def run(self, jobs, report_phase):
            first, *others = super().run(jobs, report_phase)
            yield from (msgspec.structs.replace(first, evidence=deep), *others)

    first, *others = run(tmp_path, Deep(), *HONEST)
    assert (first.status, first.reason) == (Status.HARNESS_ERROR, "unrecorded")
    assert "RecursionError" in first.message
    assert [record.candidate for record in others] == ["honest_after", "honest_cpp"]
    again = FakeExecutor()
    run(tmp_path, again, *HONEST)
    assert again.seen == ["honest"]


def test_the_run_directory_is_complete_after_an_interruption(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, FakeExecutor(limit=1, error=ZeroDivisionError()), *HONEST)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"run.json", "records.jsonl", "results.csv", "leaderboard.md", "report.html"} <= names
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert manifest["environment"]["torch"]
    assert manifest["finished_at"] >= manifest["started_at"]


def test_only_the_plan_s_records_are_returned(tmp_path):
    run(tmp_path, FakeExecutor(), *HONEST)
    assert [record.candidate for record in run(tmp_path, FakeExecutor(), "honest")] == ["honest"]


def parts_of(out):
    return json.loads((out / "run.json").read_text())["parts"]


def test_each_part_of_a_run_says_which_sandbox_it_had(tmp_path, monkeypatch):
    asked = []

    def chosen(mode, gpu):
        asked.append(mode)
        return Found(layers=("user",)) if len(asked) == 1 else Found(layers=(), missing={"user": "no more"})

    monkeypatch.setattr(workplace.probe, "chosen", chosen)
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, FakeExecutor(limit=2, error=ZeroDivisionError()), *HONEST)
    run(tmp_path, FakeExecutor(), *HONEST)
    first, second = parts_of(tmp_path)
    assert (first["after_line"], first["sandbox"], first["sandbox_missing"]) == (0, ["user"], {})
    assert (second["after_line"], second["sandbox"], second["sandbox_missing"]) == (2, [], {"user": "no more"})
    assert None not in (first["finished_at"], second["finished_at"])
    assert "the sandbox changed during the run" in (tmp_path / "leaderboard.md").read_text()
    run(tmp_path, FakeExecutor(), *HONEST)
    assert parts_of(tmp_path) == [first, second]
    assert run_directory.read(tmp_path)[0]["environment"]["sandbox"] == []
    run(tmp_path, FakeExecutor(), *HONEST, fresh=True)
    assert [part["after_line"] for part in parts_of(tmp_path)] == [0]


def test_a_run_from_before_there_were_parts_is_one(tmp_path):
    run(tmp_path, FakeExecutor(), "honest")
    manifest = json.loads((tmp_path / "run.json").read_text())
    del manifest["parts"]
    run_directory.write_manifest(tmp_path, manifest)
    run(tmp_path, FakeExecutor(), *HONEST)
    first, second = parts_of(tmp_path)
    assert first["sandbox"] == manifest["environment"]["sandbox"]
    assert (first["after_line"], second["after_line"]) == (0, 1)


def test_a_refused_sandbox_forgets_nothing(tmp_path, monkeypatch):
    run(tmp_path, FakeExecutor(), *HONEST)

    def refuse(*_):
        raise UsageError("sandbox: require")

    monkeypatch.setattr(workplace.probe, "chosen", refuse)
    with pytest.raises(UsageError, match="require"):
        run(tmp_path, FakeExecutor(), *HONEST, fresh=True)
    assert len(run_directory.read(tmp_path)[1]) == 3


@pytest.mark.parametrize(
    ("first", "layers", "again"),
    [("off", ("user",), True), ("auto", (), True), ("auto", ("user",), False), ("require", ("user",), False)],
)
def test_what_ran_without_the_whole_sandbox_is_not_finished_where_that_is_required(
    tmp_path, monkeypatch, first, layers, again
):
    def chosen(mode, gpu):
        lacks = mode == "off" or (mode == first and not layers)
        return Found(layers=() if lacks else ("user",), missing={"user": "no"} if lacks else {})

    monkeypatch.setattr(workplace.probe, "chosen", chosen)
    config = corpus_config("honest")
    for mode in (first, "require"):
        executor = FakeExecutor()
        asked = msgspec.structs.replace(config, sandbox=mode)
        session.run(asked, tmp_path, CONSOLE, command=["test"], make_executor=executor)
    assert bool(executor.seen) is again
    session.run(asked, tmp_path, CONSOLE, command=["test"], make_executor=(third := FakeExecutor()))
    assert not third.seen


def test_a_record_that_is_brought_back_has_the_sandbox_that_it_had(tmp_path, monkeypatch):
    place = tmp_path / "sols/toy/scale/mine.py"
    place.parent.mkdir(parents=True)
    texts = [f"{next((CORPUS / 'solutions').rglob('scale/honest.py')).read_text()}# {n}\n" for n in (0, 1)]
    monkeypatch.setattr(workplace.probe, "chosen", lambda mode, gpu: Found(layers=() if mode == "off" else ("user",)))
    config = msgspec.structs.replace(corpus_config(), solutions=[str(tmp_path / "sols")])
    for mode, which, seen in (("off", 0, 1), ("auto", 1, 1), ("auto", 0, 0), ("require", 0, 1), ("require", 1, 0)):
        place.write_text(texts[which])
        executor = FakeExecutor()
        asked = msgspec.structs.replace(config, sandbox=mode)
        session.run(asked, tmp_path / "out", CONSOLE, command=["test"], make_executor=executor)
        assert len(executor.seen) == seen, (mode, which)


def test_reports_have_the_jobs_that_there_still_are(tmp_path):
    folder = tmp_path / "sols/toy/scale"
    folder.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (folder / f"{name}.py").write_text(next((CORPUS / "solutions").rglob("scale/honest.py")).read_text())
    config = msgspec.structs.replace(corpus_config(), solutions=[str(tmp_path / "sols")])
    out = tmp_path / "out"
    # What a call does not ask for is not gone.
    for name in ("a", "b", "c"):
        some = msgspec.structs.replace(config, include=[Pattern(candidate=name)])
        session.run(some, out, CONSOLE, command=["test"], make_executor=FakeExecutor())
    assert [record.candidate for record in run_directory.read(out)[1]] == ["a", "b", "c"]
    (folder / "b.py").rename(folder / "_b.py")
    (folder / "c.py").unlink()
    (folder / "c.py").symlink_to("nowhere")
    session.run(config, out, CONSOLE, command=["test"], make_executor=FakeExecutor())
    manifest, shown = run_directory.read(out)
    assert [record.candidate for record in shown] == ["a"]
    assert [job[:4] for job in manifest["jobs"].values()] == [["toy/scale", "default", "float32", "a"]]
    assert any("c.py" in line for line in manifest["left_out"])
    assert "toy/scale,default,float32,b" not in (out / "results.csv").read_text()


def test_a_run_that_was_killed_says_so_wherever_it_is_shown(tmp_path, capsys):
    for name in ("whole", "killed"):
        run(tmp_path / name, FakeExecutor(), *HONEST)
    journal = tmp_path / "killed/records.jsonl"
    journal.write_text(journal.read_text().splitlines(True)[0])
    said = "the run has not finished: 2 of 3 jobs have no record"
    for form in ("terminal", "markdown", "html"):
        assert cli.main(["report", str(tmp_path / "killed"), "--format", form]) == 0
        assert said in capsys.readouterr().out
    assert cli.main(["report", str(tmp_path / "killed"), "--format", "junit"]) == 0
    suites = capsys.readouterr().out
    assert 'tests="3" failures="1" errors="2"' in suites
    for pair in (("whole", "killed"), ("killed", "whole")):
        words = ["compare", *(str(tmp_path / name) for name in pair)]
        assert cli.main(words) == 0
        assert said in " ".join(capsys.readouterr().out.split())
        assert cli.main([*words, "--fail-on", "slower"]) == 2
        assert said in capsys.readouterr().err


def test_an_out_that_is_a_file_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("not a run")
    with pytest.raises(UsageError, match="Not a directory; choose a folder for this run's files with --out"):
        run(tmp_path / "file", FakeExecutor(), "honest")
    assert (tmp_path / "file").read_text() == "not a run"


def test_a_run_s_folder_with_links_in_it_changes_nothing_of_the_user_s(tmp_path):
    out, home = tmp_path / "out", tmp_path / "home"
    out.mkdir()
    home.mkdir()
    names = ["run.json", "results.csv", "leaderboard.md", "report.html"]
    for name in names:
        (home / name).write_text("{}")
        (out / name).symlink_to(home / name)
    (out / "logs").symlink_to(home)
    with pytest.raises(UsageError, match="holds other things than a run"):
        run(out, FakeExecutor(), "honest")
    (out / "records.jsonl").touch()
    with pytest.raises(UsageError, match="logs: it is a link"):
        run(out, FakeExecutor(), "honest")
    (out / "logs").unlink()
    run(out, FakeExecutor(), "honest")
    assert {(home / name).read_text() for name in names} == {"{}"}
    assert not any((out / name).is_symlink() for name in names)


@pytest.mark.parametrize("victim", ["run.json", "results.csv", "leaderboard.md", "report.html", "reports.sha256"])
def test_a_full_disk_is_one_sentence_and_leaves_no_draft(tmp_path, monkeypatch, victim):
    run(tmp_path, FakeExecutor(), "honest")
    fsync = os.fsync

    def full(file):
        if victim in os.readlink(f"/proc/self/fd/{file}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        UsageError, match=rf"cannot write .*{victim}: No space left on device. Finished results are saved"
    ):
        run(tmp_path, FakeExecutor(), *HONEST)
    kept = {"run.json", "records.jsonl", "results.csv", "leaderboard.md", "report.html", "reports.sha256", "logs"}
    assert {path.name for path in tmp_path.iterdir()} == kept
    monkeypatch.undo()
    assert len(run(tmp_path, FakeExecutor(), *HONEST)) == 3


def test_two_sessions_do_not_share_a_run_directory(tmp_path):
    class Nested(FakeExecutor):
        def run(self, jobs, report_phase):
            with pytest.raises(UsageError, match="another run is writing"):
                run(tmp_path, FakeExecutor(), "honest")
            return super().run(jobs, report_phase)

    run(tmp_path, Nested(), "honest")


def test_claims_of_an_imported_pack_are_beside_the_verdicts(tmp_path, capsys):
    problem = (CORPUS / "problems/toy/scale.py").read_text()
    rows = [{"code": f"import torch\nclass ModelNew: {n}", "ref": problem, "x": n or None, "task": 1} for n in (2.5, 0)]
    (tmp_path / "pack.json").write_text(json.dumps(rows))
    fields = ["--code-field", "code", "--reference-field", "ref", "--speedup-field", "x", "--problem-field", "task"]
    out = tmp_path / "imported"
    assert cli.main(["import", str(tmp_path / "pack.json"), "--out", str(out), "--level", "1", *fields]) == 0
    config = load(out / "imported.yaml", ["device=cpu"])
    records = session.run(config, tmp_path / "run", CONSOLE, command=["test"], make_executor=FakeExecutor())
    assert [(one.problem, one.claimed_status, one.claimed_speedup) for one in records] == [
        ("level1/1", "correct", 2.5),
        ("level1/1", "", None),
    ]
    capsys.readouterr()
    assert cli.main(["report", str(tmp_path / "run"), "--claims"]) == 0
    said = capsys.readouterr().out
    assert "Claims: 1 right for them, refused here" in said
    assert "level1/1/sample_0: theirs correct 2.50x; ours incorrect, mismatch" in said
