"""Whether a Value of no dimension stands for a scalar or an array: as NumPy has it, for every function with a rule."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy_cases import cases

import pyop
from pyop.graph import forms

ZERO_D, ONE, VECTOR = np.array(2.0), np.float64(2.0), np.arange(1.0, 4.0)
COMPLEX = np.array(1 + 2j)
EXTRA = [
    *[(f, (x,), {}) for x in (ZERO_D, ONE, COMPLEX) for f in (np.squeeze, np.real, np.imag, np.transpose)],
    (np.squeeze, (np.ones(1),), {}),
    *[(np.reshape, (x, ()), {}) for x in (ZERO_D, ONE, np.ones(1))],
    *[(np.expand_dims, (ZERO_D, ()), {}), (np.moveaxis, (ZERO_D, (), ()), {}), (np.broadcast_to, (ONE, ()), {})],
    *[(np.flip, (ZERO_D,), {}), (np.einsum, ("i,i->", VECTOR, VECTOR), {}), (np.take, (VECTOR, 0), {})],
    *[(np.resize, (VECTOR, ()), {}), (np.add.outer, (ZERO_D, ZERO_D), {}), (np.unstack, (VECTOR,), {})],
    *[(np.cov, (VECTOR,), {}), (np.corrcoef, (VECTOR,), {}), (np.tensordot, (VECTOR, VECTOR, 1), {})],
    *[(operator.getitem, (VECTOR, key), {}) for key in (0, (0, ...), np.array(1), (np.array(1), ...))],
    *[(operator.getitem, (ZERO_D, key), {}) for key in ((), ...)],
    *[(np.ndarray.astype, (x, np.float32), {}) for x in (ZERO_D, ONE)],
]


def variants(args: tuple[Any, ...]) -> Iterator[list[Any]]:
    """The arguments with their arrays as they are, of one element, of no dimension, and scalars."""

    def change(x: Any, how: str) -> Any:
        if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
            return type(x)(change(item, how) for item in x)
        if not isinstance(x, np.ndarray) or x.size == 0:
            return x
        first = x.ravel()[0]
        return {"whole": x, "one": x.ravel()[:1].copy(), "none": np.array(first), "scalar": first}[how]

    for how in ("whole", "one", "none", "scalar"):
        yield [change(arg, how) for arg in args]


def leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (tuple, list)) else [x]


def as_values(graph: pyop.Graph, x: Any) -> Any:
    if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
        return type(x)(as_values(graph, item) for item in x)
    if isinstance(x, (np.ndarray, np.generic)):
        return graph._add_input(pyop.Spec(x.dtype, x.shape), "x", isinstance(x, np.generic))
    return x


def checked(func: Any, args: Any, kwargs: Any) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            try:
                found = args[0].astype(args[1]) if func is np.ndarray.astype else func(*args, **kwargs)
            except Exception:
                return 0
    if not any(isinstance(x, np.generic) or getattr(x, "shape", None) == () for x in leaves(found)):
        return 0
    given = as_values(pyop.Graph(), args)
    try:
        values = given[0].astype(args[1]) if func is np.ndarray.astype else func(*given, **kwargs)
    except Exception:
        return 0  # what has to be concrete is not
    count = 0
    for real, value in zip(leaves(found), leaves(values), strict=True):
        if not isinstance(value, pyop.Value) or value.shape != () or value._is_scalar is None:
            continue
        assert value._is_scalar == (not isinstance(real, np.ndarray)), f"{func} of {args!r:.200}"
        count += 1
    return count


def test_every_function_with_a_rule_says_what_numpy_has() -> None:
    assert sum(checked(case.func, args, case.kwargs) for case in cases for args in variants(case.args)) > 300


@pytest.mark.parametrize(("func", "args", "kwargs"), EXTRA)
def test_named(func: Any, args: Any, kwargs: Any) -> None:
    assert checked(func, args, kwargs) >= 1


def test_inputs_and_methods() -> None:
    seen: list[Any] = []

    @pyop.compile
    def f(array: Any, scalar: Any) -> Any:
        values = (array, scalar, scalar.copy(), array.copy(), scalar.T, array + 1, scalar[...], array[()])
        seen.extend(x._is_scalar for x in values)
        seen.append(forms.is_scalar(np.einsum, ("i,i->", array, array), {"optimize": True}))
        return array + scalar

    f(np.array(1.0), np.float64(2.0))
    assert seen == [False, True, True, False, True, True, False, True, None]


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("func", [np.nanmax, np.nanmin])
def test_the_largest_of_one_complex_number(func: Any) -> None:
    z = np.array([complex(np.nan, 1), 2 + 1j])
    assert np.array_equal(pyop.compile(func)(z), func(z))
    assert np.array_equal(pyop.compile(lambda z: func(z[0]))(z.real), func(z.real[0]), equal_nan=True)
    with pytest.warns(pyop.RetraceWarning, match=r"of one complex number.*write np\.where"):
        got = pyop.compile(lambda z: func(z[0]))(z)
    assert np.array_equal(got, func(z[0]), equal_nan=True)
