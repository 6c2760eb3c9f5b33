"""Nodes that call the same ufunc share what was found for the first of them: not where their operands differ."""

import numpy as np
import pytest

import pyop

DTYPES = ("f8", "f4", "f2", "i8", "i4", "u1", "?", "c16")
SHAPES = ((), (1,), (5,), (3, 1), (3, 5))
UFUNCS = (np.add, np.multiply, np.maximum, np.minimum, np.add, np.multiply)


def _program(rng):
    """Arguments, and steps: a ufunc of two earlier values, or of one and a number, in an order of chance."""
    given = [
        (rng.integers(0, 3, SHAPES[rng.integers(len(SHAPES))])).astype(DTYPES[rng.integers(len(DTYPES))])
        for _ in range(4)
    ]
    steps = []
    for k in range(12):
        a, b = rng.integers(0, len(given) + k, 2)
        number = (None, 2, 0.5, np.float32(3))[rng.integers(4)]
        steps.append((UFUNCS[rng.integers(len(UFUNCS))], int(a), int(b), number if rng.random() < 0.3 else None))
    return [np.asarray(x) for x in given], steps


def _run(steps, *values):
    values = list(values)
    for ufunc, a, b, number in steps:
        values.append(ufunc(values[a], values[b] if number is None else number))
    return tuple(values[-12:])


@pytest.mark.parametrize("seed", range(40))
def test_ufuncs_of_many_dtypes_and_shapes_in_one_graph_have_numpys_bits(seed):
    given, steps = _program(np.random.default_rng(seed))
    compiled = pyop.compile(lambda *values: _run(steps, *values))
    with np.errstate(all="ignore"):
        expected = _run(steps, *given)
        for _ in range(3):
            for found, one in zip(compiled(*given), expected, strict=True):
                assert type(found) is type(one)
                assert (found.dtype, found.shape) == (one.dtype, one.shape)
                assert found.tobytes() == one.tobytes()
