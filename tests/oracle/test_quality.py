import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_benchmark_ends_with_its_line():
    command = [sys.executable, "benchmarks/oracle_quality.py", "--small", "--only", "relu"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    last = run.stdout.splitlines()[-1]
    assert last.startswith("wrong_accepted=0/")
    assert " right_refused=0/" in last
