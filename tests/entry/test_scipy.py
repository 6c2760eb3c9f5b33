"""`plan.low_level_callable()` in the hands of SciPy: the results of the Python function, and exceptions as they are."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import pyop

integrate = pytest.importorskip("scipy.integrate")
ndimage = pytest.importorskip("scipy.ndimage")


def compiled(f, *specs):
    return pyop.trace(f, *specs).compile()


def test_quad():
    def f(x):
        return np.exp(-x * x) * np.sin(3 * x) + x

    plan = compiled(f, "float64[]")
    for low, high in [(0, 1), (-2, 5), (0, np.inf)]:
        if high == np.inf:
            f, plan = (lambda x: np.exp(-x * x)), compiled(lambda x: np.exp(-x * x), "float64[]")
        assert integrate.quad(plan.low_level_callable(), low, high) == integrate.quad(f, low, high)


def test_quad_with_arguments_and_arrays():
    def f(x, a, b):
        return a * np.cos(b * x)

    plan = compiled(f, "float64[]", "float64[]", "float64[]")
    expected = integrate.quad(f, 0, 2, args=(3.0, 0.5))
    assert integrate.quad(plan.low_level_callable(), 0, 2, args=(3.0, 0.5)) == expected
    packed = compiled(lambda x, p: f(x, p[0], p[1]), "float64[]", "float64[2]")
    assert integrate.quad(packed.low_level_callable("quad"), 0, 2, args=(3.0, 0.5)) == expected


def test_dblquad_and_nquad():
    def f(y, x):
        return x * y * y + np.sin(x)

    plan = compiled(f, "float64[]", "float64[]")
    way = plan.low_level_callable("dblquad")
    assert integrate.dblquad(way, 0, 2, 0, 1) == integrate.dblquad(f, 0, 2, 0, 1)
    vector = compiled(lambda v: v[0] * v[1] + v[2], "float64[3]").low_level_callable("nquad")
    ranges = [[0, 1], [0, 2], [-1, 1]]
    assert integrate.nquad(vector, ranges) == integrate.nquad(lambda x, y, z: x * y + z, ranges)


def test_filters():
    image = np.random.default_rng(0).normal(size=(12, 9))
    plan = compiled(lambda w: (w.max() - w.min()) / (w.std() + 1), "float64[9]")
    got = ndimage.generic_filter(image, plan.low_level_callable("generic_filter"), size=3)
    expected = ndimage.generic_filter(image, lambda w: (w.max() - w.min()) / (w.std() + 1), size=3)
    assert np.array_equal(got, expected)
    middle = compiled(lambda w: w[4] * 2 - w[0], "float64[9]")
    assert middle._without_python
    got = ndimage.generic_filter(image, middle.low_level_callable("generic_filter"), size=3)
    assert np.array_equal(got, ndimage.generic_filter(image, lambda w: w[4] * 2 - w[0], size=3))

    def line(inputs, outputs):
        outputs[...] = inputs[:-2] + 2 * inputs[1:-1] - inputs[2:]

    plan = compiled(lambda x: x[:-2] + 2 * x[1:-1] - x[2:], "float64[11]")
    got = ndimage.generic_filter1d(image, plan.low_level_callable("generic_filter1d"), 3)
    assert np.array_equal(got, ndimage.generic_filter1d(image, line, 3))


def test_geometric_transform():
    image = np.random.default_rng(0).normal(size=(8, 7))
    plan = compiled(lambda i, j: (i + 0.5, j - 0.25 * i), "int64[]", "int64[]")
    got = ndimage.geometric_transform(image, plan.low_level_callable("geometric_transform"))
    assert np.array_equal(got, ndimage.geometric_transform(image, lambda at: (at[0] + 0.5, at[1] - 0.25 * at[0])))
    vector = compiled(lambda at: at * 0.5 + 1, "int64[2]").low_level_callable("geometric_transform")
    got = ndimage.geometric_transform(image, vector)
    assert np.array_equal(got, ndimage.geometric_transform(image, lambda at: (at[0] * 0.5 + 1, at[1] * 0.5 + 1)))


class Mine(Exception):
    pass


def raising(x):
    if x.sum() > 0.3:
        raise Mine("too far", 7)
    return x.sum()


def python_plan(spec):
    return compiled(lambda x: pyop.py_func(raising, [x], "float64[]"), spec)


def test_quad_raises_what_the_plan_raised():
    way = python_plan("float64[]").low_level_callable()
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(Mine) as caught:
                integrate.quad(way, 0, 1)
        assert caught.value.args == ("too far", 7)
        assert "in raising\n" in "".join(caught.value.__notes__)
        # And not once more.
        assert integrate.quad(way, 0, 0.2)[0] == pytest.approx(0.02)
    with pytest.raises(Mine):
        integrate.dblquad(compiled(lambda y, x: pyop.py_func(raising, [x], "float64[]"), "float64[]", "float64[]")
                          .low_level_callable(), 0, 2, 0, 1)  # fmt: skip


def test_quad_calls_nothing_more_after_a_failure():
    called = []

    def f(x):
        called.append(float(x))
        if len(called) == 3:
            raise Mine("third")
        return x

    way = compiled(lambda x: pyop.py_func(f, [x], "float64[]"), "float64[]").low_level_callable()
    with pytest.raises(Mine, match="third"):
        integrate.quad(way, 0, 1)
    assert len(called) == 3
    assert integrate.quad(way, 0, 1)[0] == pytest.approx(0.5)
    assert len(called) == 24


def test_quad_raises_on_the_thread_that_called_it():
    way, met = python_plan("float64[]").low_level_callable(), []

    def work(high):
        try:
            met.append(integrate.quad(way, 0, high)[0])
        except Mine as error:
            met.append(error.args[1])

    threads = [threading.Thread(target=work, args=(high,)) for high in (1, 0.2) * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(met) == pytest.approx([0.02] * 8 + [7] * 8)


def test_quad_gives_warnings_as_numpy_does():
    plan = compiled(lambda x: 1 / (x - 0.5), "float64[]")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        integrate.quad(plan.low_level_callable(), 0, 1)
    assert "divide by zero encountered in scalar divide" in [str(w.message) for w in caught]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        integrate.quad(plan.low_level_callable(), 0, 1)


def test_filters_raise_what_the_plan_raised():
    image = np.ones((4, 4))
    with pytest.raises(Mine) as caught:
        ndimage.generic_filter(image, python_plan("float64[9]").low_level_callable("generic_filter"), size=3)
    assert caught.value.args == ("too far", 7)


def test_other_numbers_than_declared():
    plan = compiled(lambda x, y: x * y, "float64[]", "float64[]")
    with pytest.raises(pyop.InputError, match="takes 2 numbers from C, but was called with 1"):
        integrate.quad(plan.low_level_callable(), 0, 1)
    window = compiled(lambda w: w.sum(), "float64[9]").low_level_callable("generic_filter")
    with pytest.raises(pyop.InputError, match="takes 9 numbers from C, but was called with 25"):
        ndimage.generic_filter(np.ones((6, 6)), window, size=5)
    line = compiled(lambda x: x * 2, "float64[8]").low_level_callable("generic_filter1d")
    with pytest.raises(pyop.OutputError, match="gives 8 numbers, but the line of the output has 6"):
        ndimage.generic_filter1d(np.ones((6, 6)), line, 3)
    at = compiled(lambda at: at * 1.0, "int64[3]").low_level_callable("geometric_transform")
    with pytest.raises(pyop.OutputError, match="gives 3 coordinates, but the input has 2 axes"):
        ndimage.geometric_transform(np.ones((6, 6)), at)


@pytest.mark.parametrize(
    ("f", "spec", "function", "text"),
    [
        (lambda x: x, "float32[]", "quad", "quad hands over float64"),
        (lambda x: x, "float64[]", "geometric_transform", "geometric_transform hands over int64"),
        (lambda x: (x, x), "float64[]", "quad", "quad wants one float64"),
        (lambda x: x > 0, "float64[]", "generic_filter", "generic_filter wants one float64"),
        (lambda x: x, "float64[n]", "quad", r"input 'x' is float64\[n\]"),
    ],
)
def test_what_scipy_cannot_call(f, spec, function, text):
    with pytest.raises(TypeError, match=text):
        compiled(f, spec).low_level_callable(function)


def test_a_function_that_is_none():
    with pytest.raises(ValueError, match="'romberg' cannot take a plan; these can: quad"):
        compiled(lambda x: x, "float64[]").low_level_callable("romberg")


def test_the_callable_keeps_the_plan():
    plan = compiled(lambda x: x * 3, "float64[]")
    alive, way = weakref.ref(plan), plan.low_level_callable()
    del plan
    gc.collect()
    assert integrate.quad(way, 0, 1)[0] == pytest.approx(1.5)
    del way
    gc.collect()
    assert alive() is None
