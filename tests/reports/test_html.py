"""The HTML report as text: what it contains, how large it is, and that data never become markup."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.catalog import sources
from harness.instruments import nsight
from harness.instruments.insight import Insight
from harness.instruments.nsight import Launch
from harness.instruments.sanitizer import Finding, Place
from harness.records import KernelUse, Provenance, Timing, presentable
from harness.reports import compare, text
from harness.reports.html import comparison, files, page, panels, render

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' autofocus onfocus=alert(1) '",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; $\\frac{1}{2}$ %s",
    "</style></title></textarea></pre><script>alert(1)</script>",
    "javascript:alert(1)#/../../",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe\N{ZERO WIDTH SPACE}\N{LEFT-TO-RIGHT ISOLATE}\x1b[2J",
    "שלום عربى 汉字 🙂",
    "<!--",
    "]]>",
]
ODD = (0.0, -1.0, float("inf"), float("nan"), None)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


class Page(HTMLParser):
    """The elements of a page, its ids, what it refers to, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.attributes |= given.keys()
        self.ids += [given["id"]] if "id" in given else []
        self.links |= {given[name] for name in ("href", "src", "xlink:href") if given.get(name)}

    def handle_data(self, data):
        self.text += data


def timing(**fields):
    lists = ("candidate_us", "baseline_us", "candidate_claimed_us", "baseline_claimed_us")
    given = {"clock": "device", "calls_per_burst": 3, "baseline_calls_per_burst": 1, "fixed_us": 1.0}
    return Timing(**given, **{name: [1.0, 2.0] for name in lists}, **fields)


@pytest.fixture
def hostile(make):
    """Every text of every record is hostile, and stays within what the journal lets through."""
    found = []
    for number, words in enumerate(HOSTILE):
        kernels = [KernelUse(name=words, kind=words, op=words, device_us=1.0)]
        provenance = Provenance(own_share=0.5, device_us=1.0, shares={words: 1.0}, kernels=kernels)
        told = {"caption": words, "warnings": [words], "notes": [words], "log": f"../{words}"}
        place = {"problem": f"set{words}/name{words}", "variant": words, "precision": words, "baseline": words}
        found.append(make(words, **told, **place, provenance=provenance, error_ratio=1.0, compile_s=1.0))
        element = {"index": [0, 0], "expected": words, "got": words}
        errors = [{"text": words, "line": 1, "source_line": words, "hint": words, "generated_file": words}]
        evidence = {"path": words, "wrong_within": [[0, 1], [0, 1]], "shape": [2, 4], "first": element}
        evidence |= {"worst": element, "errors": errors, "line": 1, "share_wrong": 0.5}
        failed = {"message": words * 20, "reason": words, "evidence": evidence, **told, **place}
        found.append(make(f"failed{number}{words}", "compile_error", **failed))
    return [presentable(record) for record in found]


def checked(shown):
    """The page, where nothing but the template's own elements, attributes and links are in it."""
    read = Page(shown)
    assert read.tags.count("script") == read.tags.count("style") == 1
    assert not {"img", "iframe", "object", "embed", "base", "video", "audio"} & set(read.tags)
    assert not [name for name in read.attributes if name.startswith("on") or name == "style"]
    assert not [link for link in read.links if not link.startswith("#") and link != "data:,"]
    assert len(read.ids) == len(set(read.ids))
    targets = {link.removeprefix("#") for link in read.links if link.startswith("#")}
    assert targets <= set(read.ids)
    assert not HIDDEN.search(shown)
    assert len(shown.encode()) < page.MOST_BYTES
    return read


def test_everything_of_a_run_is_in_it(records, manifest):
    read = checked(page.report(records, manifest))
    for record in records:
        assert record.candidate in read.text
        assert record.message in read.text
    for fact in ("NVIDIA H200, cuda", "torch 2.11.0+cu130", "uid, namespaces, landlock", "0123abc"):
        assert fact in read.text
    assert "candidate/attention/sdpa/default/float16/flash_wide_head" in read.ids
    assert "problem/fused/gemm_batchnorm_scale_softmax/default/float32" in read.ids


def test_nothing_to_report_is_said():
    assert "No records yet." in checked(page.report([], {})).text


