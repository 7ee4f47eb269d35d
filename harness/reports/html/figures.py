"""The figures of a run's report. Every function needs at least one point, and returns an `<svg>`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from harness import metrics
from harness.records import Record
from harness.reports import text
from harness.reports.groups import Group
from harness.reports.html import svg

# An axis shows no more: a factor far beyond comes of a clock that told nothing, or of a record of another's.
LEAST_SHOWN, MOST_SHOWN = 1e-12, 1e12
# Two figures fit beside each other, or one wide one.
HALF, WIDE, HEIGHT = 548, 760, 330
ROW = 24
# Room for names, in pixels and in letters.
NAMES, LONGEST_NAME = 200, 27
BOUNDS = {
    "memory": (svg.BLUE, "o", "bound by memory"),
    "compute": (svg.ORANGE, "s", "bound by arithmetic"),
    "none": (svg.GREY, "D", "bound by neither"),
}


@dataclass(frozen=True)
class Point:
    """A passed candidate in a figure; `anchor` is where a click leads, `title` what a pointer over it shows."""

    record: Record
    anchor: str
    title: str
    x: float = 0.0
    y: float = 0.0


def whiskers(group: Group, anchor: Callable[[Record], str], floor_ms: float | None, name: str) -> Markup:
    """Every passed candidate of a group as a dot with its interval, beside the baseline and the speed of light."""
    passed = [entry.record for entry in group.entries if entry.rank is not None][::-1]
    light = on_axis(group.baseline_ms / floor_ms) if group.baseline_ms and floor_ms else None
    with svg.style():
        axes = svg.axes(WIDE, ROW * len(passed) + 68, left=NAMES, right=130, top=24, bottom=44)
        _dots(axes, passed, anchor)
        axes.axvline(1, color=svg.INK, linewidth=1)
        ends = [_place(value) for record in passed for value in (record.speedup_lo, record.speedup_hi) if value]
        _ratio_axis(axes, [1.0, *ends, *([light] if light else [])])
        _over(axes, 1.0, text.clean(group.baseline), light is None or light >= 1)
        if light:
            axes.axvline(light, color=svg.PURPLE, linewidth=1.2, linestyle=(0, (4, 3)))
            _over(axes, light, f"speed of light {text.factor(light)}", light < 1, svg.PURPLE)
        _name_rows(axes, [record.candidate for record in passed])
        axes.set_ylim(-0.6, len(passed) - 0.4)
        axes.set_xlabel(f"times as fast as {text.clean(group.baseline)}")
        said = f"Speedups of {len(passed)} candidates for {text.clean(group.problem)}, best first: " + "; ".join(
            f"{text.clean(record.candidate)} {text.speedup(record)}" for record in passed[:-6:-1]
        )
        light_said = f"; the speed of light would be {text.factor(light)}" if light else ""
        titles = {anchor(record): _title(record) for record in passed}
        return svg.inline(axes, name, said + light_said, titles)


def _dots(axes: Axes, passed: Sequence[Record], anchor: Callable[[Record], str]) -> None:
    speedups, rows = [_place(record.speedup) for record in passed], range(len(passed))
    lows, highs = [_place(record.speedup_lo) for record in passed], [_place(record.speedup_hi) for record in passed]
    colours = [_colour(record) for record in passed]
    axes.hlines(rows, lows, highs, colours, linewidth=1.6)
    for ends in (lows, highs):
        axes.scatter(ends, rows, s=40, c=colours, marker="|", linewidths=1.4)
    for marker, size, theirs in (("o", 40, False), ("D", 26, True)):
        members = [row for row in rows if is_baseline(passed[row]) is theirs]
        axes.scatter(
            [speedups[row] for row in members],
            members,
            s=size,
            c=[colours[row] for row in members],
            marker=marker,
            zorder=3,
            urls=[f"#{anchor(passed[row])}" for row in members],
        )
        if theirs and members:
            places = [speedups[row] for row in members]
            axes.vlines(places, -0.6, len(passed), svg.GREY, linewidth=0.9, linestyle=(0, (1, 2)))
    for row, speedup in enumerate(speedups):
        axes.text(1.01, row, text.factor(speedup), transform=axes.get_yaxis_transform(), va="center", color=svg.INK)


def _place(value: float | None) -> float:
    """Where a speedup or an end of its interval is drawn: a passed record has all three."""
    assert value is not None
    return on_axis(value)


def on_axis(value: float) -> float:
    """Where a factor is drawn: one beyond all axes at their end."""
    return min(max(value, LEAST_SHOWN), MOST_SHOWN)


def _colour(record: Record) -> str:
    """A candidate's interval is above 1, below 1 or neither; the baselines' own have one of their own."""
    if is_baseline(record):
        return svg.GREY
    return {"faster": svg.BLUE, "slower": svg.RED}.get(text.sure(record), svg.INK)


def is_baseline(record: Record) -> bool:
    """Whether this is PyTorch's own way to run the problem, timed as a candidate."""
    return record.candidate.startswith("baseline:")


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    # As text: labels of ticks take several times as long.
    beside = axes.get_yaxis_transform()
    for row, name in enumerate(names):
        axes.text(-0.015, row, short(name), transform=beside, ha="right", va="center", color=svg.INK)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _over(axes: Axes, x: float, words: str, to_the_left: bool, colour: str = svg.MUTED) -> None:
    """Words above a vertical line, on the side where nothing else is."""
    axes.annotate(
        words,
        (x, 1),
        (-4 if to_the_left else 4, 3),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        ha="right" if to_the_left else "left",
        color=colour,
    )


