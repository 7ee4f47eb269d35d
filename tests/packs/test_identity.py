"""Levels, problems and samples from the names of files and from the values of rows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import PackConfig
from harness.packs import identity
from harness.packs.files import Unusable
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


@pytest.mark.parametrize("level", [1, 1.0, "1", "1.0", "level_1", "level1", "Level 1".replace(" ", "-")])
@pytest.mark.parametrize("problem", [19, "19", 19.0, "19.0", "task_19", "problem19", "019"])
def test_values_say_level_and_problem(level, problem):
    assert identity.of_values(level, problem, PackConfig()) == Identity(1, "19")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_no_value_is_more_than_an_identity_or_a_reason(value):
    try:
        found = identity.of_values(value, value, PackConfig())
    except Unusable:
        return
    assert found.level is None or 0 <= found.level < 10**6
    assert len(found.problem) <= 200


@pytest.mark.parametrize("missing", [None, "", "NaN", "None", math.nan])
def test_where_a_row_has_no_value_it_is_as_the_user_wishes(missing):
    assert identity.of_values(missing, missing, PackConfig(level=3, problem="7")) == Identity(3, "7")
    assert identity.of_sample(missing) is None


@pytest.mark.parametrize("value", [10**5000, 1.5, -1, math.inf, True, [1], {}], ids=range(7))
def test_a_value_that_says_nothing_is_a_reason_and_no_guess(value):
    with pytest.raises(Unusable, match="its level is neither a whole number"):
        identity.of_values(value, 19, PackConfig(level=3))
    with pytest.raises(Unusable, match="its problem is neither a name nor a whole number"):
        identity.of_values(1, value, PackConfig(problem="7"))
    with pytest.raises(Unusable, match="its sample is no whole number"):
        identity.of_sample(value)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["level_1_problem_19_sample_3_kernel", "runs"], ("", 3)),
        (["level_1_problem_19_sample_3_kernel", "model_a", "runs"], ("model_a", 3)),
        (["task_19", "level_1", "runs"], ("task_19", None)),
        (["level_1_problem_19_sample_3_kernel", "model_level1_a", "runs"], ("model_a", 3)),
        (["level_2_problem_19_sample_3_kernel", "level2-model_a", "runs"], ("model_a", 3)),
        (["problem_19_sample_3", "level_1_problem_19", "model_a", "runs"], ("model_a", 3)),
        (["fused", "19_ReLU", "level1", "b", "a", "runs"], ("a-b-fused", None)),
    ],
)
def test_folders_that_say_more_are_in_a_samples_name(parts, expected):
    assert identity.named(parts) == expected
