"""The parameters of plain functions are read from their code: as from their signatures."""

import inspect

import numpy as np
import pytest

from pyop.declare.parameters import Parameters


class _Class:
    def method(self, x, *, k=1): ...

    def nothing_else(self): ...

    def with_default(self=None, x=1): ...

    @staticmethod
    def static(x, y=2): ...


FUNCTIONS = [
    lambda: None,
    lambda x: x,
    lambda x, y=1, z=2: x,
    lambda x, /, y, z=3: x,
    lambda *args: None,
    lambda x, *args, out, a, b=1, **kwargs: x,
    lambda x, *, out=None: x,
    lambda *, a=1, b: None,
    lambda **kwargs: None,
    lambda self, x: x,
    _Class.method,
    _Class.nothing_else,
    _Class.with_default,
    _Class.static,
]


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_from_the_code_as_from_the_signature(fn):
    found = Parameters.of(fn)
    fn.marked = True  # a function that says something of itself is asked for its signature
    try:
        assert Parameters.of(fn) == found
    finally:
        del fn.marked


@pytest.mark.parametrize("ufunc", [np.sin, np.add, np.divmod, np.matmul, np.frexp])
def test_ufuncs_take_the_same_whether_they_tell_a_signature_or_not(ufunc):
    try:
        inspect.signature(ufunc)
    except ValueError:
        pytest.skip("the ufuncs of this NumPy have no signature")
    assert Parameters.of(ufunc) == Parameters._of_ufunc(ufunc)
