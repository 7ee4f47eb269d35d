import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from harness import cli, config, records
from harness.records import Record, Timing
from harness.reports import compare, text
from harness.reports.compare import ChangeKind
from harness.reports.terminal import compare_table
from harness.store import run_directory

ROOT = Path(__file__).resolve().parents[2]
NARROW = (2.0, 1.994, 2.006)


def timing(clock: str) -> Timing:
    return Timing(
        clock=clock,
        calls_per_burst=1,
        baseline_calls_per_burst=1,
        fixed_us=0.0,
        candidate_us=[],
        baseline_us=[],
        candidate_claimed_us=[],
        baseline_claimed_us=[],
        baseline_first=[],
        systematic=0.0,
        stopped="precise",
        dropped={},
        elapsed_s=0.0,
    )


@pytest.fixture
def before(make) -> list[Record]:
    fused = {"problem": "fused/gemm_batchnorm_scale_softmax", "precision": "float32"}
    return [
        make("flash_wide_head", interval=(4.1, 4.09, 4.11)),
        make("composed", interval=(3.1, 3.095, 3.105)),
        make("cublas_softmax", interval=(3.09, 3.08, 3.1)),
        make("one_thread_per_query", interval=(0.0843, 0.07, 0.1)),
        make("three_tiled_kernels", interval=(1.5, 1.49, 1.51)),
        make("withdrawn", interval=(1.2, 1.19, 1.21)),
        make("other_baseline", interval=(2.0, 1.99, 2.01)),
        make("wrong_grid", "incorrect", reason="mismatch:tail_rows"),
        make("mean_of_values", "incorrect", reason="mismatch:values"),
        make("segfault", "crashed", reason="signal:SIGSEGV"),
        make("hangs", "timeout", reason="call"),
        make("composed", interval=(1.84, 1.8, 1.88), baseline_ms=0.0413, variant="small"),
        make("linear_then_three_kernels", "compile_error", reason="compiler", **fused),
    ]


@pytest.fixture
def after(make) -> list[Record]:
    fused = {"problem": "fused/gemm_batchnorm_scale_softmax", "precision": "float32"}
    return [
        make("flash_wide_head", interval=(4.31, 4.3, 4.32), baseline_ms=7.45),
        make("composed", interval=(2.87, 2.86, 2.88), baseline_ms=7.45),
        make("cublas_softmax", interval=(3.1, 3.09, 3.11), baseline_ms=7.45),
        make("one_thread_per_query", interval=(0.086, 0.075, 0.097), baseline_ms=7.45),
        make("three_tiled_kernels", "incorrect", reason="mismatch:tail_rows"),
        make("other_baseline", interval=(1.5, 1.49, 1.51), baseline="compile", baseline_ms=5.6),
        make("wrong_grid", interval=(12.5, 12.4, 12.6), baseline_ms=7.45),
        make("mean_of_values", "incorrect", reason="mismatch:values"),
        make("segfault", "crashed", reason="signal:SIGBUS"),
        make("hangs", "runtime_error", reason="exception:RuntimeError"),
        make("newcomer", interval=(1.01, 1.0, 1.02), baseline_ms=7.45),
        make("composed", interval=(1.83, 1.79, 1.87), baseline_ms=0.0413, variant="small"),
        make("linear_then_three_kernels", interval=(1.07, 1.06, 1.08), baseline_ms=0.912, **fused),
    ]


@pytest.fixture
def write(tmp_path) -> Callable[..., Path]:
    """A run directory as a session leaves it."""

    def write(name: str, found: list[Record], **environment: str) -> Path:
        run_dir = tmp_path / name
        run_directory.write_manifest(run_dir, {"schema": 1, "environment": environment})
        journal = b"".join(records.encode(record) + b"\n" for record in found)
        (run_dir / run_directory.JOURNAL).write_bytes(journal)
        return run_dir

    return write


def only(a: Record | None, b: Record | None) -> compare.Row:
    (row,) = compare.rows([a] if a else [], [b] if b else [])
    return row


