"""Whatever lies in the folder of candidates and whatever is said of it: a record each, a run that ends and resumes."""

import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from harness import cli, session
from harness.catalog import sources
from harness.config import Config
from harness.environment import Device
from harness.records import Outcome, Status
from harness.reports.terminal import leaderboard
from harness.store import run_directory
from harness.supervise import recording
from harness.supervise.builds import BuildResult
from harness.supervise.recording import Conclusion
from tests.conftest import CORPUS, dump_config
from tests.test_session import CONSOLE

QUOTES = b"'''"
HOSTILE = {
    b"surrogate.py": b'"""\\ud800"""\nimport \\ud800\n',
    b"\xff\xfe.py": b"",
    b"sum.py": b"x = " + b"1 + " * 4000 + b"1\n",
    b"elif.py": b"if x: pass\n" + b"elif x: pass\n" * 4000,
    b"spaces.py": b"C = " + QUOTES + b"(__global__" + b" \n" * 500_000 + QUOTES,
    b"raw.py": b"C = " + QUOTES + b"(__global__" + b'R"a(' * 250_000 + QUOTES,
    b"huge.py": b"#" * (5 << 20),
    b"nul.py": b"\0" * 100,
    b"cookie.py": b"# coding: klingon\n",
    b"=1+1.py": b'"""=cmd|\' /C calc\'!A0"""',
    b"\x1b[2J\xe2\x80\xae.py": b'"""\x1b]0;title\x07 [red]not markup[/] | <script> `x` \xe2\x80\xae"""',
    b"[bold]x[.py": b"",
    b"*.py": b"",
    b"a**b.py": b"",
    b"baseline:eager.py": b"",
    b"n" * 250 + b".py": b"",
    b"line\nbreak.py": b"",
}


class Recording:
    """Makes the record of a candidate as far as reading it tells, by the harness's own hands; runs nothing."""

    def __init__(self, message="", evidence=None):
        self.outcome = Outcome(status=Status.INCORRECT, reason="mismatch", message=message, evidence=evidence or {})
        self.jobs = []

    def __call__(self, devices, config, logs, seed):
        self.config = config
        self.logs = logs
        return self

    def run(self, jobs, report_phase):
        self.jobs = jobs
        self.logs.mkdir(exist_ok=True)
        for job in jobs:
            report_phase("cpu", job.title, "evaluating")
            for name in (recording.file_name(job), recording.build_name(job), recording.group_name(job)):
                (self.logs / f"{name}.baseline.txt").touch()
            conclusion = Conclusion(outcome=job.candidate.fault or self.outcome)
            build = BuildResult(warnings=[self.outcome.message])
            device = Device(kind="cpu", spec="cpu", name="made up")
            yield recording.record(job, build, conclusion, device, self.config, phases_s={}, wall_s=0.0, log="")


def put(folder, files):
    """A config of a problem and of these candidates, by their files' names."""
    place = folder / "solutions/toy/scale"
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with open(os.fsencode(place) + b"/" + name, "wb") as file:
            file.write(content)
    return Config(problems=[str(CORPUS / "problems/toy/scale.py")], solutions=[str(folder / "solutions")], device="cpu")


def harmless(text):
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_every_hostile_file_gets_a_record_and_the_run_resumes(tmp_path):
    config = put(tmp_path, HOSTILE)
    text = "\x1b[31m\u202e" + "x" * 7_000_000
    first = Recording(text, {"deep": {"text": text}})
    console = Console(file=io.StringIO(), width=120)
    records = session.run(config, tmp_path / "run", console, command=["test"], make_executor=first)
    assert len(records) == len(HOSTILE)
    reasons = {record.candidate: record.reason for record in records}
    assert reasons["huge"] == "source_too_large"
    assert sum(reason == "unreadable" for reason in reasons.values()) == 1
    # What is PyTorch's own has a name that nobody else can have.
    assert "baseline:eager" not in reasons
    # None of their names is a pattern for other candidates' data.
    assert all(len(sources.own_files(job.candidate.path)) == 1 for job in first.jobs)
    again = Recording()
    assert len(session.run(config, tmp_path / "run", CONSOLE, command=["test"], make_executor=again)) == len(HOSTILE)
    assert again.jobs == []
    manifest, read = run_directory.read(tmp_path / "run")
    leaderboard.show(read, console, manifest)
    journal = (tmp_path / "run/records.jsonl").read_bytes()
    assert len(journal) < 40_000 * len(HOSTILE)
    shown = console.file.getvalue()
    names = ("leaderboard.md", "results.csv", "report.html")
    page, table, html = texts = [(tmp_path / "run" / name).read_text() for name in names]
    said = dict(zip((*names, "journal", "shown"), (*texts, journal.decode(), shown), strict=True))
    assert [name for name, words in said.items() if not harmless(words)] == []
    assert "<script>" not in page
    assert html.count("<script>") == 1
    assert "[red]not markup[/]" in shown
    assert "\ntoy/scale,default,float32,'=1+1," in table


def test_a_dry_run_shows_names_as_they_may_be_shown(tmp_path, capsys):
    config = put(tmp_path, dict.fromkeys(HOSTILE, b""))
    (tmp_path / "solutions/toy/scale/\x1b[2Jfolder.py").mkdir()
    assert cli.main(["run", str(dump_config(config, tmp_path / "c.yaml")), "--dry-run"]) == 0
    told = capsys.readouterr()
    assert told.out.count("\n") == len(HOSTILE)
    assert "folder.py: a folder" in told.err
    assert harmless(told.out + told.err)


def test_a_mistake_in_a_strange_place_is_one_line(tmp_path, capsys):
    assert cli.main(["run", str(dump_config(Config(problems=["/\x1b[2J"], solutions=["x"]), tmp_path / "c.yaml"))]) == 2
    error = capsys.readouterr().err
    assert "matches no Python file" in error
    assert harmless(error)


names = st.binary(min_size=1, max_size=60).filter(lambda name: not {0, 47} & set(name) and name[:1] not in b"._")
values = st.lists(st.integers() | st.floats() | st.text(st.characters()))


@settings(max_examples=15, deadline=None)
@given(
    files=st.dictionaries(names, st.binary(max_size=300), min_size=1, max_size=12),
    message=st.text(st.characters(), max_size=100),
    evidence=st.dictionaries(st.text(st.characters()), values),
)
def test_any_candidates_and_any_words_are_recorded_once(tmp_path_factory, files, message, evidence):
    folder = tmp_path_factory.mktemp("any")
    config = put(folder, {name + b".py": content for name, content in files.items()})
    records = session.run(config, folder / "run", CONSOLE, command=["test"], make_executor=Recording(message, evidence))
    assert len({record.candidate for record in records}) == len(files)
    assert len(run_directory.read(folder / "run")[1]) == len(files)
    again = Recording()
    session.run(config, folder / "run", CONSOLE, command=["test"], make_executor=again)
    assert again.jobs == []


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_two_files_never_share_a_name(tmp_path, name):
    config = put(tmp_path, {name: b""})
    (job,) = session.plan(config).jobs
    # A second file, called what the first one is shown as.
    put(tmp_path, {job.candidate.name.encode() + b".py": b""})
    assert len({job.candidate.name for job in session.plan(config).jobs}) == len(
        list((tmp_path / "solutions/toy/scale").iterdir())
    )
