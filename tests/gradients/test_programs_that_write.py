"""Derivatives at arrays of functions that write, also into arrays that they make: they are compiled, and say so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop
from tests.loops.programs import MORE, by_complex_steps, function, program

X = np.array([0.3, -0.7, 0.9, 0.4, -0.2])
SOURCES = {
    "an element": "y = np.zeros(5, x.dtype); y[0] = x[0] * 2",
    "a number": "y = x * 1.0; y[0] = 3.0",
    "a part of itself": "y = x * 1.0; y[1:] += x[:-1] * y[1:]",
    "all of it": "y = np.empty_like(x); y[:] = x",
    "out": "y = x * 1.0; np.multiply(y, x, out=y)",
    "rows": "y = np.zeros((2, 5), x.dtype); y[0, :] = x; y[1] += x * x",
    "at": "y = np.zeros(3, x.dtype); np.add.at(y, [0, 0, 1], x[:3])",
    "seen through a view": "y = x * 1.0; r = y[:2]; y *= x; y = r * 1.0",
    "stopped": "y = x * 1.0; y[1] = pyop.stop_gradient(x[2].real) * x[1]",
}


def of(source):
    return function(f"def f(x):\n    {source}\n    return (y * y).sum()\n")


@pytest.mark.parametrize("name", SOURCES)
def test_right_with_one_warning(name):
    f = of(SOURCES[name])
    wanted = by_complex_steps(f, X)
    gradient = pyop.grad(f)
    with pytest.warns(pyop.RetraceWarning, match="its derivative is compiled"):
        assert np.allclose(gradient(X), wanted, rtol=1e-12)
    other = X[::-1].copy()
    assert np.allclose(gradient(other), by_complex_steps(f, other), rtol=1e-12)  # a warning would be an error


@pytest.mark.parametrize("name", MORE)
@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
def test_loops(name):
    f = function(MORE[name])
    wanted = by_complex_steps(f, X)
    assert np.allclose(pyop.grad(f)(X), wanted, rtol=1e-9)
    assert np.allclose(pyop.value_and_grad(pyop.compile(f))(X)[1], wanted, rtol=1e-9)
    assert np.allclose(pyop.hessian(f)(X), pyop.compile(pyop.hessian(f))(X))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("seed", range(12))
def test_generated(seed):
    text = program(seed)
    f = function(text)
    assert np.allclose(pyop.grad(f)(X), by_complex_steps(f, X), rtol=1e-9, atol=1e-10), text


def test_it_is_not_run_again_when_it_has_written_into_an_argument():
    def f(x, counts):
        counts += 1
        y = np.zeros(5)
        y[0] = x[0]
        return y.sum()

    counts = np.zeros(2)
    with pytest.raises(TypeError, match="recorded") as caught:
        pyop.grad(f)(X, counts)
    assert any("pyop.compile(pyop.grad(f))" in note for note in caught.value.__notes__)
    assert counts.tolist() == [1, 1]
    counts[:] = 0
    assert pyop.compile(pyop.grad(f))(X, counts).tolist() == [1, 0, 0, 0, 0]
    assert counts.tolist() == [1, 1]


def test_arguments_that_are_read_do_not_matter():
    def f(x, a):
        y = np.zeros(5)
        for i in range(5):
            y[i] = a[i] @ x
        return (y * y).sum()

    a = np.arange(25.0).reshape(5, 5)
    with pytest.warns(pyop.RetraceWarning):
        found = pyop.grad(f)(X, a)
    assert np.allclose(found, 2 * a.T @ (a @ X))


def test_what_cannot_be_compiled_either_is_refused_as_before():
    def f(x):
        y = np.zeros(5)
        y[0] = x.tolist()[0]
        return y.sum()

    with warnings.catch_warnings(), pytest.raises(TypeError, match="history would be lost"):
        warnings.simplefilter("ignore")
        pyop.grad(f)(X)


def test_inside_of_another_derivative():
    f = of(SOURCES["a part of itself"])
    total = lambda x: pyop.grad(f)(x).sum()
    with pytest.warns(pyop.RetraceWarning):
        assert np.allclose(pyop.grad(total)(X), pyop.compile(pyop.grad(total))(X))


def test_it_is_not_run_again_when_it_may_have_written_in_a_later_call():
    def f(x, counts, writes):
        counts += 1
        y = np.zeros(5) if writes else x * 1.0
        if writes:
            y[0] = x[0]
        return y.sum()

    gradient, counts = pyop.grad(f), np.zeros(2)
    assert gradient(X, counts, False).tolist() == [1] * 5
    with pytest.raises(TypeError, match="recorded"):
        gradient(X, counts, True)
    assert counts.tolist() == [2, 2]


def test_what_runs_itself_when_compiled_is_refused_and_does_not_come_back_for_ever():
    def f(x, scratch):
        y = np.zeros(5)
        y[0] = x[0] * 3
        if x.sum() > 100:
            scratch *= 0.5  # of an array with gaps: compiled, the function itself runs
        return y.sum()

    gradient, scratch = pyop.grad(f), np.ones(10)[::2]
    with pytest.warns(pyop.RetraceWarning):
        assert gradient(X, scratch).tolist() == [3, 0, 0, 0, 0]
    with warnings.catch_warnings(), pytest.raises(TypeError, match="what is recorded"):
        warnings.simplefilter("ignore")
        gradient(X + 100, scratch)
