"""What others wrote is read in a process of its own: hostile bytes, lost and hanging parsers, foreign names."""

import itertools
import math
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.catalog import problems, solutions, sources
from harness.catalog.facts import CandidateFacts
from harness.reading import reading
from harness.reading.reading import Reader, ReaderFailed, ReaderLost
from harness.records import Outcome, Status

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def reader():
    with Reader() as made:
        yield made


def quoted(code: str) -> bytes:
    """A Python file with this C++ in it."""
    return f'import torch.utils.cpp_extension\nCODE = r"""\n#include <x.h>\n(\n{code}"""\n'.encode()


# Python's compiler writes out each of these twice.
FINALLY = "".join(f"{' ' * depth}try: x\n{' ' * depth}finally:\n" for depth in range(20)).encode() + b" " * 20 + b"x\n"


@pytest.mark.parametrize(
    "source",
    [
        b'"""\\ud800 half a pair."""\n',
        b"import \\ud800\n",
        b"__import__('\\udfff')\n",
        b"x = " + b"1 + " * 4000 + b"1\n",
        b"if x: pass\n" + b"elif x: pass\n" * 4000,
        b"(" * 100_000,
        b"lambda: " * 3000 + b"0\n",
        b"x = 1\0\n",
        b"\xff\xfe\x00",
        b"# coding: klingon\nx = 1\n",
        b"# coding: utf-16\nx = 1\n",
        b"",
        FINALLY,
    ],
)
def test_no_text_is_more_than_an_answer(reader, source):
    assert isinstance(reader.candidate(source, "candidate.py"), CandidateFacts)
    assert reader.problem(source, "problem.py").fault
    assert not reader.text(source).candidate


def test_what_only_the_compiler_refuses_is_no_python(reader):
    found = reader.candidate(b"import torch\nreturn 1\n", "candidate.py").unparsed
    assert found is not None
    assert (found.reason, found.line, found.text) == ("syntax_error", 2, "candidate.py:2: 'return' outside function")


@pytest.mark.parametrize(
    "code",
    [
        " \n" * 500_000,
        "#" + " " * 1_000_000,
        'R"a(' * 250_000,
        "".join(f'R"a{number}(' for number in range(80_000)),
        '"\\"' * 300_000,
        "'\\'" * 300_000,
        "/*" * 500_000,
        "__launch_bounds__(" * 50_000,
        "__global__ " * 90_000,
        "fork(\n" * 150_000,
        "at::" * 200_000,
        "a" * 1_000_000,
    ],
    ids=lambda code: code[:12],
)
def test_no_megabyte_is_looked_at_again_and_again(reader, code):
    # Each took minutes or hours, where the time grew with the square of the length.
    assert isinstance(reader.candidate(quoted(code), "candidate.py"), CandidateFacts)


def test_a_million_empty_lines_in_a_docstring_are_read_in_time(reader):
    facts = reader.candidate(('"""' + "\n" * 1_000_000 + 'Honest."""\n').encode(), "candidate.py")
    assert isinstance(facts, CandidateFacts)
    assert facts.caption == "Honest."


def dies(number, times=math.inf):
    """A start of so many processes that die by a signal when they are asked, of which only the last is no such one."""
    begin, begun = Reader._begin, itertools.count(1)

    def start(reader):
        channel = begin(reader)
        if next(begun) <= times:
            reader._wait_for(channel)
            os.kill(reader._process.pid, number)
        return channel

    return start


def test_one_kill_from_outside_costs_no_file(reader, monkeypatch):
    honest = b'"""Honest."""\n'
    reader.candidate(honest, "before.py")
    reader._process.kill()
    assert reader.candidate(honest, "killed.py").caption == "Honest."
    # By its own doing it is not asked again.
    monkeypatch.setattr(Reader, "_begin", dies(11, times=1))
    reader._end()
    assert reader.candidate(honest, "faulty.py").reason == "parser_died"
    assert reader.candidate(honest, "after.py").caption == "Honest."


def test_what_ends_or_holds_the_process_costs_one_file_and_no_other(reader, monkeypatch):
    honest = b'"""Honest."""\n'
    assert reader.candidate(honest, "before.py").caption == "Honest."
    with monkeypatch.context() as patched:
        patched.setattr(Reader, "_begin", dies(9))
        reader._end()
        fault = reader.candidate(honest, "killed.py")
        assert (fault.status, fault.reason) == (Status.LOAD_ERROR, "parser_died")
        assert "died" in reader.text(honest).fault
    assert reader.candidate(honest, "between.py").caption == "Honest."
    with monkeypatch.context() as patched:
        patched.setattr(reading, "DEADLINE_S", 0.05)
        patched.setattr(reading, "PATIENCE", 1000.0)
        patched.setattr(reading, "LOOK_S", 0.01)
        fault = reader.candidate(b"x = 1\n" * 20_000, "long.py")
    assert (fault.status, fault.reason) == (Status.LOAD_ERROR, "parser_timeout")
    assert reader.candidate(honest, "after.py").caption == "Honest."


