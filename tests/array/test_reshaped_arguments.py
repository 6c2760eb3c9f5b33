"""Functions that give an argument another shape or dtype: what was promised of the call holds all the same.

NumPy frees the block of an array's dimensions when its shape is set, and the next array of that rank gets it: whoever
still reads there compares the result with itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyop

# NumPy 2.5 deprecates setting a shape, which programs go on doing.
pytestmark = pytest.mark.filterwarnings("ignore:.*Setting the (shape|dtype|strides).*:DeprecationWarning")

PAIR = np.dtype([("a", "i4"), ("b", "i4")])


def read_only(*shape: int, dtype: Any = float) -> np.ndarray:
    """An array that is lent as it is."""
    a = np.zeros(shape, dtype)
    a.flags.writeable = False
    return a


def flatten(*arrays: np.ndarray) -> None:
    for a in arrays:
        a.shape = (a.size,)


def retype(*arrays: np.ndarray) -> None:
    for a in arrays:
        a.dtype = np.dtype([("x", "f4"), ("y", "f4")])


CASES: dict[str, tuple[Any, dict[str, Any], Any, Any]] = {
    # declaration, options, what happens to the argument, a result that only fits what the argument has become
    "variadic": ("float64[*s] -> float64[*s]", {}, flatten, np.ones((9, 9, 9))),
    "variadic, flat": ("float64[*s] -> float64[*s]", {}, flatten, np.ones(24)),
    "variadic and a name": ("float64[*s, n] -> float64[n, *s]", {}, flatten, np.ones((9, 9, 9))),
    "variadic, required out": ("float64[*s] -> float64[*s], float64[*s]", {}, flatten, (np.ones((9, 9, 9)),) * 2),
    "like": (None, {"like": 0}, flatten, np.ones(24)),
    "like dtype": (None, {"like": 0}, retype, np.ones((2, 3, 4), np.dtype([("x", "f4"), ("y", "f4")]))),
    "type": ("T[*s] -> T[*s]", {}, retype, np.ones((2, 3, 4), np.dtype([("x", "f4"), ("y", "f4")]))),
    "names": ("_[l, m, n] -> _[l, m, n]", {}, flatten, np.ones((9, 9, 9))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["op", "plan"])
def test_a_result_is_held_against_the_argument_as_it_came(name: str, way: str) -> None:
    declared, options, change, result = CASES[name]

    def changing(x: np.ndarray) -> Any:
        change(x)
        return result

    op = pyop.op(changing, declared, **options)
    dtype = PAIR if change is retype else float
    call = op if way == "op" else pyop.trace(op, f"{'_' if change is retype else 'float64'}[2, 3, 4]").compile()
    with pytest.raises(pyop.OutputError, match="expects"):
        for _ in range(50):  # blocks go round
            call(read_only(2, 3, 4, dtype=dtype))


def test_a_loop_over_leading_axes_goes_on_over_the_arrays_as_they_came() -> None:
    whole = np.arange(24.0).reshape(4, 3, 2)
    arrays = [whole.copy(), np.arange(6.0).reshape(3, 2)]

    @pyop.op("(n),(n)->(n)")
    def twice(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        arrays[0].shape = (24,)
        arrays[1].dtype = np.int32
        return x + y

    assert np.array_equal(twice(*arrays), whole + np.arange(6.0).reshape(3, 2))

    @pyop.op("(n)->(n)")
    def into(x: np.ndarray, *, out: np.ndarray) -> None:
        out[...] = x
        out.base.shape = (12, 2)

    with pytest.raises(pyop.OutputError, match="reshape the result"):
        into(whole, out=np.empty((4, 3, 2)))


@pyop.op("_[...] -> _[...]")
def flattening(x: np.ndarray) -> np.ndarray:
    shape = x.shape
    x.shape = (x.size,)
    return np.array(shape)


@pyop.op("_[...], float64[...] -> _[...]")
def flattening_both(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    shape = x.shape
    x.shape = (x.size,)
    return np.array(shape)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_others_read_keeps_its_shape(threads: int) -> None:
    with pyop.Graph() as graph:
        x = graph.input("float64[_, _]")
        c = graph.constant(np.arange(6.0).reshape(2, 3))
        folded = c + 1
        graph.output(
            (flattening(x), flattening_both(x, x), flattening_both(c, x), flattening_both(folded, x), x, c, folded)
        )
    plan = graph.compile(threads=threads)
    a = np.ones((3, 4))
    for _ in range(3):
        one, two, three, four, same, constant, known = plan(a)
        assert (one.tolist(), two.tolist(), three.tolist(), four.tolist()) == ([3, 4], [3, 4], [2, 3], [2, 3])
        assert same is a
        assert a.shape == (3, 4)
        assert (constant.shape, known.shape) == ((2, 3), (2, 3))
        # Nor does the caller of a plan reach what the graph keeps.
        constant.shape = known.shape = (6,)
        constant.dtype = np.int64
    assert graph.run(c).dtype == float
    assert graph.compile()(a)[5].shape == (2, 3)


def test_folding_keeps_the_shape_of_constants() -> None:
    with pyop.Graph() as graph:
        c = graph.constant(np.arange(6.0).reshape(2, 3))
        graph.output((flattening(c), flattening(c * 1), c))
    for _ in range(2):
        one, two, constant = graph.compile()()
        assert (one.tolist(), two.tolist(), constant.shape) == ([2, 3], [2, 3], (2, 3))


def test_a_lent_constant_that_comes_back_is_the_constant() -> None:
    with pyop.Graph() as graph:
        x = graph.input("float64[n]")
        c = graph.constant(np.arange(3.0))
        graph.output(pyop.op("_[n], _[n] -> _[n]")(lambda c, x: c)(c, x))
    result = graph.compile()(np.ones(3))
    assert np.array_equal(result, np.arange(3.0))
    assert not result.flags.writeable


@pytest.mark.parametrize("threads", [1, 2])
def test_functions_that_share_a_read_only_slice_are_lent_the_slice(threads: int) -> None:
    total, largest = (pyop.op("float64[n] -> float64[]")(f) for f in (np.sum, np.max))
    plan = pyop.trace(lambda x: (total(x), largest(x)), "float64[n]").compile(threads=threads)
    part = np.arange(10.0)[2:5]
    part.flags.writeable = False
    assert plan(part) == (9, 4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", ["return spoil ask", "keep spoil_kept ask", "keep spoil spoil_kept ask", "undo ask"])
def test_an_argument_that_is_returned_or_kept_is_not_spoilt_for_others(order: str, threads: int) -> None:
    kept = []

    def keep(x: np.ndarray) -> np.ndarray:
        kept.append(x)
        return x

    def spoil(x: np.ndarray) -> float:
        x.shape = (*x.shape, 1)
        return 0.0

    def undo(x: np.ndarray) -> float:
        x.__setstate__((1, (2,), np.dtype(float), False, bytes(16)))
        return 0.0

    ops = {
        "return": pyop.op("float64[m, n] -> float64[m, n]")(lambda x: x),
        "keep": pyop.op("float64[m, n] -> float64[m, n]")(keep),
        "spoil": pyop.op("float64[m, n] -> float64[]")(spoil),
        "spoil_kept": pyop.op("float64[m, n] -> float64[]")(lambda x: spoil(kept[-1]) if kept else 0.0),
        "undo": pyop.op("float64[m, n] -> float64[]")(undo),
        "ask": pyop.op("float64[m, n] -> float64[]")(lambda x: float(x.ndim)),
    }
    plan = pyop.trace(lambda x: [ops[word](x) for word in order.split()], "float64[m, n]").compile(threads=threads)
    for a in (np.ones((2, 3)), read_only(2, 3), np.ones((4, 6))[::2, ::2]):
        kept.clear()
        results = plan(a)
        assert results[-1] == 2
        assert a.shape == (2, 3)
        if order.startswith("return"):
            assert results[0] is a
