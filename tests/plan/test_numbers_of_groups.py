"""Numbers among the operations of a group: equal ones are kept once, no two that differ in a bit, a dtype or a kind."""

import operator
import random
import struct

import numpy as np
import pytest
from native_checks import assert_same, observed

import pyop

NUMBERS = [
    *(0.0, -0.0, 0.5, -0.5, 1.0, 2.0, 1e-310, 1e300, float("inf"), -float("inf"), float("nan")),
    *(0, 1, 2, -1, 127, True, False, 0.5 + 0j, -0.0 + 1j),
    *(np.float64(0.5), np.float32(0.5), np.float32(-0.0), np.int8(2), np.uint8(2), np.int64(2), np.bool_(True)),
    *(struct.unpack("d", struct.pack("Q", bits))[0] for bits in (0x7FF8000000000001, 0xFFF8000000000000)),
]
DTYPES = ["float64", "float32", "float16", "longdouble", "complex64", "complex128", "int8", "int64", "uint8", "bool"]
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, np.maximum, np.less, np.copysign, np.hypot]


def fresh(number):
    """An equal number that is another object."""
    return struct.unpack("d", struct.pack("d", number))[0] if type(number) is float else number


def expression(seed):
    """Some twenty operations on arrays and on few numbers, so that most are met again."""
    rng = random.Random(seed)
    few = rng.sample(NUMBERS, 4)
    steps = []
    for _ in range(20):
        number = fresh(rng.choice(few)) if rng.random() < 0.5 else rng.choice(few)
        steps.append((rng.choice(OPERATORS), number if rng.random() < 0.7 else None, rng.random() < 0.5))

    def f(x, y):
        values = [x, y]
        choose = random.Random(seed)
        for do, number, first in steps:
            value, other = choose.choice(values), choose.choice(values)
            if number is not None:
                other = number
            values.append(do(other, value) if first else do(value, other))
        return tuple(values[2:])

    return f, np.dtype(rng.choice(DTYPES)), rng.choice([3, 700])


def plain(x):
    """Its bits, but for what operations on NaN leave open, which of two they return, and the padding of longdouble."""
    x = np.array(x)
    if x.dtype.kind in "fc":
        x = np.where(np.isnan(x), np.nan, x)
    if x.dtype.char in "gG":
        return x.dtype, x.shape, repr(x.tolist()), np.signbit(x.real).tobytes()
    return x.dtype, x.shape, x.tobytes()


def assert_equal(got, want):
    (a, said), (b, should_say) = got, want
    assert [plain(x) for x in a] == [plain(x) for x in b]
    assert set(said) == set(should_say)


@pytest.mark.parametrize("first", range(0, 400, 20))
def test_random_expressions_of_few_numbers(first):
    ran = 0
    for seed in range(first, first + 20):
        f, dtype, n = expression(seed)
        arrays = [(np.arange(-2, n - 2) % 5 / 2).astype(dtype), (np.arange(n) % 3).astype(dtype)]
        try:
            with np.errstate(all="ignore"):
                f(*arrays)
        except (TypeError, OverflowError):  # no such ufunc, or a number that is none of the dtype
            continue
        graph = pyop.trace(f, *[pyop.Spec.of(a) for a in arrays])
        for plan in (graph.compile(), graph.compile(disable=["fuse"])):
            with np.errstate(all="ignore"):
                assert_equal(observed(plan, *arrays), observed(f, *arrays))
            assert_equal(observed(plan, *arrays), observed(f, *arrays))  # with its warnings
        ran += 1
    assert ran > 2


def test_zeros_of_both_signs_and_ones_of_all_kinds():
    x = np.array([-0.0, 0.0, -1.0, np.nan])

    def f(x):
        return (
            x * 0.0,
            x * -0.0,
            x + 0.0,
            x + -0.0,
            x * 1,
            x * 1.0,
            x + True,
            x * np.float64(1.0),
            x / fresh(0.5),
            x / 0.5,
        )

    with np.errstate(all="ignore"):
        assert_same(observed(pyop.trace(f, "float64[4]").compile(), x), observed(f, x), merged=True)


def test_a_long_group_tells_what_each_node_runs_as():
    def f(x, y):
        for _ in range(100):
            x = x * 0.5 + y
        return x, np.sin(y) - y

    plan = pyop.trace(f, "float64[5]", "float64[5]").compile()
    text = str(plan.explain())
    assert text.count("in the kernel of a node that reads it") > 80, text
    assert text.count("kernel add+multiply\n") > 80, text
    assert "exact kernel sin\n" in text or "NumPy's loop sin\n" in text, text
    x, y = np.arange(5.0), np.linspace(-1, 1, 5)
    assert [r.tobytes() for r in plan(x, y)] == [np.asarray(r).tobytes() for r in f(x, y)]


def test_sums_and_conversions_are_told():
    def f(x, i):
        return ((x + i + 2.0 * x) * 0.5 - x).sum(axis=1), x + x * x + x + 3.0

    plan = pyop.trace(f, "float64[4,5]", "int32[4,5]").compile()
    assert "cast" in str(pyop.trace(lambda x: x.astype("float32") * 2, "float64[4]").compile().explain())
    x, i = np.arange(20.0).reshape(4, 5) / 3, np.arange(20, dtype="int32").reshape(4, 5)
    assert [r.tobytes() for r in plan(x, i)] == [r.tobytes() for r in f(x, i)]
    text = str(plan.explain())
    assert "add of each block, NumPy's loop" in text, text
    assert "kernel add+add+add" in text or "kernel multiply+add" in text, text
