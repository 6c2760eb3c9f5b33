"""CallOnTree: arrays and sizes put back into the containers that a function takes."""

import gc
import weakref
from collections import namedtuple

import numpy as np
import pytest

import pyop
from pyop._tree import flatten
from pyop.declare.dim import Dim
from pyop.declare.rebuild import CallOnTree, call_on_tree, call_with_sizes

Pair = namedtuple("Pair", "left right")
A, B = np.arange(3.0), np.ones(2)


def call(fn, *args, **kwargs):
    """A CallOnTree of these arguments, and the arrays it takes."""
    leaves, tree = flatten((args, kwargs))
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
    marked = tuple(CallOnTree.ARRAY if isinstance(leaf, np.ndarray) else leaf for leaf in leaves)
    return call_on_tree(fn, tree, marked), arrays


def seen(*args, **kwargs):
    return args, kwargs


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((A,), {}),
        (([A, B], 0), {}),
        (((A, (B, None)), "text"), {"key": [A, {"inner": B}], "flag": True}),
        ((Pair(A, 1), [2]), {"pair": Pair(A, (B,))}),
        (((), [], {}), {"empty": ()}),
        ((slice(1, None), (slice(None), ...)), {"x": A}),
        (({3: A, "b": [1, 2]},), {}),
    ],
)
def test_the_arguments_come_as_they_were(args, kwargs):
    made, arrays = call(seen, *args, **kwargs)
    got_args, got_kwargs = made(*arrays)
    again, structure = flatten((got_args, got_kwargs))
    leaves, expected = flatten((args, kwargs))
    assert structure == expected
    assert all(a is b for a, b in zip(again, leaves, strict=True))


def test_containers_are_new_each_time():
    def grow(items, extra):
        items.append(1)
        extra["more"] = 1
        return len(items), len(extra)

    made, arrays = call(grow, [A, 2], {"a": [1]})
    assert made(*arrays) == made(*arrays) == (3, 2)


def test_sizes_are_put_in():
    n, m = Dim("n"), Dim("m")
    sized = (n, [2 * n + m, n * m], {"k": slice(n - 1, None)}, (n + 1) // 2, "n")
    arguments = (seen, (sized, A), {"last": n}, {"n": (A, 0), "m": (B, 0)})
    made, arrays = call(call_with_sizes, *arguments)
    (got, x), kwargs = made(*arrays)
    assert got == (3, [8, 6], {"k": slice(2, None)}, 2, "n")
    assert x is A
    assert kwargs == {"last": 3}
    with pytest.raises(IndexError):
        made(A, A, np.float64(1.0))


def test_calls_that_do_the_same_are_equal():
    first, second, other = (call(seen, [A, k], axis=0)[0] for k in (1, 1, 2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    assert first != seen
    assert call(seen, [A, 0.0])[0] != call(seen, [A, -0.0])[0]


def test_wrong_arguments_and_errors_pass_through():
    def fail(items):
        raise KeyError("mine")

    made, _ = call(fail, [A])
    with pytest.raises(KeyError, match="mine"):
        made(A)
    for arguments, named in (((), {}), ((A, A), {}), ((A,), {"x": 1})):
        with pytest.raises(TypeError, match="takes 1 arrays by position"):
            made(*arguments, **named)


def test_methods_and_cycles():
    class Box:
        def method(self, items):
            return self, items

    box = Box()
    made, arrays = call(box.method, [A, 1])
    assert made(*arrays)[0] is box
    box.call = made
    gone = weakref.ref(box)
    del box, made
    gc.collect()
    assert gone() is None


def test_nested_arguments_in_a_plan():
    plan = pyop.trace(lambda x, y: np.concatenate([x, 2 * y, [1.0]]), "float64[n]", "float64[m]").compile()
    assert plan(A, B).tolist() == [0, 1, 2, 2, 2, 1]
