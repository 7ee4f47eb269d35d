"""Levels, problems and samples from the names of files and from the values of rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import PackConfig
from harness.packs import identity
from harness.packs.sample import Identity


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["task_19", "level_1"], (1, "19")),
        (["level_1_problem_19_sample_0_kernel", "runs"], (1, "19")),
        (["19_ReLU", "level1", "pack"], (1, "19_ReLU")),
        (["fused", "19_ReLU", "level1", "pack"], (1, "19_ReLU")),
        (["problem-007", "Level-2"], (2, "7")),
        (["chat", "2024_runs"], (None, "")),
        (["task_1234567", "level_99999"], (None, "")),
    ],
)
def test_names_say_level_and_problem(parts, expected):
    assert identity.of_names(parts, PackConfig()) == Identity(*expected)


def test_what_a_name_does_not_say_is_as_the_user_wishes():
    assert identity.of_names(["chat", "x"], PackConfig(level=3, problem="7")) == Identity(3, "7")
    assert identity.of_names(["task_2", "level_1"], PackConfig(level=3, problem="7")) == Identity(1, "2")


@pytest.mark.parametrize("level", [1, "1", "level_1", "level1", "Level 1".replace(" ", "-")])
@pytest.mark.parametrize("problem", [19, "19", 19.0, "task_19", "problem19", "019"])
def test_values_say_level_and_problem(level, problem):
    assert identity.of_values(level, problem, PackConfig()) == Identity(1, "19")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_no_value_is_more_than_an_identity(value):
    found = identity.of_values(value, value, PackConfig())
    assert found.level is None or 0 <= found.level < 10**6
    assert len(found.problem) <= 200


def test_no_huge_number_is_written():
    assert identity.of_values(10**5000, 10**5000, PackConfig()) == Identity(None, "")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["level_1_problem_19_sample_3_kernel", "runs"], ("", 3)),
        (["level_1_problem_19_sample_3_kernel", "model_a", "runs"], ("model_a", 3)),
        (["task_19", "level_1", "runs"], ("task_19", None)),
        (["fused", "19_ReLU", "level1", "b", "a", "runs"], ("a-b-fused", None)),
    ],
)
def test_folders_that_say_more_are_in_a_samples_name(parts, expected):
    assert identity.named(parts) == expected
