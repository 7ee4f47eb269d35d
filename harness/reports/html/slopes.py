"""The figure of a comparison: each candidate of a group as a slope from run A to run B, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes

from harness.reports import text
from harness.reports.compare import ChangeKind, Row
from harness.reports.html import figures, svg
from harness.timing.statistics import Interval

COLOURS = {ChangeKind.FASTER: svg.BLUE, ChangeKind.SLOWER: svg.RED}
# In pixels; names stand to the right.
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 880, 70, 350, 30, 16
LINE = 19


def slopes(rows: Sequence[Row], name: str) -> Markup | None:
    """Of the rows whose speedups were compared; None if none were. A slope that rises is faster in B.

    All begin at 1: speedups of 50 and of 0.05 in one figure would show no change of 5 %.
    """
    found = sorted(((row.ratio, row) for row in rows if row.ratio), key=lambda pair: pair[0].value)
    if not found:
        return None
    with svg.style():
        height = max(170, TOP + BOTTOM + LINE * (len(found) + 3))
        axes = svg.axes(WIDTH, height, left=LEFT, right=RIGHT, top=TOP, bottom=BOTTOM)
        axes.set_yscale("log")
        axes.axhline(1, color=svg.INK, linewidth=1)
        drawn = [tuple(map(figures.on_axis, (ratio.lo, ratio.value, ratio.hi))) for ratio, _ in found]
        for number, (low, value, high) in enumerate(drawn):
            colour, x = _colour(found[number][1]), _end(number, len(found))
            axes.plot([0, x], [1, value], color=colour, linewidth=1.2)
            axes.vlines(x, low, high, colour, linewidth=1.6)
            axes.scatter([x, x], [low, high], s=30, c=colour, marker="_", linewidths=1.4)
            axes.scatter([x], [value], s=26, c=colour, zorder=3)
        # At least 10 % up and down, so that noise does not look like a change.
        figures.ratio_ticks(axes.yaxis, [0.9, 1.1, *(end for low, _, high in drawn for end in (low, high))])
        axes.set_xlim(-0.04, 1.04)
        axes.set_xticks([0, 1], ["A", "B over A"])
        axes.xaxis.tick_top()
        axes.tick_params(axis="both", length=0)
        axes.spines[:].set_visible(False)
        _labels(axes, found, height - TOP - BOTTOM)
        said = "; ".join(f"{text.clean(row.either.candidate)} {text.factor(ratio.value)}" for ratio, row in found[::-1])
        return svg.inline(axes, name, f"B's speedup over A's of {len(found)} candidates: {said[:400]}")


def _end(number: int, count: int) -> float:
    """Where a slope ends: side by side, so that no interval hides another."""
    return 1 - (count - 1 - number) * min(0.06, 0.6 / count)


def _colour(row: Row) -> str:
    return COLOURS.get(row.change, svg.GREY)


def _labels(axes: Axes, found: Sequence[tuple[Interval, Row]], pixels: int) -> None:
    """Each name at the right end of its slope, moved up where it would stand on the one below."""
    to_canvas, from_canvas = axes.transData, axes.transData.inverted()
    # A pixel of the page is more than one of the canvas.
    gap = LINE * axes.bbox.height / pixels
    heights: list[float] = []
    for ratio, _ in found:
        own = float(to_canvas.transform((1, figures.on_axis(ratio.value)))[1])
        heights.append(max(own, heights[-1] + gap) if heights else own)
    # Down again, from the uppermost on, as far as they are too high.
    for number in reversed(range(len(heights))):
        heights[number] = min(heights[number], axes.bbox.y1 - gap * (len(heights) - 1 - number))
    for number, ((ratio, row), height) in enumerate(zip(found, heights, strict=True)):
        axes.annotate(
            f"{figures.short(row.either.candidate)} {text.ratio(ratio.value, ratio.lo, ratio.hi)}",
            (_end(number, len(found)) + 0.01, figures.on_axis(ratio.value)),
            (1.12, float(from_canvas.transform((0, height))[1])),
            va="center",
            color=svg.INK,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": svg.GREY, "linewidth": 0.5, "relpos": (0, 0.5), "shrinkA": 2},
        )
