"""What pyop's own functions return may be their argument, or a view of it: a write to the one is seen by the other as
with arrays, or refused."""

import warnings

import numpy as np
import pytest

import pyop

VECTOR = np.arange(1.0, 7.0)


class Itself(pyop.Function):
    @staticmethod
    def forward(ctx, a):
        return a[:]

    @staticmethod
    def backward(ctx, ct):
        return ct


inner = pyop.compile(lambda a: (a[1:], a * 1.0))


def pulled(a, ct):
    return pyop.vjp(lambda a: a, a)[1](ct)[0]


THROUGH = {
    "stop_gradient": pyop.stop_gradient,
    "stop_gradient of a tree": lambda y: pyop.stop_gradient([y])[0],
    "a Function": Itself.apply,
    "a compiled function": lambda y: inner(y)[0],
    "a result of it": lambda y: inner(y)[1],
    "vjp": lambda y: pyop.vjp(lambda a: a, y)[0],
    "jvp": lambda y: pyop.jvp(lambda a: a, (y,), (y * 2.0,))[0],
    "a cotangent": lambda y: pulled(y * 2.0, y),
    "vmap": lambda y: pyop.vmap(lambda a: a)(y),
    "a jacobian": lambda y: pyop.jacobian(lambda a: a)(y),
}


@pytest.mark.parametrize("to_base", [True, False])
@pytest.mark.parametrize("name", THROUGH)
def test_what_pyops_own_functions_return(name, to_base):
    def f(x):
        y = x * 1.0
        z = THROUGH[name](y)
        written = y if to_base else z
        written[1] = 9.0
        return y, z

    want = f(VECTOR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pyop.RetraceWarning)  # the function itself may run
            got = pyop.compile(f)(VECTOR)
    except TypeError as refused:
        got = refused
    if isinstance(got, TypeError):
        assert "copy first" in str(got)
    else:
        for a, b in zip(got, want, strict=True):
            assert np.array_equal(a, b)
