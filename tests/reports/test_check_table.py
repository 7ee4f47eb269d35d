"""A check as the terminal shows it: verdicts, columns, whatever a candidate may have called its kernels."""

import io

import pytest
from rich.console import Console

from harness.catalog.contract import Remark
from harness.catalog.facts import ScreenFinding
from harness.compile.diagnostics import Diagnostic
from harness.compile.resources import Kernel
from harness.records import Outcome, Status
from harness.reports.terminal import check_table
from harness.reports.terminal.check_table import CheckRow


def fault(status: Status) -> Outcome:
    return Outcome(status=status, reason="why", message="sentence")


def kernel(name: str = "void scale<64>(float*, int)", **figures) -> Kernel:
    return Kernel(name=name, architecture="sm_90a", registers=32, **figures)


def shown(row: CheckRow, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    check_table.show(row, console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (CheckRow(candidate="a/b/c", file="c.py"), "ok"),
        (CheckRow(candidate="a/b/c", file="c.py", remarks=[Remark(text="note")]), "ok"),
        (CheckRow(candidate="a/b/c", file="c.py", remarks=[Remark(text="wrong", fatal=True)]), "fails"),
        (CheckRow(candidate="a/b/c", file="c.py", fault=fault(Status.COMPILE_ERROR)), "fails"),
        (CheckRow(candidate="a/b/c", file="c.py", fault=fault(Status.TIMEOUT)), "fails"),
        (CheckRow(candidate="a/b/c", file="c.py", fault=fault(Status.UNSUPPORTED)), "unsure"),
        (CheckRow(candidate="a/b/c", file="c.py", failures=["Error building extension"]), "fails"),
    ],
)
def test_verdicts(row, verdict):
    assert row.verdict == verdict


def test_kernels_are_a_table_and_spills_a_warning():
    row = CheckRow(
        candidate="a/b/c",
        file="c.py",
        extensions=1,
        kernels=[kernel(shared_bytes=256), kernel("void (anonymous namespace)::f<f(int)>(int)", spill_store_bytes=8)],
        wall_s=3.24,
    )
    assert shown(row, 100) == [
        "ok     a/b/c  1 extension, 2 kernels · 3.2 s",
        "       kernel     registers  shared  stack  spill stores  spill loads",
        "       scale<64>         32   256 B      0             0            0",
        "       f<f(int)>         32       0      0           8 B            0",
        "       spills: f<f(int)> keeps values in local memory, because its 32 registers are not enough",
    ]


def test_errors_have_line_source_and_hint_and_the_log_s_path_is_never_wrapped():
    row = CheckRow(
        candidate="a/b/c",
        file="c.py",
        fault=fault(Status.COMPILE_ERROR),
        errors=[
            Diagnostic(text="wrong", line=7, source_line="int x;", hint="write it rightly, and more than once at that"),
            Diagnostic(text="elsewhere", generated_file="main.cpp", generated_line=3),
        ],
        log="results/check/" + "x" * 60 + ".log",
    )
    assert shown(row, 50) == [
        "fails  a/b/c  compile_error · why · 0.0 s",
        "       c.py:7: wrong",
        "         | int x;",
        "         hint: write it rightly, and more than",
        "         once at that",
        "       c.py (main.cpp:3): elsewhere",
        "       full output: results/check/" + "x" * 60 + ".log",
    ]


def test_warnings_have_lines_of_their_own_and_information_shares_one():
    row = CheckRow(
        candidate="a/b/c",
        file="c.py",
        findings=[
            ScreenFinding(line=3, kind="library", text="forward calls torch.mm"),
            ScreenFinding(line=5, kind="patch", text="replaces time.time", warning=True),
            ScreenFinding(line=9, kind="library", text="calls cublasGemmEx"),
        ],
    )
    assert shown(row, 100)[1:] == [
        "       patch: c.py:5: replaces time.time",
        "       library: forward calls torch.mm (3), calls cublasGemmEx (9)",
    ]


def test_no_word_of_the_candidate_s_process_can_move_the_cursor():
    evil = "k\x1b[2J\n"
    row = CheckRow(
        candidate="a",
        file="a.py",
        fault=Outcome(status=Status.COMPILE_ERROR, reason=evil, message=evil),
        errors=[Diagnostic(text=evil, source_line=evil, hint=evil, generated_file=evil)],
        kernels=[kernel(evil)],
        absent={evil: 1},
    )
    assert "\x1b" not in "".join(shown(row, 100))


def test_the_summary_counts():
    rows = [CheckRow(candidate="a", file="a.py"), CheckRow(candidate="b", file="b.py", fault=fault(Status.CRASHED))]
    assert check_table.summary(rows) == "2 candidates: 1 ok, 1 fails"
    assert check_table.summary(rows[:1]) == "1 candidate: 1 ok"