def fast_p(best: Sequence[float | None], name: str) -> Markup:
    """The share of problems whose best candidate is more than p times as fast as the baseline, over p."""
    solved = sorted(on_axis(speedup) for speedup in best if speedup is not None)
    low, high = min(0.5, solved[0] / 1.3), max(2.0, solved[-1] * 1.3)
    places = [low, *solved, high]
    with svg.style():
        axes = svg.axes(HALF, HEIGHT)
        # A share falls at a speedup itself: that one is not more than p.
        axes.step(places, [metrics.fast_p(best, p) for p in places], where="post", color=svg.BLUE, linewidth=2)
        axes.axvline(1, color=svg.INK, linewidth=1)
        at_1 = metrics.fast_p(best)
        axes.plot([1], [at_1], "o", color=svg.BLUE)
        axes.annotate(f"fast_1 {at_1:.0%}", (1, at_1), (8, 6), textcoords="offset points", color=svg.INK)
        _ratio_axis(axes, places)
        axes.set_ylim(0, 1.08)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
        axes.set_xlabel("p, times as fast as the baseline")
        axes.set_ylabel("share of problems")
        shares = ", ".join(f"{metrics.fast_p(best, p):.0%} above {p:g}x" for p in (0.5, 1.0, 1.5, 2.0, 4.0))
        return svg.inline(axes, name, f"Share of {len(best)} problems with a candidate faster than p: {shares}")


def roofline(points: Sequence[Point], name: str) -> Markup:
    """Measured time over the least time at the device's best rates; both in microseconds."""
    least = [point.x for point in points]
    with svg.style():
        axes = svg.axes(HALF, HEIGHT, left=76)
        axes.loglog()
        ends = [min(least) / 2, max(least) * 2]
        axes.set_xlim(*ends)
        axes.set_ylim(min(min(least), *(point.y for point in points)) / 2, max(point.y for point in points) * 2)
        for share, label, colour in ((1, "speed of light", svg.INK), (0.5, "50%", svg.GREY), (0.1, "10%", svg.GREY)):
            axes.plot(ends, [end / share for end in ends], color=colour, linewidth=1.4 if share == 1 else 0.8)
            along = axes.text(ends[0] * 1.15, ends[0] * 1.2 / share, label, rotation=45, va="bottom", color=svg.MUTED)
            along.set(rotation_mode="anchor", transform_rotates_text=True)
        for bound, (colour, marker, label) in BOUNDS.items():
            members = [point for point in points if _bound(point.record) == bound]
            _scatter(axes, members, colour, marker, label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=_steps(*axis.get_view_interval())))
            axis.set_major_formatter(FuncFormatter(_round_time))
            axis.set_minor_locator(NullLocator())
        axes.set_xlabel("least time at this device's best rates")
        axes.set_ylabel("measured time of a call")
        axes.legend(loc="lower right", labelcolor=svg.MUTED)
        shares = sorted(point.x / point.y for point in points)
        said = f"Measured against least time of {len(points)} candidates: the median reaches"
        return svg.inline(axes, name, f"{said} {shares[len(shares) // 2]:.0%} of the speed of light", _titles(points))


def _round_time(us: float, _: float) -> str:
    """A round number of microseconds."""
    for unit, size in (("µs", 1), ("ms", 1e3), ("s", 1e6)):
        if us < size * 999:
            return f"{us / size:g} {unit}"
    return f"{us / 1e6:g} s"


def _bound(record: Record) -> str:
    bound = record.timing.floor_bound.partition(":")[0] if record.timing else ""
    return bound if bound in BOUNDS else "none"


