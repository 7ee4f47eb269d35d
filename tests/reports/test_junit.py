"""The XML is well-formed whatever a candidate wrote, and counts each verdict once."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.reports import junit
from tests.reports.conftest import made_up


def read(records) -> ElementTree.Element:
    return ElementTree.fromstring(junit.xml(records, {}).encode())


def test_each_candidate_is_a_case_of_its_problem_at_its_size(records):
    root = read(records)
    assert len(list(root.iter("testcase"))) == len(records) == int(root.get("tests"))
    groups = {(record.problem, record.variant, record.precision) for record in records}
    assert len(list(root)) == len(groups)
    passed = next(record for record in records if record.status == "passed")
    case = next(case for case in root.iter("testcase") if case.get("name") == passed.candidate)
    values = {one.get("name"): float(one.get("value")) for one in case.iter("property")}
    assert values["speedup"] == pytest.approx(passed.speedup, rel=1e-5)
    assert case.get("classname") == passed.problem


@pytest.mark.parametrize(
    ("status", "reason", "element", "count"),
    [
        ("incorrect", "a_word", "failure", "failures"),
        ("rejected", "a_word", "failure", "failures"),
        ("unsupported", "needs_cuda", "skipped", "skipped"),
        ("unsupported", "missing_module:flash", "failure", "failures"),
        ("unsupported", "not_implemented", "failure", "failures"),
        ("invalid_reference", "a_word", "error", "errors"),
        ("harness_error", "a_word", "error", "errors"),
    ],
)
def test_what_did_not_pass_says_why_and_whose_doing_it_is(status, reason, element, count):
    root = read([made_up("one", status, reason=reason, message="what happened"), made_up("two")])
    found = next(root.iter(element))
    assert (found.get("type"), found.get("message")) == (f"{status} {reason}", "what happened")
    assert [root.get(name) for name in ("tests", count)] == ["2", "1"]
    others = {"failures", "errors", "skipped"} - {count}
    assert {root.get(name) for name in others} == {"0"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(*[st.one_of(st.text(), st.text("[|]AT"))] * 3)
def test_any_text_is_only_text(name, message, warning):
    root = read([made_up(name, "incorrect", message=message), made_up(name, warnings=[warning])])
    assert len(list(root.iter("testcase"))) == 2
    assert {one.tag for one in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "failure", "properties", "property", "system-out")
    }
    # Jenkins and GitLab publish the file that such a mark names.
    assert not any("[[" in text for one in root.iter() for text in (one.text or "", *one.attrib.values()))
