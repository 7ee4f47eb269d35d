"""The colours of the terminal, as people see them to whom some colours are one."""

import itertools

import numpy as np
import pytest
from rich.color import Color
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, NIGHT_OWLISH, TerminalTheme

from harness.records import Status
from harness.reports.terminal import styles

BLACK, WHITE = (0, 0, 0), (255, 255, 255)
XTERM = [BLACK, (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)]
XTERM_BRIGHT = [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255)]
THEMES = {
    "rich": DEFAULT_TERMINAL_THEME,
    "night": NIGHT_OWLISH,
    "xterm": TerminalTheme(BLACK, WHITE, XTERM, [*XTERM_BRIGHT, WHITE]),
}
# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
# severity 1, on linear RGB.
EYES = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
# A distance of 2.3 in CIELAB is just noticeable. Green and yellow of the same palettes are 4 to 16 apart.
FAR_ENOUGH = 14


def seen(style: str, eyes: str, theme: TerminalTheme) -> np.ndarray:
    """The colour in CIELAB, as these eyes see it."""
    rgb = np.array(Color.parse(style).get_truecolor(theme)) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array(TO_XYZ) @ np.clip(np.array(EYES[eyes]) @ linear, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eyes", EYES)
def test_no_two_colours_are_one_to_anybody(eyes, theme):
    for one, other in itertools.combinations((styles.GOOD, styles.BAD, styles.DOUBT, styles.OURS), 2):
        apart = np.linalg.norm(seen(one, eyes, THEMES[theme]) - seen(other, eyes, THEMES[theme]))
        assert apart > FAR_ENOUGH, (one, other)


def test_every_status_has_a_style_and_is_counted_by_name():
    assert set(styles.STATUSES) == set(Status)
    assert [str(one) for one in styles.counts({Status.INCORRECT: 2, Status.PASSED: 3})] == ["3 passed", "2 incorrect"]
