"""The HTML report as its readers use it: in Chromium, by mouse, keyboard and link, and by axe's rules for everybody."""

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.reports import compare
from harness.reports.html import comparison, page
from tests.reports.test_html import HOSTILE, hostile, looked_into, timing

# Fixtures of that file.
__all__ = ["hostile", "looked_into"]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CALLED = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium():
    for path in filter(None, map(shutil.which, CALLED)):
        # Ubuntu's package of that name may be a script that only says where to find the browser.
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            return path
    return pytest.skip("no Chromium on PATH (apt-get install chromium), so no browser opens the report")


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a page's text; at its end, the test saw no error on the console, no dialog, and no request to a network."""
    faults: list[str] = []
    with contextlib.ExitStack() as contexts:

        def opened(text, fragment="", **options):
            (tmp_path / "page.html").write_text(text)
            address = (tmp_path / "page.html").as_uri()
            context = contexts.enter_context(browser.new_context(**options))
            shown = context.new_page()
            shown.on("console", lambda message: faults.append(f"console: {message.text}"))
            shown.on("pageerror", lambda error: faults.append(f"error: {error}"))
            shown.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
            shown.on("request", lambda asked: None if known(asked.url, address) else faults.append(asked.url))
            shown.goto(address + fragment)
            return shown

        yield opened
    assert faults == []


def known(url, address):
    return url.partition("#")[0] == address or url.startswith("data:,")


@pytest.fixture
def report(records, manifest, make):
    """A run whose page has every panel."""
    light = timing(floor_us=1500.0, floor_bound="compute:float16", card={"ranges": {"clock_mhz": [1800, 1900]}})
    near = {"error_ratio": 1.1, "sol_fraction": 0.8, "timing": light}
    evidence = {"path": "output", "wrong_within": [[32, 63], [0, 95]], "shape": [64, 96], "share_wrong": 0.5}
    more = [make("near_light", interval=(5.0, 4.9, 5.1), **near), make("half", "incorrect", evidence=evidence)]
    return page.report([*records, *more], manifest)


def names(shown):
    return shown.locator("#ranking tbody tr:visible th").all_inner_texts()


def test_columns_sort_both_ways_and_back(visit, report):
    shown = visit(report)
    before = names(shown)
    title = shown.get_by_role("columnheader", name="speedup")
    values = "rows => rows.map(row => Number(row.cells[4].dataset.value) || null)"
    for way, wanted in (("descending", lambda found: sorted(found, reverse=True)), ("ascending", sorted)):
        title.get_by_role("button").click()
        assert title.get_attribute("aria-sort") == way
        found = shown.locator("#ranking tbody tr").evaluate_all(values)
        # Those without a speedup come last, both ways.
        passed = [value for value in found if value is not None]
        assert found == [*wanted(passed), *[None] * (len(found) - len(passed))]
    title.get_by_role("button").click()
    assert title.get_attribute("aria-sort") == "none"
    assert names(shown) == before


def test_names_sort_by_the_keyboard(visit, report):
    shown = visit(report)
    shown.get_by_role("button", name="candidate", exact=True).focus()
    shown.keyboard.press("Enter")
    assert names(shown) == sorted(names(shown), key=str.lower)


def test_search_and_filters_narrow_the_table(visit, report):
    shown = visit(report)
    count = len(names(shown))
    assert shown.locator("#count").inner_text() == f"{count} of {count}"
    # A word of the message, which the table does not show.
    shown.get_by_label("Search").fill("dispatch")
    assert names(shown) == ["three_tiled_kernels"]
    assert shown.locator("#count").inner_text() == f"1 of {count}"
    shown.get_by_label("Search").fill("no such thing")
    assert shown.get_by_text("No candidate fits.").is_visible()
    shown.get_by_label("Search").fill("")
    shown.get_by_label("Status").select_option("incorrect")
    assert names(shown) == ["half", "wrong_grid"]
    shown.get_by_label("Status").select_option("")
    shown.locator("#problem").select_option(label="attention/sdpa · small · float16")
    assert set(names(shown)) == {"composed", "segfault", "float32_only"}


def test_a_row_leads_to_its_candidate_and_back(visit, report):
    shown = visit(report)
    shown.get_by_role("link", name="flash_wide_head").click()
    details = shown.locator("details[open]")
    assert details.count() == 1
    assert details.locator(".name").inner_text() == "flash_wide_head"
    assert shown.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert "candidate/attention/sdpa/default/float16/flash_wide_head" in shown.url
    shown.go_back()
    assert "#candidate" not in shown.url


def test_a_point_of_a_figure_leads_to_its_candidate(visit, report):
    shown = visit(report)
    shown.locator('.problem [data-go$="/near_light"]').first.click()
    assert shown.locator("details[open] .name").inner_text() == "near_light"


@pytest.mark.parametrize(
    ("fragment", "title"),
    [
        ("#problem/attention/sdpa/small/float16", "attention/sdpa small"),
        ("#problem/fused/gemm_batchnorm_scale_softmax", "fused/gemm_batchnorm_scale_softmax"),
    ],
)
def test_a_link_leads_to_a_problem(visit, report, fragment, title):
    shown = visit(report, fragment)
    focused = shown.locator("section.problem:focus h3")
    assert focused.inner_text().startswith(title)
    assert 0 <= focused.bounding_box()["y"] < shown.viewport_size["height"]


