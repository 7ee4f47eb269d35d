"""leaderboard.md: the results of one run as GitHub shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.records import Record
from harness.reports import agreement, samples, text
from harness.reports.facts import CODE, WORDS, facts
from harness.reports.groups import Entry, Group, grouped, summarise

FIGURES = "`results.csv` has every number with all digits, `records.jsonl` the raw samples and the evidence."
# The letter without which GitHub makes no link of an address, no mention and no emoji (`:tada:`, `:100:`).
LINKING = re.compile(r":(?=//)|(?<=www)\.|@(?=\w)|:(?=(?:100|1234|\d*[a-z+_-][\w+-]*):)", re.IGNORECASE)


def leaderboard(records: Sequence[Record], manifest: Mapping[str, Any]) -> str:
    """The whole page; `manifest` is the content of run.json, of which every key is optional."""
    groups = grouped(records)
    claims = any(map(agreement.remark, records))
    parts = ["# Leaderboard", _run(manifest, records), _summary(groups), _samples(records)]
    parts += [*(_group(group, claims) for group in groups), _how_to_read()]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _how_to_read() -> str:
    words = [f"- **{escape(word)}**: {escape(meaning)}" for word, meaning in WORDS.items()]
    return "\n".join(["## How to read this", "", *words, f"- {FIGURES}"])


def _run(manifest: Mapping[str, Any], records: Sequence[Record]) -> str:
    shown = {label: (code if label in CODE else escape)(value) for label, value in facts(manifest, records).items()}
    return "\n".join(f"- **{label}**: {value}" for label, value in shown.items())


def _summary(groups: list[Group]) -> str:
    summary = summarise(groups)
    if summary is None:
        return "No records yet."
    head = _header("problem:", "variant:", "precision:", "baseline:", "best candidate:", "speedup", "time")
    lines = [line(*_where(group), *_best(group.best)) for group in groups]
    records = [entry.record for group in groups for entry in group.entries]
    claims = [line for said in agreement.summaries(records) for line in (escape(said), "")]
    return "\n".join(["## Summary", "", text.summary(summary), "", *claims, head, *lines])


def _samples(records: Sequence[Record]) -> str:
    parts = []
    for one in samples.series(records):
        head, *rows = samples.table(one)
        cells = [line(*map(escape, row)) for row in rows]
        parts += [f"### {escape(samples.title(one))}", escape(samples.sentences(one))]
        parts.append("\n".join([_header(f"{head[0]}:", *head[1:]), *cells]))
    return "\n\n".join(["## Samples", *parts, escape(samples.WORDS)]) if parts else ""


def _where(group: Group) -> tuple[str, str, str, str]:
    return code(group.problem), escape(group.variant), escape(group.precision), _baseline(group)


def _best(record: Record | None) -> tuple[str, str, str]:
    if record is None:
        return "none passed", "", ""
    return code(record.candidate), text.speedup(record), text.duration(record.candidate_ms)


def _group(group: Group, claims: bool) -> str:
    """With a column for what sources and KernelBench's rule say, if either says anything in this run."""
    title = f"## {code(group.problem)} · {escape(group.variant)} · {escape(group.precision)}"
    names = ["#", "candidate:", "status:", "speedup", "95 % interval", "time", "baseline", "error", "notes:"]
    head = _header(*names[:3], *(["others say:"] if claims else []), *names[3:])
    rows = [_entry(entry, claims) for entry in group.entries]
    return "\n".join([title, "", f"Baseline: {_baseline(group)}", "", head, *rows])


def _baseline(group: Group) -> str:
    return " ".join(filter(None, [code(group.baseline), text.duration(group.baseline_ms)]))


def _entry(entry: Entry, claims: bool) -> str:
    record = entry.record
    warnings = [f"Warning: {warning}" for warning in record.warnings]
    notes = [record.caption, record.message, text.provenance(record), *warnings]
    return line(
        str(entry.rank or ""),
        code(record.candidate),
        f"{record.status} {code(record.reason)}".rstrip(),
        *([_claim(record)] if claims else []),
        text.factor(record.speedup) if record.speedup is not None else "",
        text.interval(record),
        text.duration(record.candidate_ms),
        text.duration(record.baseline_ms),
        text.number(record.error_ratio),
        "<br>".join(escape(note) for note in notes if note),
    )


def _claim(record: Record) -> str:
    said = (agreement.theirs(record), agreement.dispute(record), agreement.rule(record))
    return "<br>".join(escape(part) for part in said if part)


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
