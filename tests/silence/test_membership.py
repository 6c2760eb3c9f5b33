"""`item in x`: compiled, each call goes the way that the function goes."""

import warnings

import numpy as np
import pytest

import pyop


def answers(x):
    return 3 in x, 0 not in x, np.nan in x, x[0] in x, (x + 1 if 2.0 in x else x - 1)


def elements_seen(x):
    seen = []
    for v in x.ravel():
        if v not in seen:
            seen.append(v)
    return np.array(seen)


def which_are_there(x):
    return [k for k in range(5) if k in x], [k for k in range(5) if k in x[1:]]


def rows(x):
    return x[0] in x, [1, 2, 3] in x


FUNCTIONS = [answers, elements_seen, which_are_there, rows]


def outcome(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        try:
            return f(x)
        except ValueError as error:
            return str(error)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_as_numpy_answers(f):
    compiled = pyop.compile(f)
    rng = np.random.default_rng(7)
    for dtype in ("float64", "int32", "bool"):
        for shape in ((4,), (4,), (4,), (2, 3), (2, 3), (0,) if f is which_are_there else (1,)):
            x = rng.integers(0, 5, shape).astype(dtype)
            want, got = outcome(f, x), outcome(compiled, x)
            assert type(got) is type(want)
            if isinstance(want, str):
                assert got == want
            elif isinstance(want, np.ndarray):
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got, want)
            else:
                for a, b in zip(want, got, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_a_graph_has_no_numbers_to_look_at():
    with pytest.raises(TypeError, match=r"'in' needs numbers.*np\.any\(value == item\)"), pyop.Graph() as g:
        assert 1.0 in g.input("float64[3]")
