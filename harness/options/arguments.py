"""Kinds of values on the command line. Each raises argparse.ArgumentTypeError with a sentence for what is none."""

from __future__ import annotations

import argparse
from pathlib import Path

# Seconds, MB, GB; and whatever is counted.
MOST, MOST_COUNTED = 1e9, 10**6
MOST_SEED = 2**63 - 1


def amount(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # NaN is not either.
    if not 0 < value <= MOST:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is no number above 0 and up to {MOST:g}")
    return value


def count(text: str) -> int:
    """A whole number from 1 on."""
    return _whole(text, 1, MOST_COUNTED)


def port(text: str) -> int:
    """A TCP port."""
    return _whole(text, 1, (1 << 16) - 1)


def seed(text: str) -> int:
    """A whole number from 0 on, as the config's key has it."""
    return _whole(text, 0, MOST_SEED)


def place(text: str) -> Path:
    """A path that is not empty: an empty one would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("an empty path; is a variable not set?")
    return Path(text)


def _whole(text: str, least: int, most: int) -> int:
    # Python reads no more digits than 4300.
    if not text.isascii() or not text.isdigit() or len(text) > 20 or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is no whole number from {least} to {most}")
    return int(text)
