"""Floating-point warnings of what a function computes of no argument: they come in every call, as without a plan."""

import warnings

import numpy as np
import pytest

import pyop

W = np.array([-1.0, 4.0])
FLAT = np.broadcast_to(-1.0, (2,))


def of_a_global(x):
    return x * np.sqrt(W)


def returned(x):
    return np.sqrt(W), x


def of_an_array_made_inside(x):
    buffer = np.zeros(2)
    buffer[0] = 1.0
    return x + np.log(buffer)


def of_a_scalar(x):
    return x * (np.float64(0) / 0)


def of_what_is_repeated(x):
    return x + np.sqrt(FLAT)


def in_a_reduction(x):
    return np.sum(np.array([np.inf, -np.inf])) + x


def of_an_argument_too(x):
    return np.log(x - x) + np.log(W - W)


def twice(x):
    y = np.sqrt(W)
    return y * x + np.sqrt(W)


def written(x):
    x *= np.sqrt(W)
    return x


HELD = [of_a_global, returned, of_an_array_made_inside, of_a_scalar, of_what_is_repeated, in_a_reduction]
HELD += [of_an_argument_too, twice, written]
STATES = [{}, {"all": "ignore"}, {"invalid": "raise"}, {"divide": "raise"}, {"all": "warn"}]


def said(f, state, action="always"):
    with warnings.catch_warnings(record=True) as told, np.errstate(**state):
        warnings.simplefilter(action)
        try:
            f(np.ones(2))
        except (FloatingPointError, RuntimeWarning) as error:
            return type(error), str(error)
    return sorted({(str(w.message), w.category, w.filename, w.lineno) for w in told})


@pytest.mark.parametrize("f", HELD)
def test_they_come_in_every_call_by_the_state_of_that_call(f):
    compiled = pyop.compile(f)
    for state in (*STATES, *STATES):
        want, got = said(f, state), said(compiled, state)
        if f is of_an_argument_too and isinstance(want, list):  # what is of arguments has the line of the call
            want, got = sorted({row[0] for row in want}), sorted({row[0] for row in got})
        assert got == want, state


def test_a_state_that_is_quiet_when_it_is_traced_says_nothing_of_later_calls():
    compiled = pyop.compile(of_a_global)
    assert said(compiled, {"all": "ignore"}) == []
    assert said(compiled, {}) == said(of_a_global, {}) != []


@pytest.mark.parametrize("action", ["default", "once", "error"])
def test_filters_of_warnings_hold(action):
    def make():
        space = {"np": np, "W": W, "__name__": "elsewhere"}
        exec("def f(x): return x * np.sqrt(W)", space)
        return space["f"]

    plain, compiled = make(), pyop.compile(make())
    for _ in range(3):
        assert said(compiled, {}, action) == said(plain, {}, action)


def test_a_handler_and_a_log_are_called():
    compiled = pyop.compile(of_a_global)
    for run in (of_a_global, compiled, compiled):
        called = []
        with np.errstate(all="call", call=lambda *what, to=called: to.append(what)):
            run(np.ones(2))
        assert called == [("invalid value", 8)]

        class Log:
            write = called.append

        with np.errstate(all="log", call=Log()):
            run(np.ones(2))
        assert called[1:] == ["Warning: invalid value encountered in sqrt\n"]


def test_a_function_that_reads_the_state_sees_the_callers():
    def f(x):
        return (x if np.geterr()["divide"] == "warn" else -x) * np.geterr()["over"].count("w")

    compiled = pyop.compile(f)
    for state in ({}, {"divide": "ignore"}, {"over": "ignore"}, {}):
        with np.errstate(**state):
            np.testing.assert_array_equal(compiled(np.ones(2)), f(np.ones(2)))


def test_arrays_that_repeat_an_element_leave_the_order_to_others():
    """Hold the order of results against NumPy, where a broadcast array leaves it to one in Fortran's order."""
    one = np.broadcast_to(1.5, (2, 3))

    def f(x):
        return np.broadcast_to(1.5, x.shape) * 2 + x, one + x, one * 2, np.broadcast_to(np.arange(3.0), (2, 3)) - x

    for order in "CF":
        x = np.ones((2, 3), order=order)
        for want, got in zip(f(x), pyop.compile(f)(x), strict=True):
            assert got.strides == want.strides
            assert got.flags.writeable
