"""One trace for arguments that a function does not read, whatever scalars they are."""

import numpy as np
import pytest

import pyop

Y = np.arange(3.0)
SCALE = 2.0


def autonomous(t, y):
    return -2.0 * y


def scaled(t, y):
    return -SCALE * y


def shares(fn, a, b, y=Y):
    """Whether two values of the first argument have one plan; results are as NumPy's."""
    compiled = pyop.compile(fn)
    for t in (a, b):
        got, want = compiled(t, y), fn(t, y)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    return compiled.plan_for(a, y) is compiled.plan_for(b, y)


def test_a_float_and_a_float64_that_are_not_read_have_one_plan():
    assert shares(autonomous, 0.5, np.float64(0.5))
    assert shares(autonomous, 1, np.int64(1))
    assert not shares(autonomous, 0.5, np.float32(0.5))  # another dtype: an input of another spec
    assert not shares(autonomous, 0.5, 1)


def _in_a_closure(t, y):
    def scaled():
        return y * t

    return scaled()


def _by_locals(t, y):
    return y * locals()["t"]


def _by_text(t, y):
    return y * eval("t", None, {"t": vars()["t"]})


def _assigned(t, y):
    t *= 2
    return y * t


@pytest.mark.parametrize(
    "fn",
    [lambda t, y: y * t, lambda t, y: sum(y * k for k in (t,)), _in_a_closure, _by_locals, _by_text, _assigned],
)
def test_what_is_read_is_traced_for_itself(fn):
    y = np.arange(3, dtype=np.float32)  # times a Python float it is float32, times np.float64 it is float64
    assert not shares(fn, 0.5, np.float64(0.5), y)


def test_the_other_arguments_must_be_the_same():
    compiled = pyop.compile(autonomous)
    compiled(0.5, Y)
    assert compiled(np.float64(0.5), Y.astype(np.float32)).dtype == np.float32
    read_only = Y.view()
    read_only.flags.writeable = False
    compiled(0.5, Y)
    np.testing.assert_array_equal(compiled(np.float64(0.5), read_only), -2.0 * Y)


def test_what_has_changed_since_is_seen(monkeypatch):
    compiled = pyop.compile(scaled)
    compiled(0.5, Y)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    np.testing.assert_array_equal(compiled(np.float64(0.5), Y), -3.0 * Y)


def test_a_forgotten_plan_does_not_come_back():
    compiled = pyop.compile(autonomous)
    plan = compiled.plan_for(0.5, Y)
    compiled.clear_cache()
    assert compiled.plan_for(np.float64(0.5), Y) is not plan
