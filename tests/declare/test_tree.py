"""Trees: leaves out and in again, what matches a structure, and how a mismatch is told."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyop._tree import TreeDef, contains, flatten, map_leaves


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class State:
    position: Any
    velocity: Any = 0
    made: Any = field(default=7, init=False)
    shared: ClassVar[int] = 3


leaves = st.one_of(st.none(), st.integers(), st.text(max_size=3))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(State, inner, inner),
    ),
    max_leaves=12,
)


@given(trees)
def test_round_trip(tree: Any) -> None:
    flat, structure = flatten(tree)
    assert structure.num_leaves == len(flat) == len(structure.leaf_paths())
    again = structure.unflatten(flat)
    assert again == tree
    assert flatten(again) == (flat, structure)
    assert structure.flatten_up_to(tree) == flat
    assert map_leaves(lambda x: x, tree) == tree
    copy = pickle.loads(pickle.dumps(structure))
    assert copy == structure
    assert hash(copy) == hash(structure)
    assert repr(copy) == repr(structure)
    assert structure.is_leaf == (flat == [tree] and structure == flatten(None)[1])
    for path, leaf in zip(structure.leaf_paths(), flat, strict=True):
        assert eval("tree" + path, {"tree": tree}) == leaf


@given(trees, trees)
def test_equal_structures_are_those_that_match_both_ways(a: Any, b: Any) -> None:
    (_, left), (_, right) = flatten(a), flatten(b)
    told = []
    for structure, tree in ((left, b), (right, a)):
        try:
            assert len(structure.flatten_up_to(tree)) == structure.num_leaves
        except (TypeError, ValueError) as error:
            told.append(str(error))
    assert all(text.startswith("structure mismatch") for text in told)
    # Only the order of the keys of a dict may differ where both match.
    assert not (told and left == right)
    assert told or left.num_leaves == right.num_leaves


def test_what_is_a_container() -> None:
    class Stack(list):
        pass

    for leaf in (None, "text", b"", OrderedDict(a=1), Stack([1]), State, range(3), {1}):
        flat, structure = flatten(leaf)
        assert flat == [leaf]
        assert structure.is_leaf
    tree = {"b": [1, Pair(2, (3,))], "a": State(4), "e": ()}
    flat, structure = flatten(tree)
    assert flat == [1, 2, 3, 4, 0]  # what the class holds is no leaf
    assert structure.leaf_paths() == ["['b'][0]", "['b'][1].left", "['b'][1].right[0]"] + [
        "['a']." + name for name in ("position", "velocity")
    ]
    again = structure.unflatten(flat)
    assert list(again) == ["b", "a", "e"]
    assert vars(again["a"]) == {"position": 4, "velocity": 0}
    object.__setattr__(tree["a"], "made", 8)
    assert flatten(tree)[0][-1] == 8
    assert flatten(tree)[1].unflatten(range(6))["a"].made == 5
    assert flatten((1, (2, 3)), lambda x: x == (2, 3))[0] == [1, (2, 3)]


def test_matching_keeps_leaves_whole_and_keys_in_declared_order() -> None:
    _, structure = flatten({"a": 0, "b": (0, 0)})
    assert structure.flatten_up_to({"b": ([1, 2], {}), "a": (3,)}) == [(3,), [1, 2], {}]
    assert flatten({"a": 0, "b": 0})[1] != flatten({"b": 0, "a": 0})[1]


@pytest.mark.parametrize(
    ("tree", "kind", "text"),
    [
        (3, TypeError, "structure mismatch: expected a dict with the keys 'a', 'p', got one value of type int"),
        ({"a": [1, 2]}, ValueError, "structure mismatch: expected a dict with the keys 'a', 'p', got a dict with"),
        (
            {"a": (1, 2, 3), "p": Pair(1, 2)},
            TypeError,
            "structure mismatch at ['a']: expected a list of 2, got a tuple of 3",
        ),
        ({"a": [1], "p": Pair(1, 2)}, ValueError, "structure mismatch at ['a']: expected a list of 2, got a list of 1"),
        ({"a": [1, 2], "p": (1, 2)}, TypeError, "structure mismatch at ['p']: expected a Pair of 2, got a tuple of 2"),
        ({"a": [1, 2], "p": {}}, TypeError, "structure mismatch at ['p']: expected a Pair of 2, got an empty dict"),
    ],
)
def test_mismatch(tree: Any, kind: type[Exception], text: str) -> None:
    _, structure = flatten({"a": [0, 0], "p": Pair(0, 0)})
    with pytest.raises(kind) as error:
        structure.flatten_up_to(tree)
    assert str(error.value).startswith(text)


def test_depth_is_bounded() -> None:
    loop: list[Any] = []
    loop += [loop, loop]
    for walk in (flatten, lambda t: contains(t, int), lambda t: map_leaves(str, t)):
        with pytest.raises(ValueError, match=r"nested deeper than .* hold itself"):
            walk(loop)
    deep: Any = 1
    for _ in range(450):
        deep = [deep]
    flat, structure = flatten(deep)
    assert pickle.loads(pickle.dumps(structure)) == structure
    assert structure.unflatten(flat) == deep
    with pytest.raises(ValueError, match="structure mismatch at"):
        structure.flatten_up_to([[[[]]]])


def test_contains() -> None:
    assert contains({"a": [1, ("x",)]}, str)
    assert contains(State([2.5]), (float, str))
    assert not contains(({}, [None]), int)
    assert contains(3, int)


def test_nothing_of_a_class_runs() -> None:
    class Guarded:
        __dataclass_fields__: ClassVar[dict] = State.__dataclass_fields__

        def __getattr__(self, name: str) -> Any:
            raise ZeroDivisionError

        __setattr__ = __init__ = __getattr__  # type: ignore[assignment]
        position = property(__init__, __init__)  # type: ignore[arg-type]

    empty = object.__new__(Guarded)
    assert flatten(empty)[0] == []
    vars(empty)["position"] = 3
    flat, structure = flatten(empty)
    assert (flat, structure.leaf_paths()) == ([3], [".position"])
    assert vars(structure.unflatten([4])) == {"position": 4}


def test_errors_of_callers_pass_through() -> None:
    with pytest.raises(ValueError, match="has 2 leaves, got 3"):
        flatten((1, 2))[1].unflatten([1, 2, 3])
    with pytest.raises(TypeError):
        TreeDef()
    assert TreeDef.__new__(TreeDef).unflatten([3]) == 3
    with pytest.raises(ZeroDivisionError):
        map_leaves(lambda x: 1 // x, [0])
