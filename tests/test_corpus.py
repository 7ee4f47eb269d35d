"""Every specimen gets its own status and reason in one run, in bounded time, and the honest ones around it pass."""

from pathlib import Path

from harness.records import Status
from tests.conftest import CORPUS, manifest

COMPILED = {"honest_cpp", "does_not_compile", "needs_cuda"}


def check(records, names):
    expected = manifest()
    wrong = {}
    for name in names:
        record, want = records[name], expected[name]
        got = {"status": str(record.status), "reason": record.reason}
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
    assert "no NVIDIA driver" in records["needs_cuda"].message or "without CUDA" in records["needs_cuda"].message
    assert records["honest_cpp"].compile_s > 0


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
