"""Do the intervals cover? Method x scenario x number of pairs: coverage in % and mean half-width, and coverage when
sampling stops as soon as the interval is narrow.

    python benchmarks/interval_coverage.py [--trials 2000] [--seed 1]

Every number is made up; nothing is timed. `assay` is the code that the harness uses (harness/timing/statistics.py)
at the looks of its stopping rule; the others are what it was chosen over. Every method is widened by the clock's
known error where the scenario has one. Last line: the worst of `assay`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.timing import statistics
from harness.timing.fixed_cost import FixedCost
from harness.timing.stopping import StoppingRule

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

PAIRS = 200
SHOWN = (10, 20, 40, 100, 200)
LOOKS = StoppingRule(precision=0.005, budget_s=1e9, min_pairs=10, max_pairs=PAIRS).looks()
EVERY = tuple(range(10, PAIRS + 1, 5))
# Half-widths to stop at, in median absolute deviations of the log-ratios: from never reached to reached at once.
TARGETS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.4, 2.0)
SIGMA = 0.005
RESAMPLES = 2000


@dataclass(frozen=True)
class Session:
    """Trials of one scenario: logarithms of both sides' times [trials, pairs], who went first, the true log-ratio, and
    the clock's error."""

    baseline: Floats
    candidate: Floats
    baseline_first: Flags
    truth: float = 0.0
    systematic: float = 0.0

    @property
    def log_ratios(self) -> Floats:
        return self.baseline - self.candidate

    def first(self, pairs: int) -> Session:
        """The session after so many pairs."""
        begun = (part[:, :pairs] for part in (self.baseline, self.candidate, self.baseline_first))
        return Session(*begun, self.truth, self.systematic)


@dataclass(frozen=True)
class Draw:
    """Raw material: independent normal noise of each side, and the place of each burst in the session (0 to 1)."""

    rng: np.random.Generator
    baseline: Floats
    candidate: Floats
    baseline_at: Floats
    candidate_at: Floats
    baseline_first: Flags

    def session(self, baseline: Floats, candidate: Floats, truth: float = 0.0, systematic: float = 0.0) -> Session:
        sides = np.broadcast_arrays(baseline, candidate)
        return Session(*sides, self.baseline_first, truth, systematic)


