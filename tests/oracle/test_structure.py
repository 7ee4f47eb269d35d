from collections import namedtuple

import pytest
import torch

from harness.nesting import DEEPEST
from harness.oracle.structure import compare, convert, flatten, places, rebuild, unsupported

X = torch.zeros(2, 3)
Pair = namedtuple("Pair", "values indices")


class Lazy(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("expected", "got", "reason"),
    [
        (X, torch.zeros(3, 2), "wrong_shape"),
        (torch.tensor(1.0), torch.ones(1), "wrong_shape"),
        (X, X.half(), "wrong_dtype"),
        (X, X.to("meta"), "wrong_device"),
        (X, X.to_sparse(), "wrong_layout"),
        (X, X.as_subclass(Lazy), "tensor_subclass"),
        (X, None, "not_a_tensor"),
        (X, 0.0, "not_a_tensor"),
        (X, (X,), "wrong_structure"),
        ((X, X), X, "wrong_structure"),
        ((X, X), (X,), "wrong_structure"),
        ({"a": X}, {"b": X}, "wrong_structure"),
        ({"a": (X, 1)}, {"a": (X, 1.0)}, "wrong_type"),
        (True, 1, "wrong_type"),
        (None, 0, "wrong_type"),
    ],
)
def test_each_difference_has_its_own_reason(expected, got, reason):
    fault = compare(expected, got)
    assert fault is not None
    assert fault.reason == reason


def test_a_message_about_a_type_has_the_right_article():
    assert compare(X, 3).message == "expected a tensor, got an int"


def test_lists_tuples_and_named_tuples_are_one_kind():
    assert compare(Pair(X, X), [X, X]) is None
    assert compare([X, X], (X, X)) is None


def test_strides_and_the_order_of_keys_are_free():
    assert compare(torch.zeros(3, 3), torch.zeros(3, 3).T) is None
    assert compare({"a": X, "b": X}, {"b": X, "a": X}) is None


def test_a_tree_is_rebuilt_from_its_leaves():
    tree = {"a": [X, (1, None)], "b": Pair(X, 2.0)}
    leaves = [leaf for _, leaf in flatten(tree)]
    assert rebuild(tree, leaves) == {"a": [X, (1, None)], "b": (X, 2.0)}


def nested(depth):
    tree = X
    for number in range(depth):
        tree = [tree] if number % 2 else {"a": tree}
    return tree


def endless():
    loop = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("tree", [nested(DEEPEST + 2), nested(3000), endless()])
def test_what_is_nested_too_deeply_is_a_leaf_that_cannot_be_compared(tree):
    assert unsupported(tree).endswith(" is a nesting deeper than 16")
    [(_, leaf)] = flatten(tree)
    assert [one for _, one in flatten(rebuild(tree, [1]))] == [1]
    assert [one for _, one in flatten(convert(tree, torch.clone))] == [leaf]
    assert compare(tree, nested(2)) is not None
    assert len(places(tree)) == 1


def test_what_is_nested_as_deeply_as_may_be_is_compared():
    assert unsupported(nested(DEEPEST)) == ""
    assert compare(nested(DEEPEST), convert(nested(DEEPEST), torch.clone)) is None
