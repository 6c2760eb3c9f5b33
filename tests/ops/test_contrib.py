"""contrib.py_func: nested arguments, keywords, nested results and shapes, on arrays and Values alike."""

import collections
import dataclasses
import os

import numpy as np
import pytest

import pyop
from pyop._tree import map_leaves

f32 = np.float32
Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Point:
    x: object
    y: object


def _arrays(func, args=(), kwargs=None, **options):
    return pyop.contrib.py_func(func, args, kwargs, **options)


def _graph(run):
    def call(func, args=(), kwargs=None, **options):
        graph = pyop.Graph()
        feeds = {}

        def symbolic(x):
            if not isinstance(x, np.ndarray | np.generic | float | str):
                return x
            value = graph.input(name=f"x{len(feeds)}")
            feeds[value] = x
            return value

        args = map_leaves(symbolic, args) if isinstance(args, list | tuple) else args
        kwargs = map_leaves(symbolic, kwargs) if isinstance(kwargs, dict) else kwargs
        with graph:
            fetch = pyop.contrib.py_func(func, args, kwargs, **options)
        return run(graph, fetch, feeds)

    return call


def _plan(graph, fetch, feeds):
    if not isinstance(fetch, pyop.Node):
        graph.output(fetch)
    return graph.compile()(*feeds.values())


WAYS = {
    "arrays": _arrays,
    "run": _graph(lambda graph, fetch, feeds: graph.run(fetch, feeds)),
    "threads": _graph(lambda graph, fetch, feeds: graph.run(fetch, feeds, threads=3)),
    "plan": _graph(_plan),
}


@pytest.fixture(params=list(WAYS))
def call(request):
    return WAYS[request.param]


# --- arguments


def test_nested_arguments_are_rebuilt(call):
    seen = []

    def look(*args, **kwargs):
        seen.append((args, kwargs))
        return f32(0)

    args = [f32(1), [f32(2), (f32(3),)], {"z": f32(4), "a": f32(5)}, Pair(f32(6), [f32(7)]), Point(f32(8), f32(9))]
    call(look, args, {"zeta": f32(10), "alpha": {"k": [f32(11)]}}, output_types="float32")
    ((got, kwargs),) = seen
    assert map_leaves(float, got) == (1, [2, (3,)], {"z": 4, "a": 5}, Pair(6, [7]), Point(8, 9))
    assert list(got[2]) == ["z", "a"]
    assert list(kwargs) == ["zeta", "alpha"]
    assert map_leaves(float, kwargs) == {"zeta": 10, "alpha": {"k": [11]}}
    assert all(type(x) is np.float32 for x in (got[0], got[1][0], kwargs["alpha"]["k"][0]))


def test_containers_of_arguments_are_fresh_each_time():
    kept = []
    g = pyop.Graph()
    p = g.input("float32")
    y = pyop.contrib.py_func(lambda xs: (kept.append(xs), xs.append(1), f32(0))[2], [[p]], output_types="float32")
    for _ in range(3):
        g.run(y, {p: f32(1)})
    assert [len(xs) for xs in kept] == [2, 2, 2]
    assert len({id(xs) for xs in kept}) == 3


def test_text_and_empty_containers_among_the_arguments(call):
    got = call(lambda a, b, c: a + c["t"], ["\u00e9", (), {"t": "x\0"}], output_types="string")
    assert got.item() == "\u00e9x\0".encode()
    assert call(lambda: f32(3), output_types="float32") == 3


def test_containers_of_arguments_are_checked(call):
    with pytest.raises(TypeError, match="args must be list and not"):
        call(lambda v: v, f32(1), output_types="float32")
    with pytest.raises(TypeError, match="args must be list and not dict"):
        call(lambda v: v, {"v": f32(1)}, output_types="float32")
    with pytest.raises(TypeError, match="kwargs must be dict and not list"):
        call(lambda v: v, (), [1], output_types="float32")
    with pytest.raises(ValueError, match="Expected func to be callable"):
        call(None, (), output_types="float32")
    with pytest.raises((TypeError, ValueError), match=r"argument 1.*NoneType"):
        call(lambda a, b: a, [f32(1), None], output_types="float32")
    with pytest.raises(TypeError, match="keywords must be strings"):
        call(lambda **k: f32(1), [], {1: f32(1)}, output_types="float32")


# --- results


def test_nested_results_keep_their_containers(call):
    types = {"z": "float32", "a": Pair("float32", ["float32", "int64"]), "p": Point("bool", ())}
    got = call(
        lambda: {"a": Pair(f32(2), [f32(3), np.int64(4)]), "p": Point(True, ()), "z": f32(1)}, output_types=types
    )
    assert list(got) == ["z", "a", "p"]
    assert type(got["a"]) is Pair
    assert type(got["a"].right) is list
    assert (got["z"], got["a"].left, got["a"].right, got["p"]) == (1, 2, [3, 4], Point(True, ()))


def test_a_leaf_may_be_anything_numpy_makes_an_array_of(call):
    assert call(lambda: [[1.0, 2.0], [3.0, 4.0]], output_types="float64").shape == (2, 2)
    a, b = call(lambda: ([1.0, 2.0], ((3.0,), (4.0,))), output_types=("float64", "float64"))
    assert (a.shape, b.shape) == ((2,), (2, 1))
    assert call(lambda: {"t": "\u00e9\0"}, output_types={"t": "string"})["t"].item() == "\u00e9\0".encode()
    (only,) = call(lambda: [[]], output_types=["float32"])
    assert (only.dtype, only.shape) == (f32, (0,))


