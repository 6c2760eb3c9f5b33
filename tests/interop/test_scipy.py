"""`pyop.interop.scipy` in the hands of SciPy's solvers: derivatives that are known, and the solvers' own results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pyop
from pyop.interop.scipy import objective, residuals, rhs

optimize = pytest.importorskip("scipy.optimize")
integrate = pytest.importorskip("scipy.integrate")

T = np.linspace(0, 2, 40)
X = np.array([0.5, -0.2, 1.3])


def rosenbrock(x):
    total = 0.0
    for k in range(len(x) - 1):
        total += 100 * (x[k + 1] - x[k] ** 2) ** 2 + (1 - x[k]) ** 2
    return total


def decay(x, t, y):
    return x[0] * np.exp(-x[1] * t) + x[2] - y


def van_der_pol(t, y, mu):
    x, v = y
    return [v, mu * (1 - x**2) * v - x]


def diffusion(t, y):
    dy = np.zeros_like(y)
    dy[1:-1] = y[2:] - 2 * y[1:-1] + y[:-2]
    dy[0] = -(y[0] ** 3) if y[0] > 0 else 0.0
    return dy


def test_objective():
    fun = objective(rosenbrock)
    value, gradient = fun(X)
    assert value == rosenbrock(X)
    assert type(value) is float
    assert fun.value(X) == rosenbrock(X)
    np.testing.assert_allclose(gradient, optimize.rosen_der(X), rtol=1e-14)
    np.testing.assert_array_equal(fun.gradient(X), gradient)
    np.testing.assert_allclose(fun.hessian(X), optimize.rosen_hess(X), rtol=1e-13)
    np.testing.assert_allclose(fun.hessp(X, T[:3]), optimize.rosen_hess_prod(X, T[:3]), rtol=1e-13)


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("CG", ()),
        ("BFGS", ()),
        ("L-BFGS-B", ()),
        ("TNC", ()),
        ("SLSQP", ()),
        ("Newton-CG", ("hessp",)),
        ("trust-ncg", ("hessp",)),
        ("trust-exact", ("hess",)),
        ("trust-constr", ("hess",)),
    ],
)
def test_minimize_goes_the_way_of_exact_derivatives(method, more):
    fun = objective(rosenbrock)
    mine = {"hessp": fun.hessp, "hess": fun.hessian}
    exact = {"hessp": optimize.rosen_hess_prod, "hess": optimize.rosen_hess}
    got = optimize.minimize(fun, X, jac=True, method=method, **{name: mine[name] for name in more})
    want = optimize.minimize(
        rosenbrock, X, jac=optimize.rosen_der, method=method, **{name: exact[name] for name in more}
    )
    assert got.success == want.success
    apart = want.nit // 2 if method == "CG" else 2  # its way is long, and the last bits of a gradient turn it
    assert abs(got.nit - want.nit) <= apart
    np.testing.assert_allclose(got.x, want.x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    fun = residuals(decay)
    y = decay([2.0, 1.5, 0.3], T, 0.0)
    np.testing.assert_array_equal(fun(X, T, y), decay(X, T, y))
    power = np.exp(-X[1] * T)
    exact = np.stack([power, -X[0] * T * power, np.ones_like(T)], axis=1)
    np.testing.assert_allclose(fun.jac(X, T, y), exact, rtol=1e-14)
    found = optimize.least_squares(fun, [1, 1, 0], jac=fun.jac, args=(T, y), method=method)
    np.testing.assert_allclose(found.x, [2, 1.5, 0.3], rtol=1e-6)
    named = optimize.least_squares(fun, [1, 1, 0], jac=fun.jac, kwargs={"t": T, "y": y})
    np.testing.assert_allclose(named.x, [2, 1.5, 0.3], rtol=1e-6)


def listed(x):
    return [x[0] * x[1] - 2, np.sin(x[0]) - x[1] + 1]


@pytest.mark.parametrize("f", [listed, lambda x: tuple(listed(x)), lambda x: np.array(listed(x))])
def test_root(f):
    fun = residuals(f)
    values, jacobian = fun.both(X[:2])
    np.testing.assert_array_equal(values, fun(X[:2]))
    np.testing.assert_array_equal(jacobian, fun.jac(X[:2]))
    np.testing.assert_allclose(jacobian, [[X[1], X[0]], [np.cos(X[0]), -1]], rtol=1e-15)
    for method in ("hybr", "lm"):
        found = optimize.root(fun.both, [1.0, 1.0], jac=True, method=method)
        assert found.success
        np.testing.assert_allclose(fun(found.x), 0, atol=1e-8)


def test_values_and_jacobian_share_what_they_compute():
    calls = []

    @pyop.op("float64[n] -> float64[n]")
    def costly(x):
        calls.append(1)
        return np.tanh(x)

    @costly.jac(of=0, wrt=0, structure="diagonal")
    def _(x):
        return 1 - np.tanh(x) ** 2

    fun = residuals(lambda x: costly(x) * x)
    fun.both(X)
    calls.clear()
    np.testing.assert_allclose(fun.both(X + 1)[1], np.diag(np.tanh(X + 1) + (X + 1) * (1 - np.tanh(X + 1) ** 2)))
    assert len(calls) == 1


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_solve_ivp(method):
    fun = rhs(van_der_pol)
    y = np.array([2.0, 0.5])
    np.testing.assert_array_equal(fun(0.0, y, 20.0), van_der_pol(0.0, y, 20.0))
    np.testing.assert_allclose(fun.jac(0.0, y, 20.0), [[0, 1], [-1 - 20 * 2 * 2 * 0.5, 20 * (1 - 4)]], rtol=1e-15)

    def exact(t, y, mu):
        return np.array([[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]])

    options = {"method": method, "args": (20.0,), "rtol": 1e-6}
    got = integrate.solve_ivp(fun, (0, 30), [2.0, 0.0], jac=fun.jac, **options)
    want = integrate.solve_ivp(van_der_pol, (0, 30), [2.0, 0.0], jac=exact, **options)
    assert got.success
    np.testing.assert_allclose(got.y[:, -1], want.y[:, -1], rtol=1e-6)


def test_a_right_hand_side_that_writes_and_branches():
    fun = rhs(diffusion)
    for first in (0.7, -0.7):
        y = np.array([first, 0.1, 0.4, 0.2])
        exact = np.zeros((4, 4))
        exact[[1, 1, 1, 2, 2, 2], [0, 1, 2, 1, 2, 3]] = [1, -2, 1, 1, -2, 1]
        exact[0, 0] = -3 * first**2 if first > 0 else 0.0
        np.testing.assert_array_equal(fun(0.0, y), diffusion(0.0, y))
        np.testing.assert_allclose(fun.jac(0.0, y), exact, rtol=1e-15)


def test_fewer_values_than_variables():
    fun = residuals(lambda x: np.sum(x**2))
    np.testing.assert_array_equal(fun.jac(X), [2 * X])
    np.testing.assert_array_equal(fun(X), [np.sum(X**2)])
    assert optimize.least_squares(fun, X, jac=fun.jac).cost < 1e-8


def test_variables_are_what_scipy_makes_of_them():
    fun = objective(lambda x: np.sum(x**2))
    for x in ([1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1.0, 2.0])):
        value, gradient = fun(x)
        assert value == 5.0
        assert gradient.tolist() == fun.gradient(x).tolist() == [2, 4]
        assert fun.hessp(x, [1, 0]).tolist() == [2, 0]
    assert residuals(lambda x: x * 3).jac([1, 2]).tolist() == [[3, 0], [0, 3]]
    assert residuals(lambda x: x * 3).jac(2).tolist() == [[3]]
    with pytest.raises(TypeError, match=r"variables of <lambda> are numbers of shape \(n,\), got float64\[2, 2\]"):
        fun(np.ones((2, 2)))


def test_an_objective_of_one_element():
    # SciPy takes it for the number in it.
    assert optimize.minimize(objective(lambda x: (x - 2) ** 2), [3.0], jac=True).x.tolist() == [2]
    assert objective(lambda x: [x[0] * 3])([2.0]) == (6.0, [3.0])


def test_complex_differential_equations():
    fun = rhs(lambda t, y: 1j * y**2)
    np.testing.assert_allclose(fun.jac(0.0, np.array([1 + 1j, 2.0])), np.diag([-2 + 2j, 4j]))


def test_a_number_beside_what_varies():
    fun = rhs(lambda t, y: [t, 1, y[0] * y[2]])
    assert fun(0.5, np.array([1.0, 2.0, 3.0])).tolist() == [0.5, 1, 3]
    assert fun.jac(0.5, np.array([1.0, 2.0, 3.0])).tolist() == [[0, 0, 0], [0, 0, 0], [3, 0, 1]]


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: {"a": x}, "a dict"),
        (lambda x: None, "a NoneType"),
        (lambda x: [x, x[0]], "a list"),
        (lambda x: "text", "a str"),
    ],
)
def test_what_is_no_number_is_named(f, said):
    for made in (objective(f), objective(f).value, residuals(f), residuals(f).jac, residuals(f).both):
        with pytest.raises(TypeError, match=f"<lambda> returned {said}: SciPy takes numbers"):
            made(X)


def test_errors_say_what_came():
    with pytest.raises(TypeError, match=r"returned float64\[3, 1\]: SciPy takes numbers of shape \(m,\)"):
        residuals(lambda x: x[:, None])(X)
    with pytest.raises(TypeError, match=r"returned float64\[3\]: SciPy minimises one real number"):
        objective(lambda x: x * 2)(X)
    with pytest.raises(TypeError, match="Objective is made of a function, got ndarray"):
        objective(X)
    with pytest.raises(ZeroDivisionError):
        residuals(lambda x: 1 // 0)(X)
    with pytest.raises(pyop.NoRule):
        objective(lambda x: np.sum(np.i0(x)))(X)


def test_errors_name_the_line_of_the_function():
    state = {"calls": 0}

    def counted(x):
        state["calls"] += 1
        return x * state["calls"]

    with pytest.raises(TypeError, match=r"counted \(.*test_scipy.py:"):
        residuals(counted)(X)


def test_they_travel():
    fun = pickle.loads(pickle.dumps(residuals(decay)))
    np.testing.assert_array_equal(fun(X, T, 0.0), decay(X, T, 0.0))
    assert fun.__name__ == "decay"
    assert repr(fun) == "<pyop.interop.scipy.Residuals of 'decay'>"
