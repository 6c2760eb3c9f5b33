"""`solve_ivp` against SciPy's own: the same steps, times and states, to the bit, whatever is asked for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyop
from pyop.interop.scipy import rhs, solve_ivp

integrate = pytest.importorskip("scipy.integrate")
linalg = pytest.importorskip("scipy.linalg")

EXPLICIT = ("RK23", "RK45", "DOP853")
IMPLICIT = ("Radau", "BDF")
METHODS = EXPLICIT + IMPLICIT
A = np.array([[-1.0, 2.0, 3.0], [0.0, -1.0, 2.0], [0.5, 0.0, -1.0]])


def decay(t, y):
    return [-0.5 * y[0]]


def lotka_volterra(t, y, a, b, c, d):
    prey, hunters = y
    return [a * prey - b * prey * hunters, d * prey * hunters - c * hunters]


def van_der_pol(t, y, mu):
    return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]


def lorenz(t, y, s, r, b):
    return [s * (y[1] - y[0]), y[0] * (r - y[2]) - y[1], y[0] * y[1] - b * y[2]]


def robertson(t, y):
    slow, fast, twice = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [fast - slow, slow - fast - twice, twice]


def kepler(t, y):
    r3 = (y[0] * y[0] + y[1] * y[1]) ** 1.5
    return [y[2], y[3], -y[0] / r3, -y[1] / r3]


def driven(t, y, omega):
    return [y[1], np.cos(omega * t) - 0.1 * y[1] - np.sin(y[0])]


def switched(t, y):
    force = 1.0 if t < 2 else -1.0
    return [y[1], force - y[0]]


def friction(t, y):
    return [y[1], -y[0] - (0.1 if y[1] > 0 else -0.1)]


def network(t, y):
    rates = [0.3 * (k + 1) * y[k] for k in range(10)]
    return [rates[k - 1] - rates[k] + 0.01 * y[9] * y[k] for k in range(10)]


def matrix(t, y):
    return A @ y


def arrays(t, y):
    dy = np.zeros_like(y)
    dy[1:] = y[:-1] - y[1:]
    dy[0] = 1.0 - y[0]
    return dy


def constants(t, y):
    return [1.0, t, 3]


PROBLEMS = {
    "decay": (decay, (0, 10), [2.0], ()),
    "decay, backwards": (decay, (3, -2), [2], ()),
    "Lotka-Volterra": (lotka_volterra, (0, 15), [10, 5], (1.5, 1, 3, 1)),
    "van der Pol": (van_der_pol, (0, 30), [2.0, 0.0], (5.0,)),
    "Lorenz": (lorenz, (0, 3), [1.0, 1.0, 1.0], (10.0, 28.0, 8 / 3)),
    "Kepler": (kepler, (0, 10), [1.0, 0.0, 0.0, 0.8], ()),
    "driven": (driven, (1, 20), [0.1, 0.0], (1.3,)),
    "switched": (switched, (0, 5), [0.0, 0.0], ()),
    "friction": (friction, (0, 12), [1.0, 0.0], ()),
    "network": (network, (0, 4), np.linspace(1, 2, 10), ()),
    "matrix": (matrix, (0, 3), [1.0, 2.0, 3.0], ()),
    "arrays": (arrays, (0, 3), np.ones(6, np.float32), ()),
    "constants": (constants, (0, 5), [1.0, 2.0, 3.0], ()),
}
STIFF = {
    "van der Pol": (van_der_pol, (0, 2000), [2.0, 0.0], (1000.0,)),
    "Robertson": (robertson, (0, 1e4), [1.0, 0.0, 0.0], ()),
}


def assert_same(got, want, *, driver="pyop"):
    """Every number of SciPy's result, to the bit, and where it comes from."""
    assert got.driver == driver, got.reason
    for name in ("status", "success", "message", "nfev", "njev", "nlu"):
        assert got[name] == want[name], name
    for name in ("t", "y"):
        assert np.asarray(got[name]).dtype == np.asarray(want[name]).dtype
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)
    assert (got.sol is None) == (want.sol is None)
    for name in ("t_events", "y_events"):
        assert (got[name] is None) == (want[name] is None)
        for one, other in zip(got[name] or [], want[name] or [], strict=True):
            np.testing.assert_array_equal(one, other)