def test_a_link_leads_to_a_candidate(visit, report):
    shown = visit(report, "#candidate/attention/sdpa/default/float16/half")
    assert shown.get_by_role("img", name="Wrong elements lie within").is_visible()
    assert shown.locator("summary:focus").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_system_s_until_it_is_chosen(visit, report, scheme):
    shown = visit(report, color_scheme=scheme)
    background = "getComputedStyle(document.body).backgroundColor"
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
    assert shown.evaluate(background) == paper[scheme]
    other = {"light": "dark", "dark": "light"}[scheme]
    shown.get_by_label("Theme").select_option(other)
    assert shown.evaluate(background) == paper[other]
    shown.reload()
    assert shown.evaluate(background) == paper[other]
    shown.get_by_label("Theme").select_option("")
    assert shown.evaluate(background) == paper[scheme]


def test_all_candidates_open_and_close(visit, report):
    shown = visit(report)
    shown.get_by_role("button", name="Open all candidates").click()
    assert shown.locator("details:not([open])").count() == 0
    shown.get_by_role("button", name="Close all candidates").click()
    assert shown.locator("details[open]").count() == 0


def test_the_keyboard_opens_a_candidate(visit, report):
    shown = visit(report)
    shown.locator("summary").first.focus()
    shown.keyboard.press("Enter")
    assert shown.locator("details[open]").count() == 1


@pytest.mark.parametrize("width", [400, 1400])
def test_the_verdicts_are_in_sight_without_scrolling_sideways(visit, report, width):
    shown = visit(report, viewport={"width": width, "height": 900})
    row = shown.locator("#ranking tbody tr").first
    for cell in (row.locator(".status"), row.locator(".number.faster"), shown.locator("nav a").last):
        box = cell.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
    parts = "[...document.querySelectorAll('#leaderboard .scroll, figure .scroll, nav')]"
    assert max(shown.evaluate(f"{parts}.map(part => part.scrollWidth - part.clientWidth)")) <= 0


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(visit, report, width):
    shown = visit(report, viewport={"width": width, "height": 900})
    shown.get_by_role("button", name="Open all candidates").click()
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_is_whole_without_scripts(visit, report):
    shown = visit(report, java_script_enabled=False)
    assert len(names(shown)) == 16
    assert not shown.get_by_label("Search").is_visible()
    assert shown.locator(".problem svg").first.is_visible()


def test_it_can_be_printed(visit, report):
    shown = visit(report, color_scheme="dark")
    shown.emulate_media(media="print")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not shown.get_by_label("Search").is_visible()
    assert shown.pdf().startswith(b"%PDF")


def test_what_candidates_wrote_does_nothing(visit, hostile, tmp_path):
    shown = visit(page.report(hostile, {"command": HOSTILE[0]}, tmp_path))
    shown.get_by_role("button", name="Open all candidates").click()
    assert shown.locator("img, script ~ script, svg[onload]").count() == 0
    assert shown.locator("details").count() == len(hostile)
    for link in shown.locator("#ranking tbody th a").all():
        link.click()
        # The page opens it a moment later.
        shown.locator("summary:focus").wait_for(state="attached")
    shown.get_by_label("Search").fill(HOSTILE[0].lower())
    assert len(names(shown)) >= 2


def test_the_policy_would_stop_what_gets_in(browser, report, tmp_path):
    """Were the escaping broken, neither a script nor a picture would be loaded."""
    broken = '<img src="https://example.com/x.png" onerror="hacked = 1"><script>hacked = 1</script><style>p{}</style>'
    (tmp_path / "page.html").write_text(report.replace("<h1>", f"{broken}<h1>"))
    stopped, said = [], []
    context = browser.new_context()
    shown = context.new_page()
    shown.on("requestfailed", lambda request: stopped.append((request.url, request.failure)))
    shown.on("console", lambda message: said.append(message.text))
    shown.goto((tmp_path / "page.html").as_uri())
    assert shown.evaluate("typeof hacked") == "undefined"
    assert stopped == [("https://example.com/x.png", "csp")]
    assert sum("Content Security Policy" in words for words in said) >= 3
    context.close()


def test_two_runs_are_compared(visit, records, manifest, make):
    after = [make("composed", interval=(3.5, 3.4, 3.6)), make("flash_wide_head", interval=(4.1, 4.0, 4.2)), make("new")]
    heads = [("A", Path("before"), manifest), ("B", Path("after"), {})]
    shown = visit(comparison.report(compare.rows(records, after), [], heads))
    assert shown.get_by_role("img", name="B's speedup over A's of 2 candidates").is_visible()
    table = shown.locator("table").first
    table.get_by_role("button", name="B over A").click()
    assert table.locator("tbody th").first.inner_text() == "composed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_everybody_can_use_it(visit, report, scheme, width):
    shown = visit(report, color_scheme=scheme, viewport={"width": width, "height": 900})
    shown.get_by_role("button", name="Open all candidates").click()
    assert grave(shown) == []


def test_everybody_can_read_what_tools_found(visit, make, looked_into):
    record = make("mine")
    shown = visit(page.report([record], {}, looked_into([record], "rows(float *)")))
    shown.get_by_role("button", name="Open all candidates").click()
    assert shown.get_by_text("registers a thread").is_visible()
    assert grave(shown) == []


def test_everybody_can_use_a_comparison(visit, records, manifest, make):
    heads = [("A", Path("before"), manifest), ("B", Path("after"), {})]
    rows = compare.rows(records, [make("composed", interval=(3.5, 3.4, 3.6)), make("new")])
    assert grave(visit(comparison.report(rows, ["a note"], heads))) == []


def grave(shown):
    """What axe calls serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(shown).response["violations"]
    return [
        (rule["id"], node["html"][:200], node["failureSummary"])
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