def shown(found: list[compare.Row], notes: list[str], width: int) -> str:
    console = Console(width=width, force_terminal=False, file=io.StringIO(), color_system=None)
    compare_table.comparison(found, notes, console)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_is_held_still(before, after, golden, width):
    manifests = [{"environment": {"torch": torch, "cuda": "13.0"}} for torch in ("2.10.0", "2.11.0")]
    found = compare.rows(before, after)
    golden(f"compare-{width}.txt", shown(found, compare.notes(found, *manifests), width))


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        (NARROW, (2.2, 2.194, 2.206), ChangeKind.FASTER),
        (NARROW, (1.9, 1.894, 1.906), ChangeKind.SLOWER),
        (NARROW, (2.002, 1.996, 2.008), ChangeKind.SAME),
        (NARROW, (2.1, 1.8, 2.4), ChangeKind.CANT_TELL),
    ],
)
def test_speedups_are_told_apart_by_their_intervals(make, a, b, change):
    row = only(make("c", interval=a), make("c", interval=b))
    assert row.change is change
    assert row.ratio.value == pytest.approx(b[0] / a[0])


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        ("passed", "incorrect", ChangeKind.BROKEN),
        ("passed", "harness_error", ChangeKind.BROKEN),
        ("rejected", "passed", ChangeKind.FIXED),
        ("incorrect", "crashed", ChangeKind.CHANGED),
        ("incorrect", "incorrect", ChangeKind.STILL_FAILS),
        ("passed", None, ChangeKind.MISSING),
        ("incorrect", None, ChangeKind.MISSING),
        (None, "passed", ChangeKind.NEW),
    ],
)
def test_statuses_decide_where_there_are_no_two_speedups(make, a, b, change):
    row = only(a and make("c", a), b and make("c", b))
    assert (row.change, row.ratio) == (change, None)


def test_a_changed_source_is_compared_by_name(make):
    assert only(make("c", interval=NARROW, key="1"), make("c", interval=NARROW, key="2")).change is ChangeKind.SAME


@pytest.mark.parametrize("part", ["problem", "variant", "precision"])
def test_another_place_in_the_matrix_is_another_row(make, part):
    found = compare.rows([make("c")], [make("c", **{part: "other"})])
    assert {row.change for row in found} == {ChangeKind.MISSING, ChangeKind.NEW}


@pytest.mark.parametrize(
    ("a", "b", "obstacle", "note"),
    [
        ({}, {"device": "NVIDIA H100"}, "device", "device NVIDIA H200 in A, NVIDIA H100 in B (1 candidate)"),
        ({}, {"baseline": "compile"}, "baseline", "baseline eager in A, compile in B (1 candidate)"),
        (
            {"timing": timing("device")},
            {"timing": timing("device_ungated")},
            "clock",
            "clock device in A, device_ungated in B (1 candidate)",
        ),
    ],
)
def test_what_is_measured_otherwise_is_not_compared(make, a, b, obstacle, note):
    row = only(make("c", interval=NARROW, **a), make("c", interval=(1.0, 0.99, 1.01), **b))
    assert (row.change, row.obstacle, row.ratio) == (ChangeKind.NOT_COMPARED, obstacle, None)
    assert compare.notes([row], {}, {}) == [f"{note}: speedups are not compared"]
    assert f"different {obstacle}" in shown([row], [], 80)


def test_equal_devices_belong_together(make):
    cards = ("NVIDIA H200", "NVIDIA H100")
    a = [make("c", interval=NARROW, device=card) for card in cards]
    found = compare.rows(a, a[:1])
    assert {(row.either.device, row.change) for row in found} == {
        ("NVIDIA H200", ChangeKind.SAME),
        ("NVIDIA H100", ChangeKind.MISSING),
    }
    assert "attention/sdpa · default · float16 · NVIDIA H100 · baseline eager" in shown(found, [], 100)


def test_notes_name_what_may_have_moved_the_baseline():
    a = {"environment": {"torch": "2.10.0", "driver": "580.65", "nvcc": ""}, "config": {"timing": {"burst_ms": 5.0}}}
    b = {"environment": {"torch": "2.11.0", "driver": "580.65", "nvcc": "13.0"}, "config": {"timing": {"burst_ms": 1}}}
    assert compare.notes([], a, b) == [
        "torch 2.10.0 in A, 2.11.0 in B; nvcc none in A, 13.0 in B: the baseline may have changed, and every speedup "
        "with it",
        "timing.burst_ms 5.0 in A, 1 in B: evaluated with different settings",
    ]
    assert compare.notes([], a, {}) == []


def test_only_how_packs_are_read_is_no_setting():
    assert {"allow", *config.SECTIONS} - set(compare.SETTINGS) == {"packs"}


@pytest.mark.parametrize("key", compare.SETTINGS)
def test_a_different_setting_is_named_whatever_its_section(key):
    one = msgspec.to_builtins(config.Config())
    other = one | {key: dict.fromkeys(one[key], "other") if one[key] else ["tf32"]}
    unlike = {f"{key}.{name}" if one[key] else key for name in one[key] or [""]} - compare.NO_MATTER
    (note,) = compare.notes([], {"config": one}, {"config": other})
    assert all(f"{name} " in note for name in unlike)


