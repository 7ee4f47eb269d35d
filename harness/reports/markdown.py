"""leaderboard.md: the results of one run as GitHub shows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from harness.records import Record
from harness.reports import text
from harness.reports.groups import Entry, Group, grouped, summarise

HOW_TO_READ = """\
## How to read this

- **Speedup** is baseline time over candidate time, measured side by side, with its 95 % interval in brackets. A
  candidate has one only if every timed call was checked and right.
- **Rank** `#`: a candidate gets a lower rank only if its interval is wholly below that of the rank's first.
- **Error** is the candidate's error divided by the reference's own at this precision, both against float64.
- **geomean** and **fast_1** take the best passed candidate of each problem; a problem at another size or precision
  counts as a problem of its own. fast_1 is the share of problems with a candidate faster than the baseline.
- **own kernels** is the share of device time in the candidate's own kernels, in one profiled call after timing. On a
  CPU it is the share of the call outside PyTorch's operators.
- `results.csv` has every number with all digits, `records.jsonl` the raw samples and the evidence.
"""

# The letter without which GitHub makes no link of an address, no mention and no emoji (`:tada:`, `:100:`).
LINKING = re.compile(r":(?=//)|(?<=www)\.|@(?=\w)|:(?=(?:100|1234|\d*[a-z+_-][\w+-]*):)", re.IGNORECASE)
# Keys of the environment that are versions.
VERSIONS = ("torch", "cuda", "nvcc", "driver", "compiler", "python")


def leaderboard(records: Sequence[Record], manifest: Mapping[str, Any]) -> str:
    """The whole page; `manifest` is the content of run.json, of which every key is optional."""
    groups = grouped(records)
    parts = ["# Leaderboard", _run(manifest), _summary(groups), *map(_group, groups), HOW_TO_READ]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _run(manifest: Mapping[str, Any]) -> str:
    environment = manifest.get("environment") or {}
    versions = [f"{name} {_plain(environment[name])}" for name in VERSIONS if environment.get(name)]
    started, finished = manifest.get("started_at"), manifest.get("finished_at")
    command = manifest.get("command")
    sandbox = "; ".join(part for part in (_plain(environment.get("sandbox")), text.sandbox_note(manifest)) if part)
    facts = {
        "Device": escape(_device(environment)),
        "Versions": escape(", ".join(versions)),
        "Conditions": escape("; ".join(conditions(manifest.get("config") or {}))),
        "Sandbox": escape(sandbox),
        "Commit": code(_plain(environment.get("commit"))),
        "Command": code(shlex.join(command) if isinstance(command, list) else _plain(command)),
        "Run": escape(f"{started} to {finished or 'now (not finished)'}" if started else ""),
    }
    return "\n".join(f"- **{label}**: {value}" for label, value in facts.items() if value)


def conditions(config: Mapping[str, Any]) -> list[str]:
    """The settings that a reader must know before comparing a run's numbers with another's."""
    allowed = config.get("allow") or []
    timing, check = config.get("timing") or {}, config.get("check") or {}
    provenance = config.get("provenance") or {}
    told = {
        f"lower precision allowed: {', '.join(map(str, allowed))}": bool(allowed),
        "warm inputs": timing.get("cache") == "warm",
        f"at least {provenance.get('min_own_share')} of device time in own kernels": bool(
            provenance.get("min_own_share")
        ),
        f"forbidden: {', '.join(map(str, provenance.get('forbid') or []))}": bool(provenance.get("forbid")),
        "no hard inputs": check.get("stress") is False,
        f"seed {config.get('seed')}": config.get("seed") is not None,
    }
    return [text for text, holds in told.items() if holds]


def _device(environment: Mapping[str, Any]) -> str:
    name, kind = _plain(environment.get("device")), _plain(environment.get("device_kind"))
    return ", ".join(part for part in dict.fromkeys((name, kind)) if part)


def _summary(groups: list[Group]) -> str:
    summary = summarise(groups)
    if summary is None:
        return "No records yet."
    statuses = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    head = _header("problem:", "variant:", "precision:", "baseline:", "best candidate:", "speedup", "time")
    lines = [line(*_where(group), *_best(group.best)) for group in groups]
    count = sum(summary.statuses.values())
    sentence = f"{count} {'candidate' if count == 1 else 'candidates'}: {statuses}. {text.scores(summary)}"
    return "\n".join(["## Summary", "", sentence, "", head, *lines])


def _where(group: Group) -> tuple[str, str, str, str]:
    return code(group.problem), escape(group.variant), escape(group.precision), _baseline(group)


def _best(record: Record | None) -> tuple[str, str, str]:
    if record is None:
        return "none passed", "", ""
    return code(record.candidate), text.speedup(record), text.duration(record.candidate_ms)


def _group(group: Group) -> str:
    title = f"## {code(group.problem)} · {escape(group.variant)} · {escape(group.precision)}"
    head = _header("#", "candidate:", "status:", "speedup", "95 % interval", "time", "baseline", "error", "notes:")
    return "\n".join([title, "", f"Baseline: {_baseline(group)}", "", head, *map(_entry, group.entries)])


def _baseline(group: Group) -> str:
    return " ".join(filter(None, [code(group.baseline), text.duration(group.baseline_ms)]))


def _entry(entry: Entry) -> str:
    record = entry.record
    warnings = [f"Warning: {warning}" for warning in record.warnings]
    notes = [record.caption, record.message, text.provenance(record), *warnings]
    return line(
        str(entry.rank or ""),
        code(record.candidate),
        f"{record.status} {code(record.reason)}".rstrip(),
        text.factor(record.speedup) if record.speedup is not None else "",
        text.interval(record),
        text.duration(record.candidate_ms),
        text.duration(record.baseline_ms),
        text.number(record.error_ratio),
        "<br>".join(escape(note) for note in notes if note),
    )


def _header(*names: str) -> str:
    """A table's first two lines; columns are aligned to the right unless the name ends in a colon, for text."""
    rules = [":---" if name.endswith(":") else "---:" for name in names]
    return "\n".join([line(*(name.rstrip(":") for name in names)), line(*rules)])


def line(*cells: str) -> str:
    """A line of a table, of cells that are Markdown already."""
    # A pipe ends its cell, in a code span too.
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def escape(words: str) -> str:
    """Text escaped so that GitHub shows it unchanged and reads no Markdown, HTML, mathematics, link, mention or emoji
    into it."""
    # What is marked here, no escape protects.
    words = LINKING.sub(lambda found: f"\0{found[0]}", text.clean(words))
    words = re.sub(r"([\\`*\[\]<>~$&])", r"\\\1", words)
    # Within a word an underscore means nothing, and names stay readable in the raw file.
    words = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", words)
    return re.sub("\0(.)", r"<span>\1</span>", words)


def code(words: str) -> str:
    """A code span, empty for no words."""
    words = text.clean(words)
    if "`" not in words:
        return f"`{words}`" if words else ""
    fence = "`" * (1 + max(map(len, re.findall("`+", words))))
    return f"{fence} {words} {fence}"


def _plain(value: Any) -> str:
    """A manifest's value of any JSON type as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return "" if value is None else str(value)
