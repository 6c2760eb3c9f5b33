"""The kernels, as ops: eagerly, in plans, differentiated, and inside of plans that Cython calls."""

import pickle

import numpy as np
import pytest
from fastparts import is_native, newton, smooth, softplus

import pyop
from pyop.autograd import gradcheck


def smoothed(x, rate):
    level, levels = 0.0, []
    for value in x.tolist():
        level += float(rate) * (value - level)
        levels.append(level)
    return np.array(levels)


X = np.random.default_rng(5).normal(size=200)


@pytest.mark.parametrize("x", [X, X[::-1], X[::3], X[:1], X[:0]], ids=["all", "reversed", "steps", "one", "none"])
def test_smooth(x):
    rate = np.array(0.2)
    want = smoothed(x, rate)
    assert smooth(x, rate).tobytes() == want.tobytes()
    plan = pyop.trace(smooth, f"float64[{len(x)}]", "float64[]").compile()
    assert plan(x, rate).tobytes() == want.tobytes()
    out = np.zeros(len(x))
    plan(x, rate, out=out)
    assert out.tobytes() == want.tobytes()


def test_what_is_not_declared_is_refused():
    with pytest.raises(pyop.InputError, match="float32"):
        smooth(X.astype("float32"), np.array(0.2))
    with pytest.raises(pyop.InputError, match="softplus"):
        softplus(np.arange(3))


def test_softplus():
    x = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    assert np.allclose(softplus(x), np.logaddexp(x, 0), rtol=1e-15, atol=0)
    assert softplus(x.reshape(5, 1)).shape == (5, 1)

    @pyop.compile
    def fused(x):
        return softplus(x * 2 - 1).sum()

    assert fused(x) == softplus(x * 2 - 1).sum()


def test_derivatives():
    def variable(x):
        return pyop.Tensor(np.array(x), requires_grad=True)

    assert gradcheck(softplus, (variable(np.linspace(-3, 3, 7)),))
    assert gradcheck(smooth, (variable(X[:20]), variable(0.3)))
    loss = pyop.grad(lambda x: (smooth(x, np.array(0.3)) ** 2).sum())
    x, h = X[:6].copy(), 1e-6
    differences = [
        (((smooth(x + h * e, np.array(0.3)) ** 2).sum() - (smooth(x - h * e, np.array(0.3)) ** 2).sum()) / (2 * h))
        for e in np.eye(6)
    ]
    assert np.allclose(loss(x), differences, atol=1e-8)


def test_a_plan_with_a_kernel_where_cython_calls_it():
    # The slope is written out: the rule of an op is Python, for which a plan takes the GIL.
    def f(x, p):
        return softplus(x) - p, 1 / (1 + np.exp(-x))

    plan = pyop.trace(f, "float64[]", "float64[]").compile()
    p = np.linspace(0.1, 3, 1000)
    assert is_native(plan)
    roots = newton(plan, np.ones(1000), p)
    assert np.allclose(np.logaddexp(roots, 0), p, rtol=1e-13)


def test_they_are_pickled_by_name():
    again = pickle.loads(pickle.dumps(smooth))
    assert again(X, np.array(0.5)).tobytes() == smooth(X, np.array(0.5)).tobytes()
