"""Pictures of what a terminal shows, by the system's Chromium: docs/images/terminal-*.png.

python scripts/terminal_pictures.py            # a problem of results/seeds-h200 at 80 and at 160 columns
tmux capture-pane -p -e > view.txt
python scripts/terminal_pictures.py view.txt docs/images/terminal-live.png     # a screen of a run, as it was
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.reports.terminal import leaderboard  # noqa: E402
from harness.store import run_directory  # noqa: E402

RUN = ROOT / "results/seeds-h200"
PROBLEM = "attention/sdpa"
WIDTHS = (80, 160)
# Black, red, green, yellow, blue, magenta, cyan, white; then the bright ones.
PLAIN = ["282c32", "e05a50", "5ab478", "d6aa46", "5082c8", "c478c8", "5ab4be", "dee2e6"]
BRIGHT = ["6e7680", "ff786c", "78d296", "f0c864", "74b6f2", "e39ccb", "78d2dc", "ffffff"]
PAGE = """<!DOCTYPE html><meta charset="UTF-8"><style>{stylesheet}
body {{ margin: 0; padding: 12px 14px; background: {background}; color: {foreground}; }}
pre {{ margin: 0; font: 13px/17px "DejaVu Sans Mono", monospace; }}</style><pre>{code}</pre>"""
CHARACTER_PX, LINE_PX = 7.83, 17


def main() -> None:
    """The picture of a screen that was captured, or else those of the leaderboard."""
    if len(sys.argv) == 3:
        text = Text.from_ansi(Path(sys.argv[1]).read_text().rstrip())
        console = recording(max(line.cell_len for line in text.split()))
        console.print(text)
        picture(console, Path(sys.argv[2]))
        return
    for width in WIDTHS:
        console = recording(width)
        manifest, records = run_directory.read(RUN)
        leaderboard.show([record for record in records if record.problem == PROBLEM], console, manifest)
        picture(console, ROOT / f"docs/images/terminal-{width}.png")


def theme() -> TerminalTheme:
    """A dark terminal."""
    plain, bright = ([tuple(bytes.fromhex(one)) for one in row] for row in (PLAIN, BRIGHT))
    return TerminalTheme((20, 23, 27), (222, 226, 230), plain, bright)  # type: ignore[arg-type]


def recording(width: int) -> Console:
    """A console as wide as this that keeps what is printed."""
    return Console(width=width, record=True, force_terminal=True, color_system="standard", file=io.StringIO())


def picture(console: Console, place: Path) -> None:
    """What was printed, as a PNG. Raises SystemExit where there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("there is no Chromium; install it: apt-get install chromium")
    lines = console.export_text(clear=False).rstrip().count("\n") + 1
    width, height = int(console.width * CHARACTER_PX) + 30, lines * LINE_PX + 24
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        html = console.export_html(theme=theme(), code_format=PAGE)
        page.write_text(re.sub(r"\s+</pre>", "</pre>", html))
        size = (f"--window-size={width},{height}", f"--screenshot={place}")
        options = (
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--disable-lcd-text",
        )
        subprocess.run([browser, *options, *size, page.as_uri()], check=True, capture_output=True)
    # Few colours, and so a small file.
    Image.open(place).convert("RGB").quantize(128).save(place, optimize=True)
    print(place)


if __name__ == "__main__":
    main()
