"""report.html: the results of one run as one file, with every candidate's verdict and what is known about it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from harness.records import Record, Status
from harness.reports import agreement, samples, text
from harness.reports.facts import CODE, WORDS, facts
from harness.reports.groups import Entry, Group, Summary, grouped, summarise
from harness.reports.html import figures, files, panels, render
from harness.reports.html.anchors import Anchors
from harness.reports.html.figures import Point
from harness.reports.insights import Shown, shown
from harness.store import listed

# In characters, and of the whole page in bytes.
MOST_SOURCE, MOST_LOG = 700_000, 250_000
LONGEST_SOURCE = 100_000
MOST_BYTES = 3_000_000
# Fewer builds than this have no slowest ones.
FEWEST_BUILDS = 3


@dataclass(frozen=True)
class Sight:
    """One candidate of the page. `missing` has a sentence for each panel that cannot be shown."""

    entry: Entry
    anchor: str
    figures: dict[str, str]
    place: panels.Place | None
    extent: Markup | None
    diagnostics: list[Any]
    insights: list[Shown]
    source: files.Excerpt | None
    file: str
    log: str
    log_file: bool
    missing: list[str]


@dataclass(frozen=True)
class Chapter:
    """One group of the page."""

    group: Group
    anchor: str
    whiskers: Markup | None
    sights: list[Sight]


def report(records: Sequence[Record], manifest: Mapping[str, Any], run_dir: Path | None = None) -> str:
    """The whole page; `manifest` is the content of run.json, of which every key is optional.

    `run_dir` has the logs; sources are read where the run's config says that they were.
    """
    whole = _Report(records, manifest, run_dir)
    bare = whole.page(0, 0)
    # Escaped text is longer than it was: by a quarter as a rule, by more if that is what it was written for.
    share = min(1.0, 0.8 * (MOST_BYTES - len(bare.encode())) / (MOST_SOURCE + MOST_LOG))
    if share <= 0:
        return bare
    page = whole.page(int(share * MOST_SOURCE), int(share * MOST_LOG))
    return page if len(page.encode()) <= MOST_BYTES else bare


class _Report:
    def __init__(self, records: Sequence[Record], manifest: Mapping[str, Any], run_dir: Path | None) -> None:
        self._manifest = manifest
        self._name = run_dir.resolve().name if run_dir else ""
        self._groups = grouped(records)
        self._anchors = Anchors(self._groups)
        self._summary = summarise(self._groups)
        self._samples = samples.series(records)
        self._paths = files.places(manifest)
        self._insights = files.insights(run_dir) if run_dir else {}
        self._logs = {id(one): files.log(run_dir, one.log) if run_dir else "" for one in records}
        self._tails = {id(one): self._logs[id(one)] or panels.log_tail(one) for one in records}
        self._places = {id(one): panels.place(one) for one in records}
        self._extents = {id(one): self._extent(number, one) for number, one in enumerate(records)}
        self._whiskers = [self._drawn(number, group) for number, group in enumerate(self._groups)]
        self._figures = list(self._overviews())

    def page(self, most_source: int, most_log: int) -> str:
        records = [entry.record for group in self._groups for entry in group.entries]
        sizes = [files.size(path) for record in records if (path := self._path(record))]
        share_source = min(LONGEST_SOURCE, files.fair_share(sizes, most_source))
        share_log = files.fair_share(map(len, self._tails.values()), most_log)
        chapters = [
            Chapter(
                group,
                self._anchors.of(group),
                self._whiskers[number],
                [self._sight(entry, share_source, share_log) for entry in group.entries],
            )
            for number, group in enumerate(self._groups)
        ]
        return render.page(
            "report.html",
            name=self._name,
            facts=facts(self._manifest, records),
            code=CODE,
            words=WORDS,
            summary=self._summary,
            tiles=_tiles(self._summary),
            chapters=chapters,
            samples=[(samples.title(one), samples.sentences(one), samples.table(one)) for one in self._samples],
            claims=agreement.summaries(records),
            theirs=agreement.theirs,
            dispute=agreement.dispute,
            rule=agreement.rule,
            samples_words=samples.WORDS,
            overviews=self._figures,
            statuses=list(self._summary.statuses) if self._summary else [],
        )

    def _path(self, record: Record) -> Path | None:
        return self._paths.get((record.problem, record.candidate))

    def _drawn(self, number: int, group: Group) -> Markup | None:
        if group.best is None:
            return None
        floors = [floor for entry in group.entries if (floor := _floor_us(entry.record))]
        floor_ms = statistics.median(floors) / 1000 if floors else None
        return figures.whiskers(group, self._anchors.of, floor_ms, f"g{number}")

    def _extent(self, number: int, record: Record) -> Markup | None:
        place = self._places[id(record)]
        if place is None or not place.shape:
            return None
        return figures.extent(place.box, place.shape, place.worst_index, f"x{number}")

    def _overviews(self) -> Iterator[tuple[str, Markup | None, str]]:
        """Title, figure and caption; where records lack what a figure shows, the caption says so."""
        records = [entry.record for group in self._groups for entry in group.entries]
        passed = [record for record in records if record.speedup is not None]
        best = [group.best.speedup if group.best else None for group in self._groups]
        yield (
            "How many problems are faster than p",
            figures.fast_p(best, "fast") if passed else None,
            "The best passed candidate of each problem (fast_p)." if passed else "No candidate passed.",
        )
        light = [
            self._point(record, floor, (record.candidate_ms or 0) * 1000)
            for record in passed
            if (floor := _floor_us(record))
        ]
        yield (
            "Roofline, in time",
            figures.roofline(light, "roof") if light else None,
            "A record keeps the least time at the device's best rates, not the bytes and FLOPs behind it, so both axes "
            "are times. Below the line: less work than the reference's."
            if light
            else "No record has a least time: the device's best rates were not measured.",
        )
        # A logarithmic axis has no place for an error of zero.
        erring = [self._point(one, one.speedup or 0, error) for one in passed if (error := _positive(one.error_ratio))]
        yield (
            "Error against speed",
            figures.error_against_speed(erring, "errors") if erring else None,
            "Below the line: more accurate than the reference at its precision. Right of it: faster than the baseline."
            if erring
            else "No passed candidate has an error to show.",
        )
        built = [self._point(record, record.compile_s, 0) for record in records if record.compile_s]
        seconds = [point.x for point in built]
        if len(built) >= FEWEST_BUILDS:
            yield (
                "Cost of compiling",
                figures.compile_cost(built, "builds"),
                f"The slowest of {len(built)} builds, which took {sum(seconds):.0f} s; the median is "
                f"{statistics.median(seconds):.1f} s.",
            )

    def _point(self, record: Record, x: float, y: float) -> Point:
        said = f"{record.candidate} ({record.problem}): {text.speedup(record)}"
        return Point(record, self._anchors.of(record), text.clean(said), figures.on_axis(x), figures.on_axis(y))

    def _sight(self, entry: Entry, share_source: int, share_log: int) -> Sight:
        record = entry.record
        path, log = self._path(record), self._tails[id(record)]
        content = listed.content(record, self._manifest)
        source = files.source(path, content) if path and share_source else ""
        return Sight(
            entry=entry,
            anchor=self._anchors.of(record),
            figures=panels.figures(record),
            place=self._places[id(record)],
            extent=self._extents[id(record)],
            diagnostics=panels.diagnostics(record),
            insights=[shown(one) for one in self._insights.get(record.title, [])],
            source=files.excerpt(source, panels.offending(record), share_source) if source else None,
            file=str(path) if path else "",
            log=log[-share_log:] if share_log else "",
            log_file=bool(self._logs[id(record)]),
            missing=list(_missing(record, path, bool(source), bool(log))),
        )


def _floor_us(record: Record) -> float:
    """0 where it is not known."""
    return _positive(record.timing.floor_us) if record.timing else 0.0


def _positive(value: float | None) -> float:
    return value if value is not None and 0 < value < math.inf else 0.0


def _missing(record: Record, path: Path | None, source: bool, log: bool) -> Iterator[str]:
    if figures.is_baseline(record):
        yield "A baseline is PyTorch's own way to run the problem, so it has no source."
    elif path is None:
        yield "Its source is not shown: a record does not keep it, and it is not where the run's config says."
    elif not source:
        yield "Its source is not shown: it was changed since, cannot be read, or would make this file too large."
    if record.log and not log:
        yield "Its log is not shown: it is empty, or not in the run directory."
    if record.speedup is not None and record.provenance is None:
        yield "No call was profiled, so it is not known which kernels ran."


def _tiles(summary: Summary | None) -> list[tuple[str, str]]:
    """The figures that a reader wants first, each with its meaning."""
    if summary is None:
        return []
    count = sum(summary.statuses.values())
    others = [f"{number} {status}" for status, number in summary.statuses.items() if status is not Status.PASSED]
    return [
        (text.factor(summary.geomean) if summary.geomean else "none", "geomean of each problem's best speedup"),
        (f"{summary.fast_1:.0%}", f"fast_1: {text.faster(summary)}"),
        (f"{summary.solved} of {summary.problems}", "problems have a passed candidate"),
        (
            f"{summary.statuses.get(Status.PASSED, 0)} of {count}",
            "; ".join(filter(None, ["candidates passed", ", ".join(others)])),
        ),
    ]
