"""A function that catches a refusal must not go another way than with arrays."""

import numpy as np
import pytest

import pyop
from pyop import _core
from pyop.refusals import call_watched, refusal


def test_a_caught_refusal_ends_the_trace():
    def f(x):
        try:
            scale = x.tolist()[0]
        except TypeError:
            scale = 1.0
        return x * scale

    with pytest.raises(TypeError, match="no numbers until its graph runs") as caught:
        pyop.trace(f, "float64[2]")
    assert any("caught this error and went on" in note for note in caught.value.__notes__)
    with pytest.warns(pyop.RetraceWarning, match="no numbers until its graph runs"):
        np.testing.assert_array_equal(pyop.compile(f)(np.array([2.0, 3.0])), [4.0, 6.0])


def test_an_error_that_took_the_place_of_a_refusal_is_the_users():
    def f(x):
        try:
            x.tolist()
        except TypeError:
            raise KeyError("mine") from None

    with pytest.raises(KeyError, match="mine"):
        pyop.trace(f, "float64[2]")
    with pytest.warns(pyop.RetraceWarning, match="tolist"):
        assert pyop.compile(f)(np.ones(2)) is None  # on arrays nothing is refused


def test_the_first_refusal_is_raised_and_notes_do_not_outlive_their_watch():
    def inner():
        for word in ("first", "second"):
            try:
                raise refusal(word)
            except TypeError:
                pass

    with pytest.raises(TypeError, match="first"):
        call_watched(inner, (), {})
    assert call_watched(lambda: 1, (), {}) == 1


def test_a_refusal_is_noted_in_the_watch_around_too():
    def outer():
        try:
            call_watched(inner, (), {})
        except TypeError:
            return "went on"

    def inner():
        try:
            raise refusal("word")
        except TypeError:
            pass

    with pytest.raises(TypeError, match="word"):
        call_watched(outer, (), {})


def test_without_a_watch_nothing_is_kept():
    error = TypeError("x")
    _core.note_refusal(error)
    assert call_watched(lambda: 2, (), {}) == 2


def test_a_refusal_inside_of_a_transformation_inside_of_another():
    def f(x):
        try:
            return np.sum(pyop.grad(lambda b: np.sum(b) * x[0].item())(np.ones(3)))
        except TypeError:
            return np.sum(x)

    assert f(np.ones(3)) == 3
    with pytest.raises(TypeError, match="stop_gradient"):
        pyop.grad(f)(np.ones(3))
