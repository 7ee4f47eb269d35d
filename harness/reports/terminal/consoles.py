"""Where commands print their tables."""

from __future__ import annotations

from rich.console import Console, ConsoleDimensions

NARROWEST = 20
USUAL = ConsoleDimensions(80, 25)


class Terminal(Console):
    """A console that is never narrower than its tables can be: `COLUMNS=0`, or a terminal that says so, left nothing of
    them."""

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        width, height = super().size
        return ConsoleDimensions(width if width >= NARROWEST else USUAL.width, height or USUAL.height)

    @size.setter
    def size(self, new: tuple[int, int]) -> None:
        self._width, self._height = new
