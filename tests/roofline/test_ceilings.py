import json
import os
import time

import pytest
import torch

from harness.roofline import ceilings
from harness.roofline.light import Ceilings

CPU = torch.device("cpu")
FOUND = Ceilings(1e10, {"float32": 2e11})


@pytest.fixture
def counted(monkeypatch):
    """`measure` without measuring; how often it was asked."""
    asked = []
    monkeypatch.setattr(ceilings, "measure", lambda device: asked.append(device) or FOUND)
    return asked


@pytest.fixture
def path(tmp_path):
    return tmp_path / "assay" / "ceilings.json"


def test_measured_once(counted, path):
    assert ceilings.load_or_measure(CPU, path=path) == FOUND
    assert ceilings.load_or_measure(CPU, path=path) == FOUND
    assert len(counted) == 1
    assert list(path.parent.iterdir()) == [path]


def test_another_method_is_measured_again(counted, path, monkeypatch):
    ceilings.load_or_measure(CPU, path=path)
    monkeypatch.setattr(ceilings, "METHOD", ceilings.METHOD + 1)
    ceilings.load_or_measure(CPU, path=path)
    assert len(counted) == 2
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'{"a": {"bytes_per_s": 1',
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"KEY": 7}',
        b'{"KEY": {"bytes_per_s": -1, "flops_per_s": {}}}',
        b'{"KEY": {"bytes_per_s": 1e400, "flops_per_s": {}}}',
        b'{"KEY": {"bytes_per_s": 1, "flops_per_s": {"float32": 0}}}',
        b'{"KEY": {"bytes_per_s": 1}}',
        b" " * (ceilings.MAX_CACHE_BYTES + 1),
    ],
)
def test_torn_and_foreign_files_are_measured_over(counted, path, text):
    path.parent.mkdir()
    path.write_bytes(text.replace(b"KEY", ceilings.key(CPU).encode()))
    assert ceilings.load_or_measure(CPU, path=path) == FOUND
    assert len(counted) == 1
    ceilings.load_or_measure(CPU, path=path)
    assert len(counted) == 1


def test_a_bad_entry_does_not_spoil_its_neighbours(counted, path):
    path.parent.mkdir()
    good = {"bytes_per_s": 3e9, "flops_per_s": {"float32": 4e9}}
    path.write_text(json.dumps({"another card": "?", ceilings.key(CPU): good}))
    assert ceilings.load_or_measure(CPU, path=path) == Ceilings(3e9, {"float32": 4e9})
    assert counted == []


def test_a_cache_that_cannot_be_written_is_done_without(counted, tmp_path):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert ceilings.load_or_measure(CPU, path=tmp_path / "file" / "ceilings.json") == FOUND
    assert len(counted) == 2


class Disturbed:
    def look(self):
        return "disturbed"


def test_what_was_disturbed_serves_for_a_while(counted, path, monkeypatch):
    for _ in range(3):
        assert ceilings.load_or_measure(CPU, path=path, watch=Disturbed()) == FOUND
    assert len(counted) == 1
    # By a clock that has been set back, too.
    for shift_s in (ceilings.DISTURBED_FOR_S + 1.0, -ceilings.DISTURBED_FOR_S - 1.0):
        now = time.time() + shift_s
        monkeypatch.setattr(ceilings.time, "time", lambda now=now: now)
        ceilings.load_or_measure(CPU, path=path, watch=Disturbed())
    assert len(counted) == 3
    monkeypatch.undo()


def test_a_disturbed_measurement_lowers_nothing(path, monkeypatch):
    measured = iter([Ceilings(9.0, {"float32": 5.0, "float64": 1.0}), Ceilings(8.0, {"float32": 6.0, "int8": 2.0})])
    monkeypatch.setattr(ceilings, "measure", lambda device: next(measured))
    monkeypatch.setattr(ceilings, "DISTURBED_FOR_S", 0.0)
    ceilings.load_or_measure(CPU, path=path, watch=Disturbed())
    best = Ceilings(9.0, {"float32": 6.0, "float64": 1.0, "int8": 2.0})
    # The second is undisturbed, and so the last.
    for _ in range(2):
        assert ceilings.load_or_measure(CPU, path=path) == best


def test_ceilings_are_kept_in_the_cache_folder_of_all(counted, monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    ceilings.load_or_measure(CPU)
    assert (tmp_path / "ceilings.json").is_file()


def test_this_processor_has_ceilings(monkeypatch):
    monkeypatch.setattr(ceilings, "SIZES", {"cpu": (64, 128)})
    monkeypatch.setattr(ceilings, "BUFFER_BYTES", {"cpu": (1 << 20,)})
    monkeypatch.setattr(ceilings, "CLASS_BUDGET_S", {"cpu": 0.01})
    threads, precision = torch.get_num_threads(), torch.backends.cuda.matmul.fp32_precision
    found = ceilings.measure(CPU)
    assert found.bytes_per_s > 1e8
    assert {"float32", "float64", "bfloat16"} <= set(found.flops_per_s)
    assert "tf32" not in found.flops_per_s
    assert all(rate > 1e6 for rate in found.flops_per_s.values())
    assert (torch.get_num_threads(), torch.backends.cuda.matmul.fp32_precision) == (threads, precision)


def test_each_class_is_measured_by_right_products():
    a, b = torch.arange(32 * 16).reshape(32, 16) % 5, torch.arange(48 * 16).reshape(48, 16) % 3
    exact = a @ b.t()
    for kind, dtype in ceilings.CLASSES.items():
        for product in ceilings._products(kind, a.to(dtype), b.to(dtype)):
            assert torch.equal(product().double(), exact.double()), kind


def test_a_class_that_torch_lacks_is_left_out(monkeypatch):
    monkeypatch.setattr(ceilings, "SIZES", {"cpu": (16,)})
    monkeypatch.setattr(ceilings, "BUFFER_BYTES", {"cpu": (1 << 16,)})
    monkeypatch.delattr(torch, "_int_mm")
    assert "int8" not in ceilings.measure(CPU).flops_per_s


def test_no_memory_to_measure_with(monkeypatch):
    monkeypatch.setattr(ceilings, "_free_bytes", lambda device: 0)
    with pytest.raises(RuntimeError, match="no free memory"):
        ceilings.measure(CPU)


def test_the_best_run_counts(monkeypatch):
    times = iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(ceilings, "_seconds", lambda run, device: next(times))
    assert ceilings._fastest_s(lambda: None, CPU, 0.0) == (1.0, 6.0)


def test_caches_of_this_processor():
    assert ceilings.cache_bytes(CPU) >= 1 << 15
    assert 1 <= ceilings._physical_cores() <= len(os.sched_getaffinity(0))