@pytest.fixture
def looked_into(tmp_path):
    """Makes a run directory in which tools have looked into the candidates of these records; every text is hostile."""

    def made(records, words):
        (tmp_path / "profile").mkdir()
        figures = {figure.name: 12.5 for figure in nsight.FIGURES}
        launches = [Launch(kernel=words, grid=words, block=words, figures=figures)]
        place = Place(kernel=words, file=words, line=3, own_line=4, source_line=words)
        findings = [Finding(text=words, places=[place], more=words, times=3)]
        for number, record in enumerate(records):
            common = {"candidate": record.title, "said": words * 3}
            insights = [
                Insight(instrument="ncu", launches=launches, **common),
                Insight(instrument="memcheck", findings=findings, failed=words, **common),
                Insight(instrument="racecheck", fault=words, **common),
                Insight(instrument="racecheck", **common),
            ]
            for serial, one in enumerate(insights):
                (tmp_path / f"profile/{number}.{serial}.json").write_bytes(msgspec.json.encode(one))
        return tmp_path

    return made


def test_what_tools_found_stands_with_the_candidate(make, looked_into):
    record = make("mine")
    run_dir = looked_into([record], "rows(float *)")
    (run_dir / "profile/other.json").write_text("[" * 5000)
    (run_dir / "profile/secret.json").symlink_to("/etc/passwd")
    shown = checked(page.report([record, make("other")], {}, run_dir)).text
    for words in ("rows(float *)", "registers a thread", "12.5%", "line 4 of the candidate", "3 times", "memcheck"):
        assert words in shown
    assert shown.count("One call under") == 4


def test_data_are_never_markup(hostile, looked_into, tmp_path):
    looked_into(hostile, HOSTILE[0])
    manifest = {"command": HOSTILE[0], "config": {"solutions": HOSTILE}, "environment": {"device": HOSTILE[1]}}
    read = checked(page.report(hostile, manifest, tmp_path))
    for words in HOSTILE:
        if not HIDDEN.search(words):
            assert words in read.text
    names = [(letter, tmp_path / "<b>run</b>", manifest) for letter in "AB"]
    checked(comparison.report(compare.rows(hostile, hostile[:5]), HOSTILE[:1], names))


def test_templates_have_no_way_around_the_escaping():
    for path in render.HERE.glob("*.html"):
        assert not re.search(r"\|\s*safe|autoescape|Markup", path.read_text()), path


def test_a_name_that_is_written_from_the_right_stands_in_an_element_of_its_own(make):
    shown = page.report([make("עברית")], {})
    assert len(re.findall("<bdi[^>]*>עברית</bdi>", shown)) == 2


@pytest.fixture
def solved(tmp_path):
    """A folder of solutions for attention/sdpa, and a manifest that names it."""
    folder = tmp_path / "solutions/attention/sdpa"
    folder.mkdir(parents=True)
    return folder, {"config": {"solutions": [str(tmp_path / "solutions")]}}


def listing(folder):
    """What run.json says of the candidates of a folder, as their files are now."""
    found = {path.stem: path for path in folder.rglob("*.py")}
    return {"jobs": {name: ["a/b", "v", "p", name, sources.digested(path)[1]] for name, path in found.items()}}


@pytest.mark.parametrize("known", [True, False])
def test_a_source_that_is_not_what_was_evaluated_is_not_shown(make, solved, known):
    """A foreign run.json names folders and files, too."""
    folder, manifest = solved
    (folder / "one.py").write_text("the source\n")
    whole = manifest | listing(folder)
    assert "the source" in page.report([make("one")], whole)
    if known:
        (folder / "one.py").write_text("the other source\n")
    else:
        del whole["jobs"]
    shown = page.report([make("one")], whole)
    assert "source\n" not in shown
    assert "it was changed since" in shown


def test_the_offending_line_is_marked(make, solved):
    folder, manifest = solved
    (folder / "broken.py").write_text("one\ntwo <b>\nthree\n")
    evidence = {"errors": [{"text": "expected ';'", "line": 2, "hint": "a semicolon"}], "line": 2}
    shown = page.report(
        [make("broken", "compile_error", reason="compiler", evidence=evidence)], manifest | listing(folder)
    )
    checked(shown)
    assert re.search(r"<mark><span[^>]*>Offending line 2: </span>two &lt;b&gt;\n</mark>three\n", shown)
    assert "a semicolon" in shown


def test_a_line_of_the_problem_marks_nothing_in_the_candidate(make, solved):
    folder, manifest = solved
    (folder / "good.py").write_text("one\ntwo\n")
    shown = page.report(
        [make("good", "invalid_reference", reason="contract", evidence={"line": 2})], manifest | listing(folder)
    )
    assert "two" in shown
    assert "<mark>" not in shown


