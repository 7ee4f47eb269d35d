"""Pictures of the HTML report, by the system's Chromium: docs/images/report-*.png, leaderboard.png and compare.png.

python scripts/report_pictures.py            # of results/seeds-h200, and of results/precision-cpu idle and busy
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs/images"
RUN = ROOT / "results/seeds-h200"
IDLE, BUSY = (ROOT / "results/precision-cpu" / name for name in ("idle", "busy"))
GROUP = "attention/sdpa/default/float16"
WIDE, NARROW, HEIGHT = 1280, 400, 900
# Between the three phones of a picture.
GAP = 20
# How much of a problem README shows, and how large.
SHOWN, ZOOM = 920, 1.25


def main() -> None:
    """Take all of them."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = written(Path(folder) / "run.html", "report", RUN)
        for name, scheme, anchor in (
            ("report-summary", "light", ""),
            ("report-figures-dark", "dark", "figures"),
            ("report-problem", "light", f"problem/{GROUP}"),
            ("report-candidate-dark", "dark", f"candidate/{GROUP}/mean_of_values"),
        ):
            kept(picture(browser, page, scheme, anchor, WIDE), f"{name}.png")
        kept(side_by_side(list(phones(browser, page))), "report-narrow.png")
        kept(for_readme(browser, page), "leaderboard.png")
        both = written(Path(folder) / "compare.html", "compare", IDLE, BUSY)
        kept(picture(browser, both, "light", "candidates", WIDE), "compare.png")
        browser.close()


def kept(image: Image.Image, name: str) -> None:
    """In 128 colours: text and lines lose nothing by it that is seen, and pictures in a repository have to be small."""
    image.quantize(128).save(IMAGES / name, optimize=True)


def written(file: Path, command: str, *runs: Path) -> str:
    """The address of a page that a command of the harness wrote."""
    words = [sys.executable, str(ROOT / "run_eval.py"), command, *map(str, runs), "--format", "html"]
    file.write_text(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    return file.as_uri()


def picture(browser: Any, page: str, scheme: str, anchor: str, width: int) -> Image.Image:
    """The window of a browser on a page, at what a link to it names."""
    context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(f"{page}#{anchor}" if anchor else page)
    # The page opens what a link names, and scrolls there.
    opened.wait_for_timeout(500)
    image = Image.open(io.BytesIO(opened.screenshot()))
    context.close()
    return image.convert("RGB")


def phones(browser: Any, page: str) -> Iterator[Image.Image]:
    """Three places of a page on a phone."""
    yield picture(browser, page, "light", "", NARROW)
    yield picture(browser, page, "dark", f"problem/{GROUP}", NARROW)
    yield picture(browser, page, "light", f"candidate/{GROUP}/cublas_softmax", NARROW)


def side_by_side(images: list[Image.Image]) -> Image.Image:
    """One picture of several."""
    whole = Image.new("RGB", (sum(one.width + GAP for one in images) - GAP, HEIGHT), "white")
    left = 0
    for one in images:
        whole.paste(one, (left, 0))
        left += one.width + GAP
    return whole


def for_readme(browser: Any, page: str) -> Image.Image:
    """A problem with its figure and its candidates, and nothing of the page around it."""
    context = browser.new_context(viewport={"width": SHOWN, "height": HEIGHT}, device_scale_factor=ZOOM)
    opened = context.new_page()
    opened.goto(page)
    image = Image.open(io.BytesIO(opened.locator(f'[id="problem/{GROUP}"]').screenshot()))
    context.close()
    return image.convert("RGB")


if __name__ == "__main__":
    main()