def both(fun, *args, **kwargs):
    return solve_ivp(fun, *args, **kwargs), integrate.solve_ivp(fun, *args, **kwargs)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_steps_and_states_are_those_of_scipy(name, method):
    fun, span, y0, args = PROBLEMS[name]
    for rtol, atol in ((1e-3, 1e-6), (1e-7, 1e-9)):
        assert_same(*both(fun, span, y0, method, args=args, rtol=rtol, atol=atol))


@pytest.mark.parametrize("method", IMPLICIT)
@pytest.mark.parametrize("name", STIFF)
def test_stiff_systems_with_their_jacobians(name, method):
    f, span, y0, args = STIFF[name]
    fun = rhs(f)
    assert_same(*both(f, span, y0, method, args=args, rtol=1e-5))
    want = integrate.solve_ivp(fun, span, y0, method, jac=fun.jac, args=args, rtol=1e-5)
    for jac in (True, fun.jac):
        got = solve_ivp(fun, span, y0, method, jac=jac, args=args, rtol=1e-5)
        assert_same(got, want)
        assert got.native
    assert_same(solve_ivp(f, span, y0, method, jac=True, args=args, rtol=1e-5), want)


@pytest.mark.parametrize("method", IMPLICIT)
def test_jacobians_of_the_user(method):
    def by_lists(t, y, mu):
        return [[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]]

    def by_arrays(t, y, mu):
        return np.array([[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]])

    for jac in (by_lists, by_arrays, [[0, 1], [-1, -1]]):
        assert_same(*both(van_der_pol, (0, 20), [2.0, 0.0], method, args=(5.0,), jac=jac))
    sparse = pytest.importorskip("scipy.sparse").csc_matrix([[0.0, 1.0], [-1.0, -1.0]])
    assert_same(*both(van_der_pol, (0, 2), [2.0, 0.0], method, args=(5.0,), jac=sparse), driver="scipy")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("span", [(0, 3), (3, 0)])
def test_times_that_are_asked_for_and_continuous_solutions(method, span):
    fun, _, y0, args = PROBLEMS["Kepler"]
    times = np.linspace(*span, 50)
    for more in ({"t_eval": times}, {"t_eval": times, "dense_output": True}, {"dense_output": True}):
        got, want = both(fun, span, y0, method, args=args, **more)
        assert_same(got, want)
        if got.sol:
            sought = np.linspace(-0.5, 3.5, 77)
            np.testing.assert_array_equal(got.sol(sought), want.sol(sought))
            np.testing.assert_array_equal(got.sol(1.25), want.sol(1.25))
            np.testing.assert_array_equal(got.sol(times), want.sol(times))
            again = pickle.loads(pickle.dumps(got.sol))
            np.testing.assert_array_equal(again(sought), want.sol(sought))
    for few in ([0, 1, 3][:: 1 if span[0] == 0 else -1], [2], []):
        assert_same(*both(fun, span, y0, method, args=args, t_eval=few))


def hits(t, y, *args):
    return y[0]


def turns(t, y, *args):
    return y[1]


def third(t, y, *args):
    return y[0] - 0.3


hits.direction = -1
third.terminal = 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("more", [{}, {"dense_output": True}, {"t_eval": np.linspace(0, 30, 200)}])
def test_events(method, more):
    fun, _, y0, args = PROBLEMS["van der Pol"]
    assert_same(*both(fun, (0, 30), y0, method, args=args, events=[hits, turns], **more))
    assert_same(*both(fun, (0, 30), y0, method, args=args, events=(third, hits), **more))
    assert_same(*both(fun, (0, 30), y0, method, args=args, events=third, **more))
    assert_same(*both(kepler, (10, 0), [1.0, 0.0, 0.0, 0.8], method, events=hits))
    assert_same(*both(fun, (0, 5), y0, method, args=args, events=[]))


def test_an_event_that_ends_an_integration_without_an_end():
    def falls(t, y):
        return [y[1], -9.81]

    def ground(t, y):
        return y[0]

    ground.terminal, ground.direction = True, -1
    got, want = both(falls, (0, np.inf), [0.0, 10.0], events=ground, max_step=0.5)
    assert_same(got, want)
    assert got.status == 1
    assert got.t[-1] == pytest.approx(2 * 10 / 9.81)