@pytest.mark.parametrize("empty", [None, (), [], {}])
def test_no_result(call, empty):
    ran = []
    result = call(lambda x: ran.append(float(x)), [f32(2)], output_types=empty)
    assert result in (None, empty)
    assert ran == [2]
    assert call(lambda x: empty, [f32(2)], output_types=empty) in (None, empty)
    with pytest.raises(pyop.OutputError, match=r"structure|returns 1 values, but expects to see 0"):
        call(lambda x: x, [f32(2)], output_types=empty)


@pytest.mark.parametrize(
    ("types", "result", "words"),
    [
        (["float32"], (f32(1),), "expected a list of 1, got a tuple of 1"),
        (("float32",), [f32(1)], "expected a tuple of 1, got a list of 1"),
        (("float32",), f32(1), "expected a tuple of 1, got one value of type"),
        (("float32", "float32"), (f32(1),), "expected a tuple of 2, got a tuple of 1"),
        ({"a": "float32"}, {"a": f32(1), "b": f32(1)}, "expected a dict with the keys 'a', got .* 'a', 'b'"),
        ({"a": "float32"}, {}, "expected a dict with the keys 'a', got an empty dict"),
        (Pair("float32", "float32"), (f32(1), f32(2)), "expected a Pair of 2, got a tuple of 2"),
        ({"a": ["float32"]}, {"a": (f32(1),)}, r"at \['a'\]: expected a list of 1, got a tuple of 1"),
        (["float32"], None, "expected a list of 1, got one value of type NoneType"),
    ],
)
def test_the_structure_is_checked(call, types, result, words):
    def wrong(x):
        return result

    with pytest.raises(pyop.OutputError, match=f"(?s)structure mismatch.*{words}.*wrong") as caught:
        call(wrong, [f32(1)], output_types=types)
    assert os.path.basename(__file__) in str(caught.value)


def test_leaves_are_checked(call):
    with pytest.raises(
        pyop.OutputError, match=r"(?s)1-th value returned by .* is double, but expects float.*\['b'\]\[0\]"
    ):
        call(lambda: {"a": f32(1), "b": [2.0]}, output_types={"a": "float32", "b": ["float32"]})
    with pytest.raises(pyop.OutputError, match="Unsupported object type dict"):
        call(lambda: {"b": {}}, output_types={"b": "float32"})
    with pytest.raises(pyop.OutputError, match="Unsupported object type NoneType"):
        call(lambda: None, output_types="float32")


def test_shapes(call):
    a, b = call(
        lambda: (np.zeros((2, 3), f32), f32(1)), output_types=("float32", "float32"), output_shapes=([2, None], [])
    )
    assert (a.shape, b.shape) == ((2, 3), ())
    for shape in ([7], [2, 4], [], (2, 3, 1), [None]):
        with pytest.raises(
            pyop.OutputError, match=r"0-th value returned by wrong is float32\[2,3\], but expects float32\["
        ):

            def wrong():
                return np.zeros((2, 3), f32)

            call(wrong, output_types="float32", output_shapes=shape)
    assert call(lambda: {"a": f32([1])}, output_types={"a": "float32"}, output_shapes={"a": None})["a"] == [1]
    for shapes in ([[2]], ([2], [2]), {"a": [2]}, 3):
        with pytest.raises((TypeError, ValueError), match=r"output_shapes must have the structure|a shape is a list"):
            call(lambda: (f32(1),), output_types=("float32",), output_shapes=shapes)


def test_shapes_are_static_in_a_graph():
    g = pyop.Graph()
    with g:
        a, b, c = pyop.contrib.py_func(lambda: 0, output_types=["float32"] * 3, output_shapes=[(2, None), [], None])
    assert (a.shape, b.shape, c.shape) == ((2, None), (), None)


def test_types_and_shapes_may_be_computed_from_the_arguments(call):
    def types(x, *, k):
        assert k is not None
        return {"y": x.dtype or "float64"}

    got = call(
        lambda x, *, k: {"y": x * k},
        [np.ones(2)],
        {"k": np.float64(3)},
        output_types=types,
        output_shapes=lambda x, *, k: {"y": [2]},
    )
    assert got["y"].tolist() == [3, 3]


def test_a_dtype_class_is_no_rule(call):
    assert call(lambda: 1.5, output_types=float) == 1.5
    assert call(lambda: (f32(1), "x"), output_types=(np.float32, str))[1].item() == b"x"


@pytest.mark.parametrize("types", ["flaot32", 32, object(), [3]])
def test_wrong_types(call, types):
    with pytest.raises(TypeError, match="Cannot convert"):
        call(lambda: f32(1), output_types=types)


# --- the node


def test_name_state_and_merging():
    calls = []

    def tick(xs, *, k):
        calls.append(1)
        return {"n": np.int64(len(calls))}

    g = pyop.Graph()
    p = g.input("float32")

    def node(**options):
        return pyop.contrib.py_func(tick, [[p, p]], {"k": p}, output_types={"n": "int64"}, **options)["n"]

    same = [node(stateful=False), node(stateful=False, name="mine")]
    twice = [node(), node()]
    assert [v.name for v in same + twice] == ["tick", "mine", "tick_1", "tick_2"]
    assert [v.node.stateful for v in same + twice] == [False, False, True, True]
    assert [int(v) for v in g.run([*same, *twice], {p: f32(1)})] == [1, 1, 2, 3]
    with pytest.raises(ValueError, match="not a valid name"):
        node(name="a b")


def test_an_exception_is_the_functions_own(call):
    error = ValueError("pepper")

    def fail(x):
        raise error

    error.__traceback__ = None
    with pytest.raises(ValueError, match="pepper") as caught:
        call(fail, [[f32(1)]], output_types="float32")
    assert caught.value is error
    assert "fail" in "".join(error.__notes__)
    del error.__notes__
