"""Numbers written in a function: what NumPy says of them in every call, a plan says in every call."""

import operator
import warnings

import numpy as np
import pytest

import pyop

LITERALS = [
    *(1e5, 1e300, -1e300, 1e-300, 1e-8, float("inf"), float("nan"), 0.1, True, 1e5j, 1e300j),
    *(300, -1, 2049, 16777217, 2**40, 2**63, 2**70, -(2**70), 2**1100),
]
OPERATORS = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt")},
    "eq": operator.eq,
    "and": operator.and_,
    "maximum": np.maximum,
    "where": lambda x, n: np.where(x > 0, x, n),
    "clip": lambda x, n: np.clip(x, n, None),
    "fused": lambda x, n: (x + x) * n - x,
}
ONE_SIDED = {"where", "clip", "fused"}


def outcome(f, x):
    """Bits, dtype and warnings, or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = np.asarray(f(x))
        except Exception as error:
            return type(error), str(error)
    return found.dtype, found.shape, found.tobytes(), {(w.category, str(w.message)) for w in caught}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i8", "u8", "?", "c8"])
def test_a_literal_is_converted_anew_in_every_call(dtype):
    refused = 0
    for shape in ((5,), ()):
        x = np.array([1, 0, 2, 1, 1])[: 5 if shape else 1].astype(dtype).reshape(shape)
        for name, operate in OPERATORS.items():
            if name == "fused" and not shape:
                continue  # between the operations NumPy has scalars, which word their warnings otherwise
            for literal in LITERALS:
                for swapped in (False,) if name in ONE_SIDED else (False, True):

                    def plain(x, n=literal, operate=operate, swapped=swapped):
                        return operate(n, x) if swapped else operate(x, n)

                    function = pyop.compile(lambda x, plain=plain: plain(x))
                    with np.errstate(all="ignore"):
                        try:
                            function(x)  # nothing is said while it is traced
                        except Exception:
                            refused += 1
                            with pytest.raises(Exception):  # noqa: B017 (whatever NumPy raises)
                                plain(x)
                            continue
                    for state in ("ignore", "warn", "raise"):
                        with np.errstate(all=state):
                            assert outcome(function, x) == outcome(plain, x), (name, literal, swapped, shape, state)
    assert refused or dtype == "c8"


def test_the_errstate_of_the_call_counts():
    f = pyop.compile(lambda x: x * 1e5)
    x = np.ones(3, np.float16)
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        f(x)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in cast"):
        f(x)
    with np.errstate(over="ignore"):
        assert np.isinf(f(x)).all()
    plan = pyop.trace(lambda x: x * 1e5, "float16[n]").compile()
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        plan(x)


def test_a_power_too_large_for_a_float_is_an_error_as_in_numpy():
    with pytest.raises(OverflowError):
        pyop.compile(lambda x: x ** (2**1100))(np.ones(3))