def test_when_to_stop_is_no_difference():
    a, b = ({"config": {"timing": {"precision": value, "max_pairs": 40}, "allow": []}} for value in (0.005, 0.01))
    assert compare.notes([], a, b) == []


def test_short_names_leave_room_for_their_title(make):
    table = shown([only(make("c", "crashed", reason="signal:SIGSEGV"), make("c", interval=NARROW))], [], 80)
    assert table.splitlines()[2].split() == ["candidate", "A", "B"]
    assert table.splitlines()[4] == "fixed  c          crashed · signal:SIGSEGV → 2.00x"


def test_long_names_fold_before_figures(make):
    record = make("a_long_name_" * 6, interval=NARROW)
    table = shown([only(record, record)], [], 80)
    assert "2.00x  2.00x  1.000x [0.995, 1.005]" in table


def test_candidates_words_are_not_markup(make):
    console = Console(width=100, force_terminal=True, file=io.StringIO())
    found = compare.rows([make("[red]a[/]")], [make("[red]a[/]", "crashed", reason="[blink]\x1b[2J")])
    compare_table.comparison(found, [], console)
    assert "[red]a[/]" in console.file.getvalue()
    assert "[blink]?[2J" in console.file.getvalue()


@pytest.mark.parametrize(
    ("value", "words"),
    [((1.051, 1.045, 1.057), "1.051x [1.045, 1.057]"), ((0.0123, 0.01, 0.02), "0.012x [0.010, 0.020]")],
)
def test_ratios_are_finer_than_speedups(value, words):
    assert text.ratio(*value) == words


GATES = [
    ([], 0),
    (["--fail-on", "slower"], 3),
    (["--fail-on", "slower,broken"], 3),
    (["--fail-on", "missing", "--fail-on", "broken"], 3),
    (["--fail-on", "not-compared"], 3),
]


@pytest.mark.parametrize(("options", "code"), GATES)
def test_a_gate_fails_with_3(write, before, after, capsys, options, code):
    a, b = write("a", before, device="NVIDIA H200"), write("b", after, commit="0123abc")
    assert cli.main(["compare", str(a), str(b), *options]) == code
    printed = capsys.readouterr()
    assert printed.out.startswith(f"A  {a} · NVIDIA H200\nB  {b} · commit 0123abc\n")
    assert "1 broken, 1 slower, 1 missing" in " ".join(printed.out.split())
    assert bool(printed.err) is bool(code)


def test_a_gate_says_what_failed(write, before, after, capsys):
    assert cli.main(["compare", str(write("a", before)), str(write("b", after)), "--fail-on", "missing,slower"]) == 3
    assert capsys.readouterr().err == "--fail-on: 1 slower, 1 missing\n"


@pytest.mark.parametrize("options", [options for options, _ in GATES])
def test_a_gate_lets_improvements_pass(write, make, options):
    a = write("a", [make("c", interval=NARROW), make("d", "crashed")])
    b = write("b", [make("c", interval=(2.5, 2.49, 2.51)), make("d"), make("e")])
    assert cli.main(["compare", str(a), str(b), *options]) == 0


def test_mistakes_are_one_line_and_exit_code_2(write, make, capsys):
    a = write("a", [make("c")])
    broken = write("b", [make("c")])
    (broken / run_directory.JOURNAL).write_text(json.dumps({"key": 1}) + "\n")
    for arguments, sentence in [
        ([str(a)], "the following arguments are required: RUN_B"),
        ([str(a), str(a), "--fail-on", "slow"], "--fail-on slow: did you mean 'slower'?"),
        ([str(a), str(a / "none")], f"{a / 'none'} is not a run directory"),
        ([str(a), str(broken)], f"{broken}: line 1 of records.jsonl is not a record"),
    ]:
        assert cli.main(["compare", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert sentence in error
        assert error.count("\n") == 1


def test_two_empty_runs_are_said_to_be_empty(write, capsys):
    run_dir = write("a", [])
    assert cli.main(["compare", str(run_dir), str(run_dir)]) == 0
    assert capsys.readouterr().out.endswith("Neither run has a record.\n")


def test_comparing_needs_no_torch(write, before, after):
    script = "import sys; sys.modules['torch'] = None; from harness import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "compare", str(write("a", before)), str(write("b", after))]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "flash_wide_head" in result.stdout
