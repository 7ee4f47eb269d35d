"""A figure of matplotlib's as SVG that stands within a page: its colours are the page's, its ids are its own, and it
needs no style rule, so that the page's Content-Security-Policy can forbid all inline style."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Colours that figures are drawn in, and what the page calls them: a theme of the page is one of the figures.
INK, MUTED, LINE, PAPER = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04"
BLUE, ORANGE, RED, PURPLE, GREY = "#0a0b11", "#0a0b12", "#0a0b14", "#0a0b15", "#0a0b16"
FONT_SIZE = 11.5
NAMES = {
    INK: "ink",
    MUTED: "muted",
    LINE: "line",
    PAPER: "paper",
    BLUE: "blue",
    ORANGE: "orange",
    RED: "red",
    PURPLE: "purple",
    GREY: "grey",
}
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "assay",  # the same figure is the same text
    "text.parse_math": False,  # a dollar in a candidate's name is a dollar
    "font.size": FONT_SIZE,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
}
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
# Set by the page for all text, or without meaning here.
LEFT_OUT = {"font-family", "font"}
# What text is without being told: page.css gives every figure the first two.
USUAL = {f"{FONT_SIZE}px", INK, "start"}
NUMBER = re.compile(r"-?\d+\.\d{2,}")


def axes(width: int, height: int, left: int = 66, right: int = 14, top: int = 12, bottom: int = 44) -> Axes:
    """The axes of a new figure of so many CSS pixels, with these margins. Call within `style`."""
    # A point of matplotlib's SVG is shown as a pixel. A layout of its own would take it ten times as long.
    drawn = Figure(figsize=(width / 72, height / 72), facecolor="none")
    inner = (left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height)
    return drawn.add_axes(inner)


@contextmanager
def style() -> Iterator[None]:
    """The settings that figures are made and rendered under."""
    with matplotlib.rc_context(STYLE):
        yield


def inline(drawn: Axes, name: str, said: str, titles: Mapping[str, str] | None = None) -> Markup:
    """The figure as an `<svg>`. `name` is unique in the page, `said` what a screen reader says of it.

    `titles` has the tooltip of each point whose url is `#<key>`; a click on it leads to that place of the page.
    """
    file = io.StringIO()
    with warnings.catch_warnings():
        # Letters that its own font lacks: the reader's browser has others.
        warnings.simplefilter("ignore")
        figure = drawn.get_figure(root=True)
        assert figure is not None
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in [one for one in parent if one.tag.endswith(("metadata", "style"))]:
            parent.remove(child)
    for element in root.iter():
        _simplify(element, name, titles or {})
    _shorten(root)
    size = root.get("viewBox", "").split()
    root.attrib = {"viewBox": " ".join(size), "width": size[2], "height": size[3], "role": "img", "aria-label": said}
    # ElementTree has escaped all text and every attribute.
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _simplify(element: ElementTree.Element, figure_name: str, titles: Mapping[str, str]) -> None:
    element.tag = element.tag.removeprefix(SVG)
    element.text, element.tail = (element.text or "").strip() or None, None
    given = dict(element.attrib)
    element.attrib.clear()
    for declared in filter(None, given.pop("style", "").split(";")):
        key, _, value = declared.partition(":")
        if key.strip() not in LEFT_OUT and (element.tag != "text" or value.strip() not in USUAL):
            element.set(key.strip(), _colour(value.strip()))
    if element.tag == "a":
        target = given.pop(LINK).removeprefix("#")
        given.pop("target", None)
        element.tag = "g"
        element.set("data-go", target)
        if target in titles:
            title = ElementTree.Element("title")
            title.text = titles[target]
            element.insert(0, title)
    if LINK in given:
        given["href"] = f"#{figure_name}-{given.pop(LINK).removeprefix('#')}"
    # Only definitions are referred to.
    if element.tag in ("path", "clipPath") and "id" in given:
        given["id"] = f"{figure_name}-{given['id']}"
    else:
        given.pop("id", None)
    for key, value in given.items():
        if key == "clip-path":
            # Only lines are drawn beyond the axes.
            if element.tag != "path":
                continue
            value = value.replace("url(#", f"url(#{figure_name}-")
        if key == "transform" and value.startswith("rotate(-0 "):
            continue
        if key in ("d", "x", "y", "transform", "width", "height"):
            value = NUMBER.sub(lambda found: f"{float(found[0]):.1f}", " ".join(value.split()))
        element.set(key, value)


def _shorten(element: ElementTree.Element) -> None:
    """Without groups that group nothing and paths that draw nothing; equal paths in a row are one. Half of the size."""
    kept: list[ElementTree.Element] = []
    for child in element:
        _shorten(child)
        if child.tag == "g" and not child.attrib:
            kept += child
        elif child.tag != "path" or _draws(child):
            kept.append(child)
    shown: list[ElementTree.Element] = []
    for child in kept:
        if shown and child.tag == shown[-1].tag == "path" and _paint(child) == _paint(shown[-1]):
            shown[-1].set("d", f"{shown[-1].get('d')} {child.get('d')}")
        elif child.tag != "defs" or len(child):
            shown.append(child)
    element[:] = shown


def _draws(path: ElementTree.Element) -> bool:
    return "d" in path.attrib and (path.get("fill") != "none" or "stroke" in path.attrib)


def _paint(path: ElementTree.Element) -> dict[str, str]:
    return {key: value for key, value in path.attrib.items() if key != "d"}


def _colour(value: str) -> str:
    name = NAMES.get(value)
    return f"var(--{name})" if name else value
