"""Names from outside: no two look alike, and each is seen whole."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import wording

LIKE_HONEST = ["honest ", " honest", "\u00a0honest", "honest\u3164", "\u115fhonest", "honest\ufe0f", "ho\u034fnest"]
LIKE_HONEST += ["honest\u2800", "honest\U000e0101", "\uff48onest"]
LIKE_NOTHING = ["\u3164", "\u115f", "\u2800", "\ufe0f", " ", "\u0301"]


@pytest.mark.parametrize("raw", ["honest", "v1.2-fast_3", "two words", "schön", "内核", "Δx", "~", "a+b (1)"])
def test_a_name_that_shows_as_it_is_stays(raw):
    assert wording.name(raw) == raw


@pytest.mark.parametrize(
    "raw", [*LIKE_HONEST, *LIKE_NOTHING, "two  words", "../../x", unicodedata.normalize("NFD", "schön")]
)
def test_a_name_that_looks_like_another_or_nothing_is_told_by_its_digest(raw):
    assert re.fullmatch(r"[^\s](.*)~[0-9a-f]{20}|~[0-9a-f]{20}", wording.name(raw))


@pytest.mark.parametrize(
    "marks", ["\u0323\u0307" * 20, "\u0488" * 100, "\u0489\u20dd" * 50], ids=["composing", "one kind", "enclosing"]
)
def test_a_heap_of_marks_is_not_drawn_over_other_lines(marks):
    for shown in (wording.plain(f"so{marks}me", 500), wording.name(f"so{marks}me")):
        kinds = "".join(unicodedata.category(letter)[0] for letter in shown)
        assert "MMM" not in kinds
        assert wording.REPLACEMENT in shown
    assert wording.name(f"so{marks}me") != wording.name(f"so{marks[1:]}me")


@pytest.mark.parametrize("words", ["Đường phố", "हिन्दी में", "ที่นี่", "עִבְרִית", "a\u0323\u0307b"])
def test_the_marks_of_a_language_stay(words):
    assert wording.plain(words, 500) == words


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), min_size=2, max_size=2, unique=True))
def test_names_that_differ_look_different(raws):
    one, other = (unicodedata.normalize("NFKC", " ".join(wording.name(raw).split())) for raw in raws)
    assert one != other


@given(st.text(max_size=40))
def test_a_repaired_name_needs_no_repair(raw):
    shown = wording.name(raw)
    assert shown.isprintable()
    assert shown == shown.strip()
    assert len(shown.encode()) <= wording.LONGEST_NAME
    assert unicodedata.normalize("NFKC", shown) == shown


@pytest.mark.parametrize(
    ("noun", "said"), [("int", "an int"), ("list", "a list"), ("Opaque", "an Opaque"), ("uint8", "a uint8"), ("", "a ")]
)
def test_a_noun_has_its_article(noun, said):
    assert wording.a(noun) == said
