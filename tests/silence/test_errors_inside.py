"""Functions in which floating-point errors are raised, and warnings recorded: they run themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyop


def raised(x):
    with np.errstate(divide="raise"):
        return 1.0 / x


def caught(x):
    try:
        with np.errstate(divide="raise"):
            return 1.0 / x
    except FloatingPointError:
        return x * 0.0


def recorded(x):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        y = 1.0 / x
    return y, float(len(told))


def outcome(f, x):
    try:
        return f(x)
    except FloatingPointError as error:
        return str(error)


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("f", [raised, caught, recorded])
def test_the_function_itself_runs(f, fallback):
    compiled = pyop.compile(f, fallback=fallback)
    with pytest.warns(pyop.RetraceWarning, match=rf"{f.__name__} .*acts while the function is traced") as told:
        found = [outcome(compiled, x) for x in (np.ones(3), np.zeros(3), np.ones(3))]
    assert len(told) == 1
    for a, b in zip(found, [outcome(f, x) for x in (np.ones(3), np.zeros(3), np.ones(3))], strict=True):
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("f", [raised, caught])
def test_derivatives_of_it_are_refused(f):
    with pytest.raises(TypeError, match="acts while the function is traced"):
        pyop.compile(pyop.grad(lambda x: np.sum(f(x))))(np.ones(3))


def quiet_part(x):
    y = x * 1.0
    with np.errstate(divide="ignore"):
        y[1:] = 1.0 / y[:-1]
    return np.log(x), y


def loud_in_quiet(x):
    with np.errstate(all="ignore"):
        y = np.log(x)
        with np.errstate(divide="warn"):
            return y + 1.0 / x


quieter = np.errstate


class Held:
    state = np.errstate

    def __init__(self):
        self.how = {"all": "ignore"}

    def inverse(self, x):
        with np.errstate(**self.how):
            return 1.0 / x


HELD = Held()


def by_another_name(x):
    with quieter(divide="ignore"):
        return 1.0 / x + np.log(x)


@np.errstate(divide="ignore", under="ignore")
def decorated(x):
    return 1.0 / x * 1e-300 * 1e-300


def by_an_attribute(x):
    with HELD.state(invalid="ignore"):
        y = np.sqrt(x)
    return y + 1.0 / x


def by_a_method(x):
    return HELD.inverse(x) + np.log(x)


def filtered(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = 1.0 / x * 1e-300 * 1e-300
    return y + np.log(x)


def underflow(x):
    with np.errstate(under="warn"):
        return x * 1e-300 * 1e-300


def decided(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.0 / x if x[0] > 0 else np.sqrt(x)


def in_a_loop(x):
    for i in range(1, len(x)):
        with np.errstate(divide="ignore"):
            x[i] = 1.0 / x[i - 1]
    return x


INSIDE = [quiet_part, loud_in_quiet, underflow, decided, in_a_loop]
INSIDE += [by_another_name, decorated, by_an_attribute, by_a_method, filtered]
STATES = [{}, {"all": "ignore"}, {"divide": "raise"}, {"under": "warn"}]


@pytest.mark.parametrize("f", INSIDE)
@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}])
def test_errors_are_ignored_where_the_function_says_so(f, options):
    """The warnings of NumPy, whatever the caller says; and what he says is as it was after the call."""

    def outcome(run, values, state):
        x = np.array(values)
        with warnings.catch_warnings(record=True) as told, np.errstate(**state):
            warnings.simplefilter("always")
            before = np.geterr()
            try:
                result = run(x)
            except FloatingPointError as error:
                result = str(error)
            assert np.geterr() == before
        return repr(result), x.tobytes(), [str(w.message) for w in told]

    for state in STATES:
        compiled = pyop.compile(f, **options)
        for values in ([1.0] * 9, [0.0, 1.0] * 5, [-1.0, 0.0, 2.0] * 3, [1.0, 0.0] * 5, [2.0] * 9, [0.0] * 9):
            want, got = outcome(f, values, state), outcome(compiled, values, state)
            assert got[1:] == want[1:], (state, values)
            if not want[0].startswith("'"):
                assert got[0] == want[0], (state, values)


def test_what_raises_no_error_is_a_plan():
    traced = []

    def f(x):
        traced.append(1)
        with np.errstate(divide="ignore"):
            return 1.0 / x

    compiled = pyop.compile(f)
    for k in range(1, 5):
        compiled(np.full(4, float(k)))
    before = len(traced)
    compiled(np.ones(4))
    assert len(traced) == before
    compiled(np.zeros(4))
    assert len(traced) == before + 1