def stops(times=10**9):
    """Readers that are stopped before their first file, as on a machine without a processor to spare."""
    return dies(signal.SIGSTOP, times)


def test_who_gets_no_processor_is_asked_again_and_is_no_files_fault(reader, monkeypatch):
    honest = b'"""Honest."""\n'
    monkeypatch.setattr(reading, "DEADLINE_S", 0.5)
    monkeypatch.setattr(reading, "PATIENCE", 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(Reader, "_begin", stops(times=1))
        reader._end()
        assert reader.candidate(honest, "once.py").caption == "Honest."
        patched.setattr(Reader, "_begin", stops())
        reader._end()
        fault = reader.candidate(honest, "twice.py")
        assert (fault.status, fault.reason) == (Status.HARNESS_ERROR, "reader_held_up")
        for read in (reader.text, lambda text: reader.problem(text, "problem.py")):
            with pytest.raises(ReaderFailed, match="try again"):
                read(honest)
    reader._end()
    assert reader.candidate(honest, "after.py").caption == "Honest."


def test_an_answer_that_is_none_is_the_files_fault():
    ours, theirs = socket.socketpair()
    with theirs, Reader() as reader:
        theirs.sendall(b"\xff\xff\xff\xff")
        reader._end()
        reader._channel, reader._is_up = reading.Channel(ours, reading.FromReader), True
        assert reader.candidate(b"", "babbles.py").reason == "parser_died"


def test_a_process_that_cannot_start_is_no_files_fault(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Reader() as reader, pytest.raises(RuntimeError, match="could not be started"):
        reader.candidate(b"", "candidate.py")


def test_it_ends_with_the_session():
    script = """
import os, sys
from harness.reading.reading import Reader
reader = Reader()
reader.candidate(b"", "x.py")
print(reader._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text():
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the reader is still there")


def test_it_is_held_to_the_layers_of_this_machine(reader):
    reader.candidate(b"", "x.py")
    status = Path(f"/proc/{reader._process.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status


def test_kernels_are_looked_for_in_libraries_and_in_nothing_else(reader, tmp_path):
    libraries = []
    for number in range(10):
        path = tmp_path / f"{number}.so"
        path.write_bytes(b"\x7fELF\0_Z4mine%dv\0" % number)
        libraries.append(str(path))
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "link.so").symlink_to(libraries[0])
    strange = [str(tmp_path / name) for name in ("pipe.so", "link.so", "gone.so")]
    assert reader.own_kernels(["_Z4mine0v", "_Z4mine9v", "other", "own"], ["own"], [*strange, *libraries]) == {
        "_Z4mine0v",
        "_Z4mine9v",
        "own",
    }
    assert reader.own_kernels(["_Z4mine0v"], [], strange) == set()


def test_a_process_that_is_held_up_with_libraries_is_replaced(reader, tmp_path, monkeypatch):
    reader.candidate(b"", "x.py")
    os.kill(reader._process.pid, 19)
    monkeypatch.setattr(reading, "LIBRARY_DEADLINE_S", 0.1)
    assert reader.own_kernels(["a"], ["a"], []) == {"a"}


def test_all_libraries_have_one_deadline(tmp_path, monkeypatch):
    """Each eight had their own, while the slot waited."""
    (tmp_path / "ext.so").write_bytes(b"_Z.a" * (1 << 18))
    monkeypatch.setattr(reading, "LIBRARY_DEADLINE_S", 3.0)
    monkeypatch.setattr(reading, "LIBRARIES_AT_ONCE", 1)
    names = [f"k{number:04d}x" for number in range(512)]
    begun = time.monotonic()
    with Reader() as reader, pytest.raises(ReaderLost, match="more than 3 s"):
        reader.own_kernels(names, [], [str(tmp_path / "ext.so")] * 100)
    assert time.monotonic() - begun < 20


def place(folder: Path, name: str = "candidate.py") -> Path:
    path = folder / "toy/scale" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_only_regular_files_are_candidates_and_the_rest_is_named(tmp_path, reader):
    place(tmp_path, "honest.py").write_text('"""Honest."""\n')
    place(tmp_path, "dangling.py").symlink_to(tmp_path / "nowhere")
    place(tmp_path, "zeros.py").symlink_to("/dev/zero")
    place(tmp_path, "linked.py").symlink_to(place(tmp_path, "honest.py"))
    place(tmp_path, "folder.py").mkdir()
    os.mkfifo(place(tmp_path, "pipe.py"))
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(place(tmp_path).parent)
    try:
        server.bind("socket.py")
    finally:
        os.chdir(here)
        server.close()
    notes = []
    found = solutions.discover([str(tmp_path)], notes.append)
    assert [one.name for one in found] == ["honest", "linked"]
    assert [solutions.read(one, reader).caption for one in found] == ["Honest."] * 2
    told = {Path(note.removeprefix("skipped ").partition(": ")[0]).name: note.partition(": ")[2] for note in notes}
    assert told == {
        "dangling.py": "a link that leads nowhere (No such file or directory)",
        "zeros.py": "a device",
        "folder.py": "a folder",
        "pipe.py": "a pipe",
        "socket.py": "a socket",
    }


def test_what_becomes_a_pipe_after_discovery_holds_nobody_up(tmp_path, reader):
    path = place(tmp_path)
    path.write_text("")
    (found,) = solutions.discover([str(path)])
    path.unlink()
    os.mkfifo(path)
    assert solutions.read(found, reader).fault.reason == "unreadable"


def test_a_link_solves_the_problem_of_its_own_folder(tmp_path):
    target = tmp_path / "other/place/real.py"
    target.parent.mkdir(parents=True)
    target.write_text("")
    place(tmp_path, "linked.py").symlink_to(target)
    assert [one.problem for one in solutions.discover([str(tmp_path / "toy")])] == ["toy/scale"]


def test_a_file_that_is_too_large_is_not_read(tmp_path, reader):
    path = place(tmp_path)
    with open(path, "wb") as file:
        file.truncate(100 << 30)
    (found,) = solutions.discover([str(path)])
    candidate = solutions.read(found, reader)
    assert (candidate.fault.status, candidate.fault.reason) == (Status.LOAD_ERROR, "source_too_large")
    with open(path, "wb") as file:
        file.truncate(sources.MOST_BYTES)
    assert solutions.read(found, reader).fault is None
    assert solutions.read(found, reader).digest != candidate.digest


def test_more_data_than_can_be_named_and_digested_is_a_fault(tmp_path, reader):
    path = place(tmp_path)
    path.write_text("")
    (found,) = solutions.discover([str(path)])
    data = path.with_suffix(".bin")
    with open(data, "wb") as file:
        file.truncate(300 << 30)
    assert solutions.read(found, reader).fault.reason == "data_too_large"
    data.unlink()
    for number in range(sources.MOST_DATA_FILES):
        path.with_suffix(f".{number}").touch()
    assert solutions.read(found, reader).fault is None
    data.touch()
    assert solutions.read(found, reader).fault.reason == "data_too_large"


def test_data_whose_name_is_no_text_is_a_fault(tmp_path, reader):
    path = place(tmp_path)
    path.write_text("")
    (found,) = solutions.discover([str(path)])
    with open(os.fsencode(str(path.with_suffix(""))) + b".\xff", "wb"):
        pass
    assert solutions.read(found, reader).fault.reason == "unreadable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path, reader):
    path = place(tmp_path)
    path.write_text("")
    path.chmod(0)
    (found,) = solutions.discover([str(path)])
    assert solutions.read(found, reader).fault.message == "candidate.py: it cannot be read: Permission denied"


def test_a_name_that_is_no_text_has_a_fault_and_a_name_that_can_be_shown(tmp_path, reader):
    raw = os.fsencode(str(place(tmp_path).parent)) + b"/\xff\xfe.py"
    with open(raw, "wb"):
        pass
    (found,) = solutions.discover([str(tmp_path)])
    assert found.name.isprintable()
    candidate = solutions.read(found, reader)
    assert candidate.fault.reason == "unreadable"
    assert "not valid UTF-8" in candidate.fault.message
    candidate.fault.message.encode()


def test_a_problem_that_cannot_be_read_has_a_fault(tmp_path, reader):
    (tmp_path / "set").mkdir()
    for name, content in {"huge": b"x" * (sources.MOST_BYTES + 1), "deep": b"(" * 10_000, "nul": b"\0"}.items():
        (tmp_path / f"set/{name}.py").write_bytes(content)
    os.mkfifo(tmp_path / "set/pipe.py")
    notes = []
    found = problems.discover([str(tmp_path)], reader, notes.append)
    assert [(problem.id, bool(problem.fault)) for problem in found] == [
        ("set/deep", True),
        ("set/huge", True),
        ("set/nul", True),
    ]
    assert len(notes) == 1


@pytest.mark.parametrize(
    "variants", ["{1: {}}", "{'a': {'b': {1j}}}", "{'a': {'b': '\\ud800'}}", "{'a': {'n': 10**30}}"]
)
def test_variants_that_cannot_be_sent_are_a_fault(reader, variants):
    source = f"class Model: pass\ndef get_inputs(): pass\ndef get_init_inputs(): pass\nVARIANTS = {variants}\n"
    assert "VARIANTS must" in reader.problem(source.encode(), "problem.py").fault


fragments = st.sampled_from(
    [b'"""', b"'", b"\\", b"\n", b" ", b"(", b'R"a(', b"\\ud800", b"\xff", b"\0", b"def forward(self", b":", b"import "]
)
contents = st.one_of(st.binary(max_size=400), st.lists(fragments, max_size=40).map(b"".join), st.text().map(str.encode))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents)
def test_any_bytes_are_answered(reader, source):
    assert not isinstance(reader.candidate(source, "candidate.py"), Outcome)
    assert not isinstance(reader.problem(source, "problem.py"), Outcome)
