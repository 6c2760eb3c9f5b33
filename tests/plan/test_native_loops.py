"""Plans of NumPy expressions against NumPy itself: bit for bit, with its dtypes and its warnings."""

import functools
import itertools
import operator

import native_checks
import numpy as np
import pytest
from native_checks import assert_same, observed

import pyop

REAL = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "bool"]
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.maximum, np.minimum,
    np.fmax, np.hypot, np.arctan2, np.less, np.equal, np.logical_and, np.copysign, np.bitwise_and, np.left_shift,
]  # fmt: skip
UNARY = [np.negative, np.abs, np.sqrt, np.exp, np.log, np.sin, np.floor, np.sign, np.square, np.reciprocal, np.isnan]


def values(dtype, n, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(n) < 0.5
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 7, n).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 65504.0], dtype=dtype)
    return np.concatenate([special, rng.normal(0, 3, n).astype(dtype)])[:n] if n else special[:0]


check = functools.partial(native_checks.check, alike=True, merged=True)


@pytest.mark.parametrize("dtype", REAL)
def test_every_dtype_and_ufunc(dtype):
    a, b = values(dtype, 12), values(dtype, 12, seed=1)
    for ufunc in UNARY:
        check(lambda x, f=ufunc: f(x), a)
    for ufunc in BINARY:
        check(lambda x, y, f=ufunc: f(x, y), a, b)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(["float32", "int64", "uint8", "bool"], REAL)))
def test_mixed_dtypes(first, second):
    a, b = values(first, 9), values(second, 9, seed=2)
    check(lambda x, y: x + y, a, b)
    check(lambda x, y: (x * y) - x, a, b)


def test_python_numbers_stay_weak():
    for dtype in REAL:
        a = values(dtype, 10)
        for number in (2, 2.0, -1, 300, 2.5, 1j, True):
            for f in (operator.add, operator.mul, operator.lt, operator.truediv, np.maximum):
                check(lambda x, f=f, k=number: f(x, k), a)
                check(lambda x, f=f, k=number: f(k, x), a)


def test_powers_are_those_of_the_operator():
    for dtype in ("float32", "float64", "int64", "complex128"):
        a = values("float64", 50).astype(dtype) if dtype != "int64" else values(dtype, 50)
        for exponent in (0, 1, 2, 3, -1, 0.5, 2.0, -1.0, 1.5, 0.0):
            check(lambda x, e=exponent: x**e, a)
    check(lambda x, y: x**y, values("float64", 20), values("float64", 20, seed=3))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1023, 1024, 1025, 5000, 40_000])
def test_sizes_around_the_block(n):
    a, b = values("float64", n), values("float64", n, seed=4)
    plan = check(lambda x, y: [x * y + x - y, np.sqrt(x * x) * 2.0, np.modf(y)[0]], a, b)
    assert plan.report()["native"] >= 5


def test_one_group_for_one_expression():
    g = pyop.trace(lambda a, b, c, d: a * b + c * d - a, *["float64[n]"] * 4)
    report = g.compile().report()
    assert (report["native"], report["groups"], report["instructions"]) == (4, 1, 1)
    assert g.compile(optimize=False).report()["native"] == 0


def test_a_python_node_between_splits_nothing_wrongly():
    calls = []

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def seen(x):
        calls.append(x.copy())
        return x + 1.0

    def f(x):
        y = x * 2.0
        z = seen(y)
        return y + z, z * y - x

    x = np.arange(5.0)
    got = pyop.trace(f, "float64[n]").compile()(x)
    want = x * 2 + (x * 2 + 1), (x * 2 + 1) * (x * 2) - x
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    assert np.array_equal(calls[0], x * 2)


def test_a_reader_between_the_members_of_a_group_comes_in_time():
    def f(x):
        y = x * 2.0
        total = np.cumsum(y)  # not a loop: reads y before the loops that follow
        return total, y + 1.0, np.sin(y) * total

    x = np.arange(6.0)
    assert_same(observed(pyop.trace(f, "float64[n]").compile(), x), observed(f, x))