def error_against_speed(points: Sequence[Point], name: str) -> Markup:
    """Error over the reference's own (y), over speedup (x)."""
    with svg.style():
        axes = svg.axes(HALF, HEIGHT)
        axes.axvline(1, color=svg.INK, linewidth=1)
        axes.axhline(1, color=svg.INK, linewidth=1)
        theirs = [point for point in points if is_baseline(point.record)]
        _scatter(axes, [point for point in points if point not in theirs], svg.BLUE, "o", "candidates")
        _scatter(axes, theirs, svg.GREY, "D", "other baselines")
        _ratio_axis(axes, [1.0, *(point.x for point in points)])
        axes.set_yscale("log")
        _log_ticks(axes.yaxis, [1.0, *(point.y for point in points)], lambda ratio, _: f"{ratio:g}")
        axes.set_xlabel("times as fast as the baseline")
        axes.set_ylabel("error over the reference's own")
        if theirs:
            axes.legend(loc="best", labelcolor=svg.MUTED)
        better = sum(point.y <= 1 < point.x for point in points)
        said = f"Error against speed of {len(points)} candidates: {better} are faster than the baseline"
        return svg.inline(axes, name, f"{said} and no less accurate than the reference", _titles(points))


def compile_cost(points: Sequence[Point], name: str) -> Markup:
    """The candidates whose builds took longest (x: seconds)."""
    shown = sorted(points, key=lambda point: point.x)[-10:]
    with svg.style():
        axes = svg.axes(HALF, HEIGHT, left=NAMES)
        axes.barh(range(len(shown)), [point.x for point in shown], height=0.55, color=svg.BLUE)
        names = [point.record.candidate for point in shown]
        # Several problems may have a candidate of this name.
        problems = [point.record.problem.split("/")[-1] for point in shown]
        both = zip(names, problems, strict=True)
        _name_rows(axes, [f"{name} · {problem}" if names.count(name) > 1 else name for name, problem in both])
        axes.set_xlabel("seconds to build")
        said = ", ".join(f"{text.clean(point.record.candidate)} {point.x:.1f} s" for point in shown[:-4:-1])
        return svg.inline(axes, name, f"The {len(shown)} builds that took longest: {said} and so on")


def extent(box: Sequence[Sequence[int]], shape: Sequence[int], worst: Sequence[int], name: str) -> Markup:
    """Where in an output the wrong elements are: a bar for each dimension, the wrong stretch of it filled."""
    with svg.style():
        axes = svg.axes(HALF, 12 + ROW * len(shape), left=90, right=80, top=6, bottom=6)
        for dimension, size in enumerate(shape):
            first, last = box[dimension]
            axes.broken_barh([(0, 1)], (dimension - 0.3, 0.6), facecolor=svg.LINE)
            axes.broken_barh([(first / size, (last + 1 - first) / size)], (dimension - 0.3, 0.6), facecolor=svg.RED)
            if worst:
                axes.plot([(worst[dimension] + 0.5) / size], [dimension], "|", color=svg.INK, markersize=14)
            axes.text(1.01, dimension, f"of {size}", va="center", color=svg.MUTED)
        axes.set_yticks(range(len(shape)), [f"dimension {dimension}" for dimension in range(len(shape))])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        spans = "; ".join(f"dimension {d}: {first} to {last}" for d, (first, last) in enumerate(box))
        return svg.inline(axes, name, f"Wrong elements lie within {spans}")


def _scatter(axes: Axes, points: Sequence[Point], colour: str, marker: str, label: str) -> None:
    if points:
        axes.scatter(
            [point.x for point in points],
            [point.y for point in points],
            s=30,
            c=colour,
            marker=marker,
            edgecolors=svg.PAPER,
            linewidths=0.6,
            label=label,
            zorder=3,
            urls=[f"#{point.anchor}" for point in points],
        )


def _titles(points: Sequence[Point]) -> Mapping[str, str]:
    return {point.anchor: point.title for point in points}


def _title(record: Record) -> str:
    return f"{text.clean(record.candidate)}: {text.speedup(record)}, {text.duration(record.candidate_ms)}"


def _ratio_axis(axes: Axes, values: Sequence[float]) -> None:
    """Speedups: by factors, so that twice as fast is as far from 1 as half as fast."""
    axes.set_xscale("log")
    ratio_ticks(axes.xaxis, values)


def ratio_ticks(axis: Any, values: Sequence[float]) -> None:
    """Ticks for speedups, on a logarithmic axis that shows all `values`."""
    _log_ticks(axis, values, lambda value, _: f"{value:g}x")


def _log_ticks(axis: Any, values: Sequence[float], said: Callable[[float, float], str]) -> None:
    """Ticks at round values of a logarithmic axis that shows all values."""
    low, high = min(values) / 1.12, max(values) * 1.12
    axis.axes.set(**{f"{axis.axis_name}lim": (low, high)})
    axis.set_major_locator(LogLocator(subs=_steps(low, high)) if high / low > 6 else MaxNLocator(6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(said))


def _steps(low: float, high: float) -> tuple[int, ...]:
    """Which multiples of powers of ten an axis has room for."""
    return (1, 2, 5) if high / low < 500 else (1,)


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """A name as one line of at most `longest` letters."""
    name = text.clean(name)
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
