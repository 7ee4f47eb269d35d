"""Several samples of each problem: how often one is right or fast, and how often the best of k is."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness import metrics
from harness.records import Record, is_no_word
from harness.reports import text
from harness.reports.rows import inert

SPEEDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
# Those that there are samples for, and as many as there are.
USUAL_K = (1, 5, 10, 100)
COLUMNS = ("set", "variant", "precision", "baseline", "series", "metric", "p", "k", "value", "over")
WORDS = (
    "pass@k is the chance that one or more of k samples pass, fast_p@k that one or more pass and are faster than p "
    "times the baseline (so fast_0@k is pass@k): the unbiased estimator of Chen et al., 2021 (arXiv:2107.03374), "
    "averaged over the problems with at least k samples. Samples whose records say nothing about them (a GPU that is "
    "missing, a bad problem, an error of the harness) are left out. An answer that holds no candidate counts if it "
    "says which sample it is."
)

# Set, variant, precision, baseline, series.
Place = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Series:
    """The samples of one set of problems under equal conditions.

    `speedups` has, for each problem, that of each of its samples, None where it did not pass.
    """

    place: Place
    speedups: list[list[float | None]]

    @property
    def samples(self) -> int:
        return sum(map(len, self.speedups))

    @property
    def passed(self) -> list[float]:
        """The speedup of each sample that passed."""
        return [speedup for some in self.speedups for speedup in some if speedup is not None]

    @property
    def best(self) -> list[float]:
        """The best speedup of each problem with a sample that passed."""
        found = ([one for one in some if one is not None] for some in self.speedups)
        return [max(some) for some in found if some]

    @property
    def ks(self) -> list[int]:
        most = max(map(len, self.speedups))
        return sorted({*(k for k in USUAL_K if k < most), most})

    def fast_p_at_k(self, p: float, k: int) -> tuple[float, int]:
        """fast_p@k, and the number of problems that it is over."""
        enough = [some for some in self.speedups if len(some) >= k]
        good = (sum(one is not None and one > p for one in some) for some in enough)
        shares = [metrics.at_k(len(some), count, k) for some, count in zip(enough, good, strict=True)]
        return sum(shares) / len(shares), len(shares)


def series(records: Sequence[Record]) -> list[Series]:
    """In the order of their places; none where no problem has more than one sample."""
    judged = [one for one in records if one.sample is not None and not is_no_word(one)]
    judged.sort(key=lambda one: (_place(one), one.problem, one.candidate))
    found = []
    for place, members in itertools.groupby(judged, key=_place):
        problems = itertools.groupby(members, key=lambda one: one.problem)
        found.append(Series(place, [[one.speedup for one in samples] for _, samples in problems]))
    return [one for one in found if one.ks != [1]]


def title(one: Series) -> str:
    """`level1 · default · float32 · over eager · model_a`."""
    owner, variant, precision, baseline, name = map(text.clean, one.place)
    return " · ".join(filter(None, (owner, variant, precision, f"over {baseline}", name)))


def sentences(one: Series) -> str:
    """How many samples passed, and the geometric means of their speedups, each with what it is over."""
    passed, best, problems = one.passed, one.best, len(one.speedups)
    said = f"{len(passed)} of {one.samples} samples of {problems} {_problems(problems)} passed"
    share = f"{said} ({len(passed) / one.samples:.1%})."
    if not passed:
        return share
    means = text.factor(metrics.geomean(passed)), text.factor(metrics.geomean(best))
    return (
        f"{share} Geometric mean of speedups: {means[0]} over the {len(passed)} samples that passed, {means[1]} over "
        f"the best sample of the {len(best)} {_problems(len(best))} with one."
    )


def table(one: Series) -> list[list[str]]:
    """Its head, and a row for each speed: fast_p@k in percent."""
    head = [""]
    for k in one.ks:
        over = one.fast_p_at_k(0.0, k)[1]
        head.append(f"k = {k}" + (f" ({over} {_problems(over)})" if over < len(one.speedups) else ""))
    rows = [
        ["pass@k" if p == 0 else f"fast_{p:g}@k", *(f"{one.fast_p_at_k(p, k)[0]:.1%}" for k in one.ks)] for p in SPEEDS
    ]
    return [head, *rows]


def lines(records: Sequence[Record]) -> list[str]:
    """All of it as text for a terminal; empty where there is nothing to say."""
    said = []
    for one in series(records):
        cells = table(one)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        said += [f"Samples: {title(one)}", sentences(one)]
        for name, *shares in cells:
            shown = [share.rjust(width) for share, width in zip(shares, widths[1:], strict=True)]
            said.append("  ".join([name.ljust(widths[0]), *shown]))
        said.append("")
    return [*said, WORDS] if said else []


def to_csv(records: Sequence[Record]) -> str:
    """A row for each figure, with all digits and the number of samples or problems that it is over."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in series(records):
        place = [inert(part) for part in one.place]
        writer.writerows([*place, *figure] for figure in _figures(one))
    return file.getvalue()


def _figures(one: Series) -> Iterator[tuple[str, str, int | str, float, int]]:
    """Metric, p, k, value, over."""
    yield "correct_rate", "", "", len(one.passed) / one.samples, one.samples
    for p, k in itertools.product(SPEEDS, one.ks):
        yield "fast_p_at_k", f"{p:g}", k, *one.fast_p_at_k(p, k)
    if one.passed:
        yield "geomean_of_samples", "", "", metrics.geomean(one.passed), len(one.passed)
        yield "geomean_of_best", "", "", metrics.geomean(one.best), len(one.best)


def _place(record: Record) -> Place:
    owner = record.problem.partition("/")[0]
    return owner, record.variant, record.precision, record.baseline, record.series


def _problems(count: int) -> str:
    return "problem" if count == 1 else "problems"