def test_a_source_of_a_megabyte_is_cut_around_its_line(make, solved):
    folder, manifest = solved
    lines = [f"{number} = '</script>\N{RIGHT-TO-LEFT OVERRIDE}<b>'" for number in range(1, 40_001)]
    (folder / "long.py").write_text("\n".join(lines))
    assert (folder / "long.py").stat().st_size > 1_000_000
    shown = page.report(
        [make("long", "runtime_error", reason="exception", evidence={"line": 20_000})], manifest | listing(folder)
    )
    read = checked(shown)
    assert "20000 = " in read.text
    assert re.search(r"Lines \d+ to \d+ of 40000; the rest is left out", read.text)


def test_one_line_of_a_megabyte_is_cut(make, solved):
    folder, manifest = solved
    (folder / "wide.py").write_text("x" * 1_200_000)
    checked(page.report([make("wide")], manifest | listing(folder)))


def test_what_is_not_there_is_said(make, tmp_path):
    read = Page(page.report([make("gone", log="logs/gone.log"), make("baseline:compile")], {}, tmp_path))
    assert "Its source is not shown: a record does not keep it" in read.text
    assert "Its log is not shown: it is empty, or not in the run directory." in read.text
    assert "so it has no source" in read.text
    assert "it is not known which kernels ran" in read.text


def test_a_log_is_of_the_run_and_a_file(tmp_path):
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (run / "logs/a.log").write_text("first\n" + "x" * files.LONGEST_LOG + "last\n")
    (run / "logs/link").symlink_to(tmp_path / "secret")
    (run / "logs/folder").mkdir()
    assert files.log(run, "logs/a.log").endswith("last")
    assert "first" not in files.log(run, "logs/a.log")
    for name in ("../secret", str(tmp_path / "secret"), "logs/link", "logs/folder", "", "logs/\0", "gone"):
        assert files.log(run, name) == ""


def test_a_log_that_is_gone_is_the_end_that_the_record_has(make, tmp_path):
    record = make("broken", "compile_error", evidence={"output_tail": "ninja: build stopped"}, log="logs/gone.log")
    read = Page(page.report([record], {}, tmp_path))
    assert "ninja: build stopped" in read.text
    assert "as the record has it" in read.text


@pytest.mark.parametrize(("sizes", "most", "share"), [([], 10, 10), ([3, 3], 10, 10), ([1, 9, 9], 11, 5), ([8], 5, 5)])
def test_small_texts_leave_room_for_large_ones(sizes, most, share):
    assert files.fair_share(sizes, most) == share
    assert sum(min(size, share) for size in sizes) <= most


def test_where_the_output_is_wrong_is_drawn_if_the_shape_is_known(make):
    evidence = {"path": "output", "wrong_within": [[32, 63], [0, 95]], "shape": [64, 96], "share_wrong": 0.5}
    evidence["worst"] = {"index": [46, 11], "expected": 0.5, "got": 2.0}
    shown = page.report([make("half", "incorrect", evidence=evidence)], {})
    assert "Wrong elements lie within dimension 0: 32 to 63; dimension 1: 0 to 95" in shown
    del evidence["shape"]
    assert "so there is no map" in page.report([make("half", "incorrect", evidence=evidence)], {})


@pytest.mark.parametrize(
    "evidence",
    [
        {"wrong_within": "x"},
        {"wrong_within": [[1]]},
        {"wrong_within": [[3, 9]], "shape": [4]},
        {"wrong_within": [[0, 1]], "shape": [0], "first": {"index": 3}, "worst": [1]},
        {"errors": "x", "line": "2"},
        {"errors": [{"line": "x"}], "line": -1},
    ],
)
def test_evidence_of_any_shape_is_shown_as_far_as_it_goes(make, evidence):
    record = make("odd", "incorrect", evidence=evidence)
    checked(page.report([record], {}))
    assert panels.offending(record) == []


PARTS = ("wrong_within", "shape", "first", "worst", "errors", "line")
leaves = st.none() | st.booleans() | st.floats() | st.integers(-(2**63), 2**63) | st.text(max_size=4)
values = st.recursive(leaves, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(), one, max_size=3))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(evidence=st.dictionaries(st.sampled_from(PARTS), values))
def test_no_evidence_ends_a_report(make, evidence):
    record = presentable(make("odd", "incorrect", evidence={"path": "output", "share_wrong": 0.5, **evidence}))
    panels.place(record)
    panels.diagnostics(record)
    panels.offending(record)


def test_figures_leave_out_what_has_no_place_on_their_axes(make):
    odd = [make(f"c{number}", error_ratio=value, timing=timing(floor_us=value)) for number, value in enumerate(ODD)]
    assert "No record has a least time" in checked(page.report(odd, {})).text


