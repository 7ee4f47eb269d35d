"""Every specimen gets its own status and reason in one run, in bounded time, and the honest ones around it pass."""

import re
from pathlib import Path

import pytest

from harness.records import Status
from tests.conftest import CORPUS, manifest

COMPILED = {name for name in manifest() if name.startswith("cuda_")} | {"honest_cpp", "does_not_compile"}


def check(records, names, kind="cpu"):
    expected = manifest()
    wrong = {}
    for name in names:
        record, want = records[name], dict(expected[name])
        on_cuda = want.pop("cuda", want)
        want = on_cuda if kind == "cuda" else want
        got = {"status": str(record.status), "reason": record.reason}
        got["warning"] = record.warnings[0].partition(":")[0] if record.warnings else ""
        if any(got[key] != value for key, value in want.items()):
            wrong[name] = (got, record.message)
    assert wrong == {}


def test_the_manifest_names_every_specimen():
    assert {path.stem for path in (CORPUS / "solutions/toy/scale").glob("*.py")} == set(manifest())


def test_each_fault_has_its_own_status(evaluate, tmp_path):
    names = sorted(set(manifest()) - COMPILED)
    records = evaluate(*names)
    check(records, names)
    for record in records.values():
        assert record.message or record.status is Status.PASSED
        # The deadline of a call is 5 s; nothing takes much longer than what it waits for.
        assert record.wall_s < 30
    noisy = tmp_path / "run" / records["prints_without_end"].log
    assert noisy.stat().st_size < 1.1 * (1 << 20)


def test_builds_have_their_own_statuses(evaluate, tmp_path):
    records = evaluate(*COMPILED)
    check(records, COMPILED)
    broken = records["does_not_compile"]
    assert broken.message.startswith("does_not_compile.py:9: ")
    assert "undeclared_name" in broken.evidence["source_line"]
    assert re.search("no NVIDIA driver|without CUDA", records["cuda_honest"].message)
    assert records["honest_cpp"].compile_s > 0


@pytest.mark.gpu
def test_the_whole_corpus_on_a_card(evaluate):
    names = sorted(manifest())
    records = evaluate(*names, device="cuda:0")
    check(records, names, "cuda")
    assert all(record.wall_s < 60 for record in records.values())
    best = records["honest"].speedup_hi
    dishonest = [
        name for name in manifest() if name.startswith(("cuda_halves", "cuda_sleeps", "cuda_batches", "cuda_side"))
    ]
    # Margin: the honest twin's interval and theirs are both four pairs wide.
    assert {name: records[name].speedup for name in dishonest if records[name].speedup > 1.1 * best} == {}
    assert records["cuda_sleeps_on_the_host"].timing.candidate_latency_us > 1000


def test_nothing_is_left_running(evaluate):
    record = evaluate("leaves_a_daemon")["leaves_a_daemon"]
    assert record.status is Status.PASSED
    left = [path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline") if b"harness.worker.zygote" in read(path)]
    assert left == []


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
