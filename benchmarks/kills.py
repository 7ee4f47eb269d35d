"""What a run survives: SIGKILL to its session, judge, runners, builders and forking parent at random moments.

    python benchmarks/kills.py [--kills 200] [--seed N] [--folder DIR]

A session that was killed is started again and resumes; anything else that was killed is replaced by the run itself.
Each run has to end with exit status 0 and with exactly the records of an undisturbed run.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.kills import Killer

LAST_LINE = """\
last line: kills=N runs=M wrong_runs=W
The exit status is 0 where no run was wrong, 1 otherwise.
"""


def main() -> int:
    arguments = parse()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="assay-kills-", ignore_cleanup_errors=True) as temporary:
        killer = Killer(arguments.folder or Path(temporary), random.Random(arguments.seed))

        def tell() -> None:
            done = f"{killer.killed.total()} kills in {killer.runs} runs, {time.monotonic() - started:.0f} s"
            print(f"{done}: {len(killer.faults)} wrong", file=sys.stderr, flush=True)

        killer.run(arguments.kills, tell)
    for fault in killer.faults:
        print(fault)
    print("killed: " + ", ".join(f"{count} x {role}" for role, count in sorted(killer.killed.items())))
    print(f"kills={killer.killed.total()} runs={killer.runs} wrong_runs={len(killer.faults)}")
    return 1 if killer.faults else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=LAST_LINE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="how many processes to kill (200)")
    parser.add_argument("--seed", type=int, help="of the moments and roles (default: other ones each time)")
    parser.add_argument("--folder", type=Path, help="where to keep the runs (default: nowhere)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