@pytest.mark.parametrize("method", METHODS)
def test_options_of_steps_and_tolerances(method):
    fun, span, y0, args = PROBLEMS["Lotka-Volterra"]
    many = [{"atol": [1e-3, 1e-9]}, {"max_step": 0.05}, {"first_step": 0.2}, {"first_step": 1e-9, "max_step": 1}]
    if method in EXPLICIT:
        many.append({"rtol": np.array([1e-2, 1e-6])})
    for more in many:
        assert_same(*both(fun, span, y0, method, args=args, **more))


@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.floats(-2, 2), min_size=n * n + n, max_size=n * n + n)),
    st.sampled_from(METHODS),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_linear_systems_are_their_exponential(numbers, method, backwards):
    n = next(k for k in range(1, 7) if k * k + k == len(numbers))
    matrix, y0 = np.array(numbers[: n * n]).reshape(n, n), np.array(numbers[n * n :])

    def linear(t, y):
        return [sum(matrix[i, j] * y[j] for j in range(n)) for i in range(n)]

    end = -0.7 if backwards else 0.7
    loose = method == "RK23"
    got, want = both(linear, (0, end), y0, method, rtol=1e-6 if loose else 1e-9, atol=1e-9 if loose else 1e-12)
    assert_same(got, want)
    exact = linalg.expm(matrix * end) @ y0
    np.testing.assert_allclose(got.y[:, -1], exact, rtol=0, atol=1e-4 * (1 + np.abs(exact).max()))


# --- what changes between calls


def test_what_a_function_reads_may_change_between_calls():
    rate = 1.0

    def fades(t, y):
        return [-rate * y[0]]

    fun = rhs(fades)
    first = solve_ivp(fun, (0, 1), [1.0], rtol=1e-8)
    rate = 2.0
    assert_same(*both(fun, (0, 1), [1.0], rtol=1e-8))
    assert first.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-5)
    assert solve_ivp(fun, (0, 1), [1.0], rtol=1e-8).y[0, -1] == pytest.approx(np.exp(-2.0), rel=1e-5)


def test_arguments_of_all_kinds_and_their_changes():
    def general(t, y, powers, p, kind):
        for _ in range(powers):
            y = y * p["rate"] if kind == "all" else [y[0] * p["rate"], y[1]]
        return [y[0], -y[1]]

    def by_array(t, y, a, k):
        return [a[0] * y[1], a[1] * y[0] ** k]

    fun = rhs(general)
    for powers, rate, kind in ((1, 2.0, "all"), (2, 0.5, "all"), (1, 2.0, "first"), (2, 0.25, "first")):
        assert_same(*both(fun, (0, 1), [1.0, 2.0], args=(powers, {"rate": rate}, kind)))
    other = rhs(by_array)
    a = np.array([1.0, 2.0])
    for k in (1, 2, 2.0, np.float32(1.5), np.int16(2), True):
        a[0] += 0.5
        assert_same(*both(other, (0, 1), [1.0, 2.0], args=(a, k)))


def test_methods_compiled_functions_and_kept_plans():
    class Model:
        rate = 1.0

        def __call__(self, t, y):
            return [-self.rate * y[0], y[1]]

        def derivative(self, t, y):
            return [-self.rate * y[0], -y[1]]

    model = Model()
    for fun in (model.derivative, rhs(model.derivative), model, pyop.compile(lorenz), rhs(lorenz)):
        args = (10.0, 28.0, 2.0) if fun not in (model, model.derivative) and "lorenz" in repr(fun) else ()
        y0 = [1.0, 2.0, 3.0] if args else [1.0, 2.0]
        assert_same(*both(fun, (0, 1), y0, args=args))
    kept = rhs(model.derivative)
    before = solve_ivp(kept, (0, 1), [1.0, 2.0])
    model.rate = 3.0
    assert_same(*both(kept, (0, 1), [1.0, 2.0]))
    assert solve_ivp(kept, (0, 1), [1.0, 2.0]).y[0, -1] < before.y[0, -1]
    copied = pickle.loads(pickle.dumps(rhs(lorenz)))
    assert_same(*both(copied, (0, 1), [1.0, 2.0, 3.0], args=(10.0, 28.0, 2.0)))


def test_results_are_the_callers():
    got = solve_ivp(decay, (0, 1), [1.0], dense_output=True, t_eval=[0.5, 1.0])
    got.t[0], got.y[0, 0] = 7.0, 7.0
    assert got.t[0] == got.y[0, 0] == 7.0
    assert type(got) is type(integrate.solve_ivp(decay, (0, 1), [1.0]))
