"""The names of logs: one log never overwrites another."""

import msgspec
import pytest

from harness import session
from harness.supervise import recording
from tests.conftest import corpus_config


@pytest.fixture
def named():
    """A job with these names."""
    (job,) = session.plan(corpus_config("honest")).jobs

    def with_names(problem, variant, precision, candidate):
        return msgspec.structs.replace(
            job,
            problem=msgspec.structs.replace(job.problem, id=problem),
            variant=variant,
            precision=precision,
            candidate=msgspec.structs.replace(job.candidate, name=candidate),
        )

    return with_names


def test_usual_names_are_only_joined(named):
    job = named("set/gelu", "small", "fp32", "fast")
    assert recording.group_name(job) == "set.gelu.small.fp32"
    assert recording.logs(job) == [
        "set.gelu.small.fp32.fast.log",
        "set.gelu.small.fp32.fast.build.txt",
        "set.gelu._.fast.build.txt",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a.b/c", "v", "fp32", "k"), ("a/b.c", "v", "fp32", "k")),
        (("a/b.v", "w", "fp32", "k"), ("a/b", "v.w", "fp32", "k")),
        (("a/b", "v", "fp32.x", "k"), ("a/b", "v", "fp32", "x.k")),
        (("a/b.v", "fp32", "x", "k"), ("a/b", "v", "fp32", "x.k")),
    ],
)
def test_a_dot_in_a_name_makes_no_two_jobs_share_a_log(named, one, other):
    logs = [recording.logs(named(*names)) for names in (one, other)]
    assert not {*logs[0]} & {*logs[1]}


def test_a_dot_in_a_name_makes_no_two_groups_share_a_log(named):
    groups = [("a.b/c", "v", "x"), ("a/b.c", "v", "x"), ("a/b", "c.v", "x"), ("a/b", "c", "v.x")]
    assert len({recording.group_name(named(*group, "k")) for group in groups}) == len(groups)
