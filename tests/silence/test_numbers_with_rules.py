"""Numbers whose class has rules of its own: arrays of no dimension, masked or with units, and subclasses of float."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyop


class Quantity(np.ndarray):
    def __new__(cls, x: Any) -> Any:
        return np.asarray(x, float).view(cls)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        plain = [x.view(np.ndarray) if isinstance(x, Quantity) else x for x in args]
        return Quantity(getattr(ufunc, method)(*plain, **kwargs) + 1000)


class Meters(float):
    def __mul__(self, other: Any) -> Any:
        return Meters(float(self) * other * 1000)

    def __pow__(self, other: Any) -> Any:
        return Meters(float(self) ** other * 1000)


class Halves(np.float64):
    def __truediv__(self, other: Any) -> Any:
        return Halves(float(self) / other / 2)


MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
NUMBERS = [MASKED[1], np.ma.masked, np.ma.array(3.0), Quantity(2.0), Meters(2.0), Halves(2.0)]
FUNCTIONS = [lambda v: v * 2, lambda v: np.exp(v) + 1, lambda v: v / 3, lambda v: v**2]


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda x: type(x).__name__)
def test_compiled_functions_leave_them_their_rules(number: Any, f: Any) -> None:
    want, got = f(number), pyop.compile(f)(number)
    assert type(want) is type(got)
    assert repr(want) == repr(got)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda x: type(x).__name__)
def test_derivatives_refuse_them(number: Any) -> None:
    f = FUNCTIONS[0]
    for derivative in (
        lambda: pyop.value_and_grad(f)(number),
        lambda: pyop.jvp(f, (number,), (1.0,)),
        lambda: pyop.vjp(f, number),
        lambda: pyop.compile(pyop.grad(f))(number),
    ):
        with pytest.raises(TypeError, match=r"masked|rules of its own"):
            derivative()


def test_they_are_no_constants_beside_values() -> None:
    for number in NUMBERS:
        with pytest.raises(TypeError, match=r"masked|rules of its own"):
            pyop.trace(lambda v: v * number, "float64[3]")  # noqa: B023


def test_a_subclass_without_arithmetic_is_a_number() -> None:
    class Named(float):
        name = "half"

    for number in (Named(0.5), np.float64(0.5), MASKED[0]):
        assert pyop.grad(lambda v: v * v)(number) == 2 * number