LAYOUTS = {
    "reversed": lambda a: a[::-1],
    "strided": lambda a: np.repeat(a, 2)[::2],
    "zero stride": lambda a: np.broadcast_to(a[:1], a.shape),
    "unaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(a.dtype),
    "read-only": lambda a: (a := a.copy(), a.setflags(write=False))[0],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "subclass": lambda a: np.ma.masked_array(a),
}


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_layouts(layout):
    a = np.arange(1.0, 9.0)
    x = LAYOUTS[layout](a)
    plan = pyop.trace(lambda x, y: np.exp(x) * y + x, "float64[n]", "float64[n]").compile()
    plain = np.asarray(x).astype("float64")
    assert np.array_equal(plan(x, a), np.exp(plain) * a + plain)


def test_broadcasting_and_orders():
    rng = np.random.default_rng(0)
    a, row, column, one = rng.random((4, 5)), rng.random(5), rng.random((4, 1)), rng.random(())
    for x, y in itertools.product([a, a.T.copy().T, row, column, one], repeat=2):
        check(lambda p, q: p * q + p, x, y, named=False)


def test_results_that_read_only_single_numbers():
    # Symbolic sizes agree by name, so a single number under a named size is broadcast by NumPy's rules.
    plan = pyop.trace(lambda x, y: (x + 1.0, (x + 1.0) * y), "float64[n]", "float64[m]").compile()
    a, b = plan(np.ones(1), np.arange(3.0))
    assert a.shape == (1,)
    assert b.shape == (3,)


def test_errstate_is_numpys():
    x = np.array([1.0, 0.0, -1.0])
    plan = pyop.trace(lambda x: np.log(x) / x, "float64[n]").compile()
    assert_same(observed(plan, x), observed(lambda x: np.log(x) / x, x))
    with np.errstate(all="ignore"):
        assert_same(observed(plan, x), observed(lambda x: np.log(x) / x, x))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="in log"):
        plan(x)
    seen = []
    with np.errstate(all="call", call=lambda kind, flag: seen.append(kind)):
        plan(x)
    assert seen == ["divide by zero", "invalid value"]


def test_flags_from_before_do_not_matter():
    plan = pyop.trace(lambda x: x + 1.0, "float64[n]").compile()
    with np.errstate(all="ignore"):
        np.ones(2) / np.zeros(2)
    with np.errstate(all="raise"):
        plan(np.ones(2))


def test_large_results_release_the_gil_and_agree():
    a = np.random.default_rng(1).random(300_000)
    plan = pyop.trace(lambda x: np.sin(x) * x + np.exp(x), "float64[n]").compile()
    assert np.array_equal(plan(a), np.sin(a) * a + np.exp(a))


@pytest.mark.parametrize("exponent", [0.5, 2.0, -1.0])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_single_elements_of_another_dtype_are_repeated_as_numpy_repeats_them(exponent, shape):
    """np.power looks whether its exponent moves: a cast block of equal numbers gave other last bits."""
    x, y = np.random.default_rng(1).random(200) * 10, np.full(shape, exponent, np.float32)
    plan = pyop.trace(np.power, pyop.Spec.of(x), pyop.Spec.of(y)).compile()
    assert plan(x, y).tobytes() == np.power(x, y).tobytes()
    low = np.zeros(shape, np.float32)
    plan = pyop.trace(lambda x, low: np.clip(x, low, low), pyop.Spec.of(x), pyop.Spec.of(low)).compile()
    assert plan(-0.0 * x, low).tobytes() == np.clip(-0.0 * x, low, low).tobytes()


def test_truths_squared_are_small_integers():
    x = np.array([True, False])
    assert pyop.trace(lambda x: x**2, pyop.Spec.of(x)).compile()(x).dtype == (x**2).dtype == np.int8