def draw(rng: np.random.Generator, trials: int, pairs: int = PAIRS) -> Draw:
    first = rng.random((trials, pairs // 2)) < 0.5
    order = np.stack([first, ~first], axis=-1).reshape(trials, pairs)
    place = 2.0 * np.arange(pairs)
    noise = SIGMA * rng.standard_normal((2, trials, pairs))
    return Draw(rng, noise[0], noise[1], (place + ~order) / (2 * pairs), (place + order) / (2 * pairs), order)


def normal(d: Draw) -> Session:
    return d.session(d.baseline, d.candidate)


def heavy_tails(d: Draw) -> Session:
    """Student's t with two degrees of freedom: no variance."""
    a, b = SIGMA * d.rng.standard_t(2, (2, *d.baseline.shape))
    return d.session(a, b)


def outliers(d: Draw) -> Session:
    """One reading in twelve is late, by 20 % on average."""
    late = (d.rng.random((2, *d.baseline.shape)) < 1 / 12) * d.rng.exponential(0.2, (2, *d.baseline.shape))
    return d.session(d.baseline + late[0], d.candidate + late[1])


def bimodal(d: Draw) -> Session:
    """Each reading falls into one of two states 2 % apart, 30 to 70."""
    modes = 0.02 * (d.rng.random((2, *d.baseline.shape)) < 0.3)
    return d.session(d.baseline / 5 + modes[0], d.candidate / 5 + modes[1])


def coin_modes(d: Draw) -> Session:
    """Two narrow states 2 % apart, even chances."""
    modes = 0.02 * (d.rng.random((2, *d.baseline.shape)) < 0.5)
    return d.session(d.baseline / 10 + modes[0], d.candidate / 10 + modes[1])


def unlike_sides(d: Draw) -> Session:
    """Baseline bimodal, candidate skewed: the log-ratio is not symmetric, and its median not the ratio of medians."""

    def sides(e: Draw) -> Floats:
        modes = 0.02 * (e.rng.random(e.baseline.shape) < 0.4)
        return e.baseline / 5 + modes - e.rng.exponential(0.01, e.baseline.shape)

    truth = float(np.median(sides(draw(np.random.default_rng(7), 5000))))
    return d.session(sides(d), np.zeros(d.baseline.shape), truth)


def drift(d: Draw) -> Session:
    """Both sides slow down by 5 % over 200 pairs."""
    return d.session(d.baseline + 0.05 * d.baseline_at, d.candidate + 0.05 * d.candidate_at)


def slow_first_half(d: Draw) -> Session:
    """Both sides are 3 % slower, and twice as noisy, in the first half."""

    def half(noise: Floats, at: Floats) -> Floats:
        return np.where(at < 0.5, 0.03 + 2 * noise, noise)

    return d.session(half(d.baseline, d.baseline_at), half(d.candidate, d.candidate_at))


def order_effect(d: Draw) -> Session:
    """Whoever goes second is 1 % slower."""
    return d.session(d.baseline + 0.01 * ~d.baseline_first, d.candidate + 0.01 * d.baseline_first)


def one_sided_order(d: Draw) -> Session:
    """The candidate has two modes 1 % apart, of which it is in the slow one whenever it goes second; so has the
    baseline, by chance."""
    return d.session(d.baseline + 0.01 * (d.rng.random(d.baseline.shape) < 0.5), d.candidate + 0.01 * d.baseline_first)


def quantised(d: Draw) -> Session:
    """Bursts of 50.7 and 50.3 ticks of the clock, with noise of a seventh of a tick."""

    def ticks(true: float, noise: Floats) -> Floats:
        return np.asarray(np.log(np.round(true * np.exp(noise / 2))))

    systematic = FixedCost(0.0, 0.0, 0.0).systematic(50.7, 50.3, tick_us=1.0)
    return d.session(ticks(50.7, d.baseline), ticks(50.3, d.candidate), math.log(50.7 / 50.3), systematic)


def lagged(rho: float) -> Callable[[Draw], Session]:
    def scenario(d: Draw) -> Session:
        sides = [side.copy() for side in (d.baseline, d.candidate)]
        for side in sides:
            for i in range(1, side.shape[1]):
                side[:, i] = rho * side[:, i - 1] + math.sqrt(1 - rho * rho) * side[:, i]
        return d.session(sides[0], sides[1])

    return scenario


def sticky_modes(d: Draw) -> Session:
    """As bimodal, but a side stays in its state for some pairs (correlation 0.57 from one to the next)."""

    def modes() -> Floats:
        uniform = d.rng.random(d.baseline.shape)
        state = uniform < 0.3
        for i in range(1, state.shape[1]):
            state[:, i] = np.where(state[:, i - 1], uniform[:, i] < 0.7, uniform[:, i] < 0.3 * 0.3 / 0.7)
        return np.where(state, 0.02, 0.0)

    return d.session(d.baseline / 5 + modes(), d.candidate / 5 + modes())


INDEPENDENT: dict[str, Callable[[Draw], Session]] = {
    "normal": normal,
    "heavy tails": heavy_tails,
    "outliers": outliers,
    "bimodal": bimodal,
    "coin modes": coin_modes,
    "unlike sides": unlike_sides,
    "drift": drift,
    "slow 1st half": slow_first_half,
    "order effect": order_effect,
    "one-sided order": one_sided_order,
    "quantised": quantised,
}
CORRELATED: dict[str, Callable[[Draw], Session]] = {
    "lag corr. 0.3": lagged(0.3),
    "lag corr. 0.6": lagged(0.6),
    "sticky modes": sticky_modes,
}
SCENARIOS = INDEPENDENT | CORRELATED

Ends = tuple[Floats, Floats]
Find = Callable[[Session], Ends]


def assay(session: Session) -> Ends:
    ratios = statistics.log_ratios(session.baseline, session.candidate, session.baseline_first)
    _, low, high = statistics.median_interval(ratios)
    return low, high


def binomial(level: float) -> Find:
    """Order statistics by the exact binomial distribution, whole ranks."""

    def method(session: Session) -> Ends:
        logs = session.log_ratios
        n = logs.shape[-1]
        rank, tail = 0, 0.5**n
        while tail <= (1 - level) / 2:
            rank += 1
            tail += math.comb(n, rank) * 0.5**n
        ordered = np.sort(logs, axis=-1)
        return ordered[:, rank - 1], ordered[:, n - rank]

    return method


@cache
def resampled_ranks(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Ranks of the middle two of resamples with replacement, and how often: the same for every sorted sample of n."""
    drawn = np.sort(np.random.default_rng(n).integers(0, n, (RESAMPLES, n)), axis=1)
    ranks, counts = np.unique(drawn[:, [(n - 1) // 2, n // 2]], axis=0, return_counts=True)
    return ranks[:, 0], ranks[:, 1], counts / RESAMPLES


def resampled_medians(logs: Floats) -> tuple[Floats, Floats]:
    """Medians of resamples of each trial, sorted, and the share of resamples up to each."""
    below, above, shares = resampled_ranks(logs.shape[-1])
    ordered = np.sort(logs, axis=-1)
    medians = (ordered[:, below] + ordered[:, above]) / 2
    order = np.argsort(medians, axis=1)
    return np.take_along_axis(medians, order, axis=1), np.cumsum(shares[order], axis=1)


def at_share(medians: Floats, cumulated: Floats, share: ArrayLike) -> Floats:
    """The smallest median that at least `share` of the resamples do not exceed."""
    reached = cumulated >= np.asarray(share).reshape(-1, 1) - 1e-9
    return np.asarray(np.take_along_axis(medians, reached.argmax(axis=1)[:, None], axis=1)[:, 0])


def percentile(level: float) -> Find:
    def method(session: Session) -> Ends:
        resampled = resampled_medians(session.log_ratios)
        return at_share(*resampled, (1 - level) / 2), at_share(*resampled, (1 + level) / 2)

    return method


def bias_corrected(level: float) -> Find:
    """BCa; the jackknife of a median gives no acceleration, so only the bias correction is left."""
    inverse, forward = np.vectorize(_normal_quantile), np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)))
    z = _normal_quantile((1 + level) / 2)

    def method(session: Session) -> Ends:
        logs = session.log_ratios
        medians, cumulated = resampled_medians(logs)
        shares = np.diff(cumulated, axis=1, prepend=0)
        middle = np.median(logs, axis=1, keepdims=True)
        below = (shares * (1 + np.sign(middle - medians)) / 2).sum(axis=1)
        bias = inverse(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
        low, high = (np.clip(forward(2 * bias + shift), 0, 1 - 1e-9) for shift in (-z, z))
        return at_share(medians, cumulated, low), at_share(medians, cumulated, high)

    return method


def _normal_quantile(p: float) -> float:
    low, high = -8.0, 8.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 0.5 * math.erfc(-middle / math.sqrt(2)) < p else (low, middle)
    return low


@dataclass(frozen=True)
class Method:
    name: str
    find: Find
    looks: tuple[int, ...] = LOOKS


METHODS = (
    Method("assay", assay),
    Method("percentile bootstrap 95 %, looks every 5 pairs", percentile(0.95), EVERY),
    Method("percentile bootstrap 95 %", percentile(0.95)),
    Method("percentile bootstrap 98 %", percentile(0.98)),
    Method("BCa bootstrap 95 %", bias_corrected(0.95)),
    Method("binomial ranks 95 %", binomial(0.95)),
)


@dataclass(frozen=True)
class Row:
    """Coverage (0 to 1) and mean half-width by pair count; worst coverage over targets, with the mean pairs there."""

    coverage: dict[int, float]
    half_width: dict[int, float]
    stopped_coverage: float
    stopped_pairs: float


def judge(method: Method, session: Session) -> Row:
    def interval(n: int) -> Ends:
        low, high = method.find(session.first(n))
        return low - session.systematic, high + session.systematic

    def covers(low: Floats, high: Floats) -> Flags:
        # Half a billionth: quantised logs differ from the truth by rounding alone.
        return np.asarray((low <= session.truth + 5e-10) & (session.truth - 5e-10 <= high))

    fixed = {n: interval(n) for n in SHOWN}
    at_looks = [interval(n) for n in method.looks]
    lows, highs = (np.stack([ends[i] for ends in at_looks]) for i in (0, 1))
    looks = np.asarray(method.looks)
    mad = float(np.median(np.abs(session.log_ratios - np.median(session.log_ratios))))
    columns = np.arange(lows.shape[1])
    stopped = []
    for target in TARGETS:
        narrow = (highs - lows) / 2 < target * mad + session.systematic
        narrow[-1] = True
        at = narrow.argmax(axis=0)
        stopped.append((float(covers(lows[at, columns], highs[at, columns]).mean()), float(looks[at].mean())))
    worst = min(stopped)
    return Row(
        {n: float(covers(*ends).mean()) for n, ends in fixed.items()},
        {n: float((ends[1] - ends[0]).mean()) / 2 for n, ends in fixed.items()},
        *worst,
    )


def table(trials: int, seed: int, methods: Iterable[Method] = METHODS) -> dict[tuple[str, str], Row]:
    rows = {}
    for index, (name, scenario) in enumerate(SCENARIOS.items()):
        session = scenario(draw(np.random.default_rng([seed, index]), trials))
        for method in methods:
            rows[method.name, name] = judge(method, session)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = table(options.trials, options.seed)
    print(f"coverage in % (mean half-width in %) after n pairs; {options.trials} trials, looks at {LOOKS}")
    for method in METHODS:
        print(f"\n{method.name}")
        heads = "".join(f"{f'n={n}':>15}" for n in SHOWN)
        print(f"  {'scenario':14}{heads}   stopping: worst coverage (mean pairs)")
        for name in SCENARIOS:
            row = rows[method.name, name]
            cells = "".join(f"{100 * row.coverage[n]:>7.1f} ({100 * row.half_width[n]:.2f})".rjust(15) for n in SHOWN)
            print(f"  {name:14}{cells}   {100 * row.stopped_coverage:.1f} ({row.stopped_pairs:.0f})")
    print()
    for method in METHODS:
        print(
            f"{method.name:47} worst, independent pairs: {_worst(rows, method, INDEPENDENT)}"
            f"; correlated: {_worst(rows, method, CORRELATED)}"
        )
    mine = [rows["assay", name] for name in INDEPENDENT]
    fixed = min(min(row.coverage.values()) for row in mine)
    print(f"assay_fixed_coverage={fixed:.3f} assay_stopping_coverage={min(row.stopped_coverage for row in mine):.3f}")


def _worst(rows: dict[tuple[str, str], Row], method: Method, names: Iterable[str]) -> str:
    chosen = [rows[method.name, name] for name in names]
    fixed = min(min(row.coverage.values()) for row in chosen)
    return f"fixed {100 * fixed:.1f}, stopping {100 * min(row.stopped_coverage for row in chosen):.1f}"


if __name__ == "__main__":
    main()
