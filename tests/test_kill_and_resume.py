"""A run killed at any moment and started again ends with the records of an undisturbed run: none lost, none twice."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from harness.store import journal
from tests.conftest import corpus_config, dump_config

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("honest", "zeros", "raises", "segfault", "missing_entry", "exits_zero", "wrong_shape")
KILLS = 6


def test_sigkill_at_random_moments(tmp_path):
    config = dump_config(corpus_config(*NAMES, seed=7), tmp_path / "c.yaml")
    out = tmp_path / "run"
    command = [sys.executable, str(ROOT / "run_eval.py"), "run", str(config), "--out", str(out)]
    rng = random.Random()
    for _ in range(KILLS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
        # A run of these takes some five seconds, most of them for importing torch.
        time.sleep(rng.uniform(0.0, 6.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr
    records, _ = journal.parse((out / "records.jsonl").read_bytes())
    assert Counter(record.candidate for record in records) == Counter(NAMES)
    statuses = {record.candidate: (str(record.status), record.reason) for record in records}
    undisturbed = subprocess.run([*command[:-1], str(tmp_path / "other")], capture_output=True, cwd=ROOT, check=False)
    assert undisturbed.returncode == 0
    others, _ = journal.parse((tmp_path / "other" / "records.jsonl").read_bytes())
    assert statuses == {record.candidate: (str(record.status), record.reason) for record in others}
