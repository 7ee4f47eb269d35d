"""Evaluate one candidate, then look into a call of it by NVIDIA's tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from harness import config as configs
from harness import environment, places, profile, session, wording
from harness.commands.saying import said
from harness.commands.single import of_one_candidate
from harness.environment import Device
from harness.errors import UsageError
from harness.instruments import tools
from harness.instruments.insight import FOLDER
from harness.options import options
from harness.reports import text, write
from harness.reports.terminal import profile_table
from harness.reports.terminal.consoles import Terminal
from harness.sandbox import probe
from harness.store import run_directory

# Both tools connect to the process that they look into, and wait for it to no end where that is forbidden.
CONNECTIONS = "seccomp"
HINT = (
    "hint: the driver may keep the card's counters for root (ERR_NVGPUCTRPERM), which the layer 'user' takes away: "
    "--without user, for a candidate that you trust"
)


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    console = Terminal()
    config = configs.load(Path(options.QUICKSTART), arguments.set)
    # Without a card nothing else that is missing matters.
    device = card(arguments.device or config.device)
    instrument = tools.sanitizer(arguments.sanitizer) if arguments.sanitizer else tools.nsight()
    one = of_one_candidate(places.found(arguments.candidate), arguments.problem)
    chosen = {"variants": [arguments.variant], "device": device.spec, "sandbox": arguments.sandbox}
    config = msgspec.structs.replace(config, **one | {name: value for name, value in chosen.items() if value})
    if CONNECTIONS not in arguments.without and CONNECTIONS in probe.chosen(config.sandbox, True).layers:
        raise UsageError(
            f"{instrument.name} cannot reach the candidate's process under the sandbox's layer '{CONNECTIONS}': "
            f"--without {CONNECTIONS}, for a candidate that you trust"
        )
    (job,) = session.plan(config, [device]).jobs
    out = arguments.out or Path("results/profile") / wording.name(job.title.replace("/", ".").replace(" ", "."), 200)
    records = [] if arguments.no_verdict else session.run(config, out, console, command=[options.program(), *words])
    print(f"{instrument.name} looks into a call; this takes a build and, by the tool, minutes", file=sys.stderr)
    insight = profile.run(job, device, instrument, config, out, arguments.without, arguments.timeout)
    profile_table.show(insight, records[0] if records else None, console)
    if insight.missing:
        print(f"note: the candidate ran without these layers of the sandbox: {', '.join(insight.missing)}")
    if (out / run_directory.JOURNAL).exists():
        # Its page shows what was told.
        manifest, known = run_directory.read(out)
        write.write_all(out, known, manifest)
    ended = insight.fault or insight.failed
    if not insight.has_looked and not ended and instrument.name == tools.NSIGHT and "user" not in insight.missing:
        print(HINT)
    kept = insight.report or out / FOLDER
    print(f"\nKept: {said(kept)}; what was printed: {said(text.clean(insight.log))}")
    return 0 if insight.has_looked else 1


def card(wanted: str) -> Device:
    """The first of the devices that are wanted. Raises UsageError where that is no GPU."""
    device = environment.choose_devices(wanted)[0]
    if device.kind != "cuda":
        raise UsageError(f"profile needs a GPU: {environment.why_no_cuda() or 'choose one by --device cuda:0'}")
    return device
