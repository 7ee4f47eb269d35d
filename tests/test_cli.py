"""The command line as its users meet it: exit codes, sentences, speed of the light verbs."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness import audit as session_audit
from harness import cli, session
from harness.commands import audit, report, run
from harness.config import Pattern
from harness.options import options
from harness.records import Status
from harness.sandbox import probe
from tests.conftest import CORPUS, HONEST, corpus_config, dump_config
from tests.test_session import CONSOLE, FakeExecutor

ROOT = Path(__file__).resolve().parents[1]


def run_eval(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "run_eval.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, **options)


@pytest.fixture
def finished(tmp_path):
    session.run(corpus_config(*HONEST), tmp_path, CONSOLE, command=["test"], make_executor=FakeExecutor())
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rnu"], "invalid choice: 'rnu'; did you mean 'run'?; see run_eval.py --help"),
        (["report", "x", "--format", "htlm"], "'htlm'; did you mean 'html'?; see run_eval.py report --help"),
        (["run", "x", "--varient", "y"], "--varient y; did you mean '--variant'?; see run_eval.py run --help"),
        (["run", "x", "y"], "unrecognized arguments: y; see run_eval.py run --help"),
        (["run"], "the following arguments are required: CONFIG.yaml"),
        (["run", "nothing.yaml"], "cannot read the config nothing.yaml"),
        (["run", "configs/quickstart.yaml", "--require", "pased"], "did you mean 'passed'?"),
        (["run", "configs/quickstart.yaml", "--device", "gpu"], "unknown device 'gpu'; valid: auto, cpu, cuda, cuda:N"),
        (["run", "configs/quickstart.yaml", "--problems", "/nonexistent"], "'/nonexistent' matches no Python file"),
        (["run", "solutions/attention"], "--solutions solutions/attention --problems PROBLEMS --variant default"),
        (["report", "/nonexistent"], "/nonexistent is not a run directory"),
        (["report", ""], "an empty path; is a variable not set?"),
        (["audit", "x", "--constant", "N={[1]:2}"], "write it as NAME=VALUE, with a number or another literal"),
        (["audit", "x", "--constant", "N=1j"], "write it as NAME=VALUE, with a number or another literal"),
        (["check", "x", "--timeout", "nan"], "'nan' is no number above 0"),
        (["check", "x", "--timeout", "1e300"], "is no number above 0"),
        (["check", "x", "--timeout", "-1"], "'-1' is no number above 0"),
        (["check", "x", "--jobs", "0"], "'0' is no whole number from 1"),
        (["run", "x", "--seed", "99999999999999999999999"], "is no whole number from 0"),
        (["serve", "x", "--max-disk", "inf"], "'inf' is no number above 0"),
        (["serve", "x", "--port", "65536"], "'65536' is no whole number from 1 to 65535"),
        (["new", "problem", f"a/{'q' * 300}"], "is no name of the form"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, sentence, capsys):
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert error.startswith("error: ")


@pytest.mark.parametrize(
    "command", ["new problem own/mine --root {}", "run configs/quickstart.yaml --out {}", "report x"]
)
@pytest.mark.parametrize(
    ("name", "said", "sentence"),
    [
        ("ASSAY_MEMORY_FLOOR", "abc", "ASSAY_MEMORY_FLOOR is 'abc': no share of the memory from 0.03 to 0.9"),
        ("ASSAY_MEMORY_FLOOR", "nan", "ASSAY_MEMORY_FLOOR is 'nan'"),
        ("ASSAY_MEMORY_FLOOR", "2", "ASSAY_MEMORY_FLOOR is '2'"),
        ("TMPDIR", "/nonexistent", "TMPDIR is /nonexistent, which is no folder to write to"),
        ("TMPDIR", "/dev/null", "TMPDIR is /dev/null"),
    ],
)
def test_a_variable_that_could_only_be_ignored_is_a_sentence(
    name, said, sentence, command, monkeypatch, capsys, tmp_path
):
    monkeypatch.setenv(name, said)
    assert cli.main(command.format(tmp_path / "new").split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {sentence}")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "command", ["new problem own/mine --root {}", "run configs/quickstart.yaml --out {}/out", "report x"]
)
def test_a_working_folder_that_is_gone_is_a_sentence(command, tmp_path):
    (tmp_path / "gone").mkdir()
    script = f"import os, runpy, sys; os.chdir({str(tmp_path / 'gone')!r}); os.rmdir(os.getcwd()); "
    script += f"sys.argv = {['run_eval.py', *command.format(tmp_path).split()]!r}; "
    script += f"runpy.run_path({str(ROOT / 'run_eval.py')!r}, run_name='__main__')"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (2, "error: the working folder is gone; change to one that exists\n")
    assert not (tmp_path / "out").exists()


# A folder that nobody may look into, where the tests may not look into that process.
CLOSED = "/proc/1/cwd/x"


@pytest.mark.parametrize("place", ["LOOP", "PROC", CLOSED, f"{CLOSED}.py", "x" * 300, f"{'x' * 300}.py"])
@pytest.mark.parametrize(
    "command",
    [
        "check {}",
        "audit {}",
        "run {}",
        "run {} --dry-run",
        "run {} --problem attention/sdpa --dry-run",
        "run solutions/attention/sdpa/flash_wide_head.py --problem {} --dry-run",
        "run configs/quickstart.yaml --dry-run --problems {}",
        "run configs/quickstart.yaml --dry-run --solutions {}",
        "run configs/quickstart.yaml --device cpu --out {}/y",
        "new problem own/mine --root {}",
        "new solution attention/sdpa/mine --root {}",
        "import {} --out {}/out",
        "import tests/packs/data --kernelbench {} --out {}/out",
        "report {}",
        "compare {} {}",
    ],
)
def test_a_path_that_leads_nowhere_is_a_sentence(command, place, tmp_path, monkeypatch, capsys):
    if (place == "PROC" or place.startswith(CLOSED)) and os.access("/proc/1/cwd", os.R_OK):
        pytest.skip("every folder is open to these tests")
    monkeypatch.chdir(ROOT)
    (tmp_path / "LOOP.py").symlink_to(tmp_path / "LOOP.py")
    (tmp_path / "PROC.py").symlink_to(CLOSED)
    place = place if place.startswith(("/", "x")) else str(tmp_path / f"{place}.py")
    assert cli.main(command.replace("{}", place).split()) == 2
    error = capsys.readouterr().err
    assert error.splitlines()[-1].startswith("error: ")


def test_a_file_in_place_of_a_folder_is_a_sentence(tmp_path, capsys):
    (tmp_path / "problems").write_text("")
    assert cli.main(["new", "problem", "a/b", "--root", str(tmp_path)]) == 2
    assert "a file has the name of its folder" in capsys.readouterr().err


def test_a_path_of_our_own_that_cannot_be_used_is_no_mistake_of_the_user_s(monkeypatch):
    def mistaken(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/somewhere/of/ours")

    monkeypatch.setattr(report, "carry_out", mistaken)
    with pytest.raises(PermissionError):
        cli.main(["report", "results/seeds"])


@pytest.mark.parametrize(("words", "resumes"), [(["run", "x.yaml"], True), ([], True), (["audit"], False)])
def test_only_an_interrupted_run_is_said_to_resume(words, resumes, monkeypatch, capsys):
    def interrupted(arguments, words):
        raise KeyboardInterrupt(signal.SIGINT)

    for command in (audit, run):
        monkeypatch.setattr(command, "carry_out", interrupted)
    assert cli.main(words) == 130
    assert ("the same command" in capsys.readouterr().err) == resumes


def test_an_audit_says_first_how_much_there_is_to_do():
    problem = str(ROOT / "problems/softmax/softmax.py")
    said = []
    # Its first step only: nothing is audited.
    rows = session_audit.run(
        [problem], variants=["default", "small"], constants={}, device="cpu", compiled=False, timeout_s=1.0, seed=1,
        at_once=1, planned=lambda count, sentence: said.append((count, sentence)) or 1 / 0, started=said.append,
    )  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        next(rows)
    assert said == [(2, "2 audits at variant default, small on cpu; --variant small is much quicker on a CPU")]


def test_a_required_sandbox_that_is_not_there_stops_the_run_before_it_starts(tmp_path, monkeypatch, capsys):
    lacking = probe.Found(layers=("user",), missing={"landlock": "Function not implemented"})
    monkeypatch.setattr(probe, "probe", lambda sources=(): lacking)
    path = dump_config(corpus_config("honest"), tmp_path / "config.yaml")
    assert cli.main(["run", str(path), "--out", str(tmp_path / "run"), "--sandbox", "require"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: sandbox: require: the layer 'landlock' is missing (Function not implemented); boot")
    assert not (tmp_path / "run").exists()


def test_help_does_not_wait_for_libraries():
    script = "import sys; from harness import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass\n"
    script += (
        "heavy = {'torch', 'pandas', 'rich', 'msgspec', 'yaml', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "examples:" in result.stdout


def test_every_command_and_argument_is_explained():
    (commands,) = (action for action in options.parser()._actions if isinstance(action.choices, dict))
    assert commands.choices.keys() == cli.COMMANDS.keys()
    for command in commands.choices.values():
        assert command.description
        assert "exit code: " in command.epilog
        assert all(argument.help for argument in command._actions)
    assert all(status in re.split(r"[\s,]+", commands.choices["run"].epilog) for status in Status)


@pytest.mark.parametrize("form", ["terminal", "csv", "markdown", "html"])
def test_reports_need_no_torch(finished, form):
    script = "import sys; sys.modules['torch'] = None; from harness import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "report", str(finished), "--format", form]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "honest_cpp" in result.stdout


def test_a_reader_that_has_seen_enough_is_no_failure(finished):
    words = [sys.executable, str(ROOT / "run_eval.py"), "report", str(finished)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shown:
        shown.stdout.close()
        assert shown.stderr.read() == ""
    assert shown.returncode == 0


def test_what_an_encoding_lacks_is_escaped(finished):
    shown = run_eval("report", str(finished), env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "honest" in shown.stdout


def test_what_is_said_to_closed_streams_is_said_to_nobody(finished):
    words = [sys.executable, str(ROOT / "run_eval.py"), "report", str(finished), "--format", "html"]
    closed = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words], check=False)
    assert closed.returncode == 0
    assert (finished / "report.html").exists()


def test_a_run_without_samples_says_so(finished, capsys):
    assert cli.main(["report", str(finished), "--samples"]) == 0
    told = capsys.readouterr()
    assert told.out.count("\n") == 1
    assert "no problem of this run has several samples" in told.err


def test_a_dry_run_lists_the_jobs(tmp_path):
    config = dump_config(corpus_config(*HONEST), tmp_path / "c.yaml")
    result = run_eval("run", str(config), "--dry-run", "--variant", "wide")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [f"toy/scale wide float32 honest{tail}" for tail in ("", "_after", "_cpp")]


def test_a_dry_run_shapes_no_rows(tmp_path):
    config = dump_config(corpus_config(*HONEST), tmp_path / "c.yaml")
    script = "import sys; from harness import cli; cli.main(sys.argv[1:])\n"
    script += "heavy = {'torch', 'pandas', 'numpy', 'matplotlib', 'jinja2'} & set(sys.modules); assert not heavy, heavy"
    command = [sys.executable, "-c", script, "run", str(config), "--dry-run"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "honest_cpp" in result.stdout


def test_a_job_at_which_the_harness_failed_makes_it_1(tmp_path, monkeypatch, capsys):
    config = dump_config(corpus_config("zeros"), tmp_path / "c.yaml")
    run = ["run", str(config), "--out", str(tmp_path / "run")]
    outcome = {"status": Status.HARNESS_ERROR, "reason": "exception:RuntimeError", "message": "the judge raised"}

    def fail(*given, **named):
        [record] = session_run(*given, **named, make_executor=FakeExecutor())
        return [msgspec.structs.replace(record, **outcome)]

    session_run = session.run
    monkeypatch.setattr(session, "run", fail)
    assert cli.main(run) == 1
    assert "1 of 1 jobs have no verdict, because the harness failed: the judge raised" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("link", "problem", "code"), [("", "toy/scale", 0), ("gone.py", "toy/scale", 3), ("", "toy/*", 3)]
)
def test_require_fails_a_run_that_lacks_what_was_asked_for(tmp_path, monkeypatch, capsys, link, problem, code):
    honest = tmp_path / "sols/toy/scale/honest.py"
    honest.parent.mkdir(parents=True)
    honest.write_text((CORPUS / "solutions/clock/toy/scale/honest.py").read_text())
    if link:
        honest.with_name(link).symlink_to("nowhere")
    asked = msgspec.structs.replace(
        corpus_config(), solutions=[str(tmp_path / "sols")], include=[Pattern(problem=problem)]
    )
    config = dump_config(asked, tmp_path / "c.yaml")
    session_run = session.run
    monkeypatch.setattr(session, "run", lambda *some, **more: session_run(*some, **more, make_executor=FakeExecutor()))
    assert cli.main(["run", str(config), "--out", str(tmp_path / "run"), "--require", "incorrect"]) == code
    assert ("--require incorrect: " in capsys.readouterr().err) == bool(code)


def test_a_problem_that_lies_beside_a_foreign_candidate_is_named(tmp_path, capsys):
    mine = tmp_path / "foreign/solutions/toy/scale/mine.py"
    problem = tmp_path / "foreign/problems/toy/scale.py"
    for path, text in ((mine, "class ModelNew: pass\n"), (problem, (CORPUS / "problems/toy/scale.py").read_text())):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    words = ["run", str(mine), "--device", "cpu", "--dry-run"]
    assert cli.main(words) == 0
    assert f"the problem, which the judge runs, is {problem}" in capsys.readouterr().err
    assert cli.main([*words, "--problem", "attention/sdpa"]) == 0
    assert "which the judge runs" not in capsys.readouterr().err


def test_require_fails_a_run_with_3(tmp_path):
    config = dump_config(corpus_config("zeros"), tmp_path / "c.yaml")
    result = run_eval("run", str(config), "--out", str(tmp_path / "run"), "--require", "passed")
    assert result.returncode == 3, result.stderr
    assert "[1/1] incorrect" in result.stdout
    assert run_eval("run", str(config), "--out", str(tmp_path / "run"), "--require", "incorrect").returncode == 0


@pytest.mark.parametrize("begin", ["runpy.run_path('run_eval.py', run_name='__main__')", "runpy.run_module('harness')"])
@pytest.mark.parametrize("module", ["harness.cli", "harness.options.options", "harness.processes.interruption"])
def test_ctrl_c_while_a_command_is_loaded_is_no_traceback(begin, module):
    """As it comes to somebody who notices a wrong word at once."""
    script = f"""
import os, runpy, signal, sys
class Interrupts:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts)
sys.argv = ["run_eval.py", "report", "x"]
{begin.replace("'harness')", "'harness', run_name='__main__', alter_sys=True)")}
"""
    # Below `python -c`, the first entry that `python -m harness` drops is this one's own.
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")