@pytest.mark.parametrize("ends", [(0.5, 1.7e308), (5e-324, 2.0), (5e-324, 1.7e308)])
def test_an_interval_of_any_width_has_its_figure(make, ends):
    low, high = ends
    shown = page.report([make("wide", speedup_lo=low, speedup_hi=high), make("narrow")], {})
    assert "wide" in checked(shown).text


@pytest.mark.parametrize("bound", ["memory", "compute:float16", "none", "of another version"])
def test_every_bound_has_its_place_in_the_roofline(make, bound):
    shown = page.report([make("one", timing=timing(floor_us=10.0, floor_bound=bound))], {})
    assert "Measured against least time of 1 candidates" in shown
    assert "bound by" in shown


def test_two_devices_and_two_baselines_have_places_of_their_own(make):
    same = [make("one"), make("one", device="another"), make("one", baseline="compile")]
    assert len([name for name in checked(page.report(same, {})).ids if name.startswith("candidate/")]) == 3


def test_five_hundred_candidates_are_less_than_three_megabytes(make, tmp_path):
    kernels = [KernelUse(name=f"void kernel_{n}<{'int, ' * 30}>(float*)", kind="own", device_us=9.0) for n in range(10)]
    profile = Provenance(own_share=0.9, device_us=100.0, kernels=kernels)
    card = {"ranges": {"clock_mhz": [1800, 1980], "power_w": [400, 640]}, "throttle": {"power_cap": 1}}
    folder = tmp_path / "solutions"
    records = []
    for number in range(500):
        problem = f"set/problem_{number % 60}"
        (folder / problem).mkdir(parents=True, exist_ok=True)
        (folder / problem / f"c{number}.py").write_text("a line of an ordinary source, as long as usual ones\n" * 400)
        taken = timing(floor_us=500.0, floor_bound="memory", card=card)
        told = {"caption": "words " * 15, "warnings": ["warning " * 20], "notes": ["a note on the source"] * 6}
        figures = {"error_ratio": 1.0 + number / 100, "sol_fraction": 0.5, "compile_s": 10.0, "wall_s": 5.0}
        interval = (1 + number / 200, 0.99 + number / 200, 1.01 + number / 200)
        one = make(
            f"c{number}", problem=problem, interval=interval, timing=taken, provenance=profile, **told, **figures
        )
        records.append(one)
    shown = page.report(records, {"config": {"solutions": [str(folder)]}} | listing(folder), tmp_path)
    read = checked(shown)
    assert read.text.count("a line of an ordinary source") > 500


def test_sources_are_left_out_where_there_is_no_room(make, solved, monkeypatch):
    folder, manifest = solved
    (folder / "one.py").write_text("the source\n" * 100)
    assert "the source\n" in page.report([make("one")], manifest | listing(folder))
    monkeypatch.setattr(page, "MOST_BYTES", 1000)
    short = page.report([make("one")], manifest | listing(folder))
    assert "the source\n" not in short
    assert "would make this file too large" in short


def test_sources_that_grow_when_they_are_escaped_are_left_out(make, solved):
    folder, manifest = solved
    for number in range(10):
        (folder / f"c{number}.py").write_text("'\n" * 50_000)
    read = checked(page.report([make(f"c{number}") for number in range(10)], manifest))
    assert "would make this file too large" in read.text


def test_the_same_records_make_the_same_page(records, manifest):
    assert page.report(records, manifest) == page.report(records[::-1], manifest)


def test_a_run_starts_without_what_only_the_report_needs():
    script = "import sys; from harness import cli, session; assert not {'matplotlib', 'jinja2'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_a_comparison_shows_every_row(records, manifest, make):
    after = [make("composed", interval=(3.5, 3.4, 3.6)), make("new")]
    rows = compare.rows(records, after)
    heads = [("A", Path("before"), manifest), ("B", Path("after"), {})]
    read = checked(comparison.report(rows, ["a note"], heads))
    for row in rows:
        assert row.either.candidate in read.text
    (ratio,) = [row.ratio for row in rows if row.ratio]
    assert text.ratio(ratio.value, ratio.lo, ratio.hi) in read.text
    assert "Note: a note." in read.text
    assert compare.summary(rows) in read.text


@pytest.mark.parametrize("command", [["report"], ["compare", str(ROOT / "results/seeds-h200")]])
def test_the_commands_print_a_page_and_nothing_else(command):
    command = [sys.executable, "run_eval.py", *command, str(ROOT / "results/seeds-h200"), "--format", "html"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert said.stdout.startswith("<!doctype html>")
    assert "linear_then_fused_rows" in checked(said.stdout).text
