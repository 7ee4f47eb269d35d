"""Made-up packs from end to end: whatever their files are called and however they are written, nothing is lost, nothing
is taken twice, and nothing lies outside the folder."""

import re
from collections import Counter
from pathlib import PurePosixPath

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.catalog import solutions
from harness.config import PackConfig
from harness.packs import importing
from harness.packs.names import LONGEST, of_sample
from harness.records import SAMPLE
from tests.packs.conftest import MODEL, NEW

# What a file system takes, hidden and separated names apart; short, so that no path gets too long for it.
NAME = st.text(
    alphabet=st.characters(exclude_characters="/\0", exclude_categories=["Cs"]) | st.sampled_from("-_. *[]~$é\u202e\n"),
    min_size=1,
    max_size=12,
).filter(lambda name: not name.startswith(".") and name.strip() and len(name.encode()) < 60)
PROSE = st.text(alphabet=st.characters(exclude_characters="`~\r", exclude_categories=["Cs"]), max_size=40)
FENCES = st.sampled_from(["```", "~~~", "`````", "  ```", "\t~~~~"])
TAGS = st.sampled_from(["", "python", "py", "Python title=x"])
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
MANY = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
# Each attempt of a transcript is another one, or none that can stand alone.
ATTEMPTS = st.lists(
    st.tuples(PROSE, st.integers(-1, 9), FENCES, TAGS), min_size=1, max_size=6, unique_by=lambda one: one[1]
)


def block(code: str, fence: str, tag: str) -> str:
    indent = fence[: len(fence) - len(fence.lstrip())]
    lines = "".join(f"{indent}{line}\n" if line else "\n" for line in code.splitlines())
    return f"{fence}{tag}\n{lines}{fence}\n"


def attempt(number: int) -> str:
    return NEW.replace("min=0", f"min={number}") if number >= 0 else NEW.partition("\n\n\n")[2]


@st.composite
def transcripts(draw) -> tuple[bytes, set[str]]:
    """A file, and the candidates in it."""
    parts = draw(ATTEMPTS)
    text = f"Do:\n{block(MODEL, '```', 'python')}"
    text += "".join(f"x {prose}\n{block(attempt(number), fence, tag)}" for prose, number, fence, tag in parts)
    whole = text.replace("\n", draw(ENDS)).encode(draw(ENCODINGS))
    return whole, {attempt(number) for _, number, _, _ in parts if number >= 0}


@given(st.dictionaries(st.tuples(NAME, NAME), transcripts(), min_size=1, max_size=4))
@MANY
def test_every_attempt_of_every_transcript_is_taken_once(tmp_path_factory, texts, made):
    place = tmp_path_factory.mktemp("made")
    for (folder, name), (data, _) in made.items():
        (place / "pack" / folder).mkdir(parents=True, exist_ok=True)
        (place / "pack" / folder / f"{name}.md").write_bytes(data)
    count = sum(len(codes) for _, codes in made.values())
    if not count:
        return
    manifest = importing.run(place / "pack", place / "out", PackConfig(blocks="all"), None, texts)
    assert len(manifest.candidates) == count
    assert Counter((place / "out" / one.file).read_text() for one in manifest.candidates) == Counter(
        code for _, codes in made.values() for code in codes
    )
    reasons = Counter(one.reason for one in manifest.left)
    assert reasons.pop("it is the problem") == len(made)
    assert set(reasons) <= {"it imports nothing"}
    found = solutions.discover([str(place / "out" / "solutions")])
    assert len(found) == count
    assert {path.name for path in place.iterdir()} == {"pack", "out"}
    assert all(re.fullmatch(r"(problems|solutions)(/[A-Za-z0-9][\w-]*)+\.py", one.file) for one in manifest.candidates)


@given(
    st.dictionaries(NAME, st.sets(st.integers(0, 200), min_size=1, max_size=4), min_size=1, max_size=3),
    ENCODINGS,
    ENDS,
)
@MANY
def test_every_generation_keeps_its_bytes_and_its_number(tmp_path_factory, texts, runs, encoding, end):
    place = tmp_path_factory.mktemp("made")
    checkout = place / "kb" / "level1"
    checkout.mkdir(parents=True)
    (checkout / "19_ReLU.py").write_text(MODEL)
    data = f"# é\n{NEW}".replace("\n", end).encode(encoding)
    for run, numbers in runs.items():
        for number in numbers:
            path = place / "pack" / run / f"level_1_problem_19_sample_{number}_kernel.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    manifest = importing.run(place / "pack", place / "out", PackConfig(), place / "kb", texts)
    assert manifest.left == []
    assert {(place / "out" / one.file).read_bytes() for one in manifest.candidates} == {data}
    found = Counter(SAMPLE.fullmatch(PurePosixPath(one.file).stem)[2] for one in manifest.candidates)
    assert found == Counter(str(number) for numbers in runs.values() for number in numbers)


@given(st.text(max_size=120), st.integers(0, 999_999))
def test_a_samples_name_says_its_number(name, number):
    called = of_sample(name, number)
    found = SAMPLE.fullmatch(called)
    assert int(found[2]) == number
    assert bool(found[1]) == bool(name)
    assert len(called) <= LONGEST


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 99))
def test_two_series_stay_two(one, other, number):
    assert (of_sample(one, number) == of_sample(other, number)) == (one == other)
