"""Compiled code as ops: every source, eager and in plans, and what must be refused."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyop

from .building import NO_COMPILER, library

pytestmark = pytest.mark.skipif(library() is None, reason=NO_COMPILER)

POINTERS = [ctypes.c_void_p] * 4
D = ctypes.c_double


def c_function(name, restype, *argtypes):
    """A function of its own, so that types set here are not another test's."""
    function = ctypes.CDLL(str(library()))[name]
    function.argtypes, function.restype = list(argtypes), restype
    return function


@pytest.fixture
def plus():
    return pyop.native_op(c_function("plus", D, D, D), "plus")


@pytest.fixture
def product():
    code = c_function("product", ctypes.c_int, *POINTERS)
    return pyop.native_op(code, "product", "float64[m,n], float64[n] -> float64[m]")


@pytest.fixture
def roots():
    return pyop.native_op(c_function("roots", ctypes.c_int, *POINTERS), "roots", "float64[*s] -> float64[*s]")


@pytest.mark.parametrize(("given", "taken"), [("no", ""), ("safe", "?bhilfd"), ("same_kind", "?bhilfdg")])
def test_other_dtypes_are_cast_as_far_as_declared(given, taken):
    f = pyop.native_op(c_function("plus", D, D, D), "plus", cast=given)
    compiled = pyop.compile(lambda x, y: f(x, y) * 2)
    y = np.array([0.5, 1.5, 2.5])
    for code in "?bhilfgFDO":
        x = np.array([1, 0, 1]).astype(code)
        if code in taken:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert f(x, y).tobytes() == (x.astype(float) + y).tobytes()
                assert compiled(x, y).tobytes() == ((x.astype(float) + y) * 2).tobytes()
        elif code != "d":
            with pytest.raises(pyop.InputError, match="cast"):
                f(x, y)


def test_a_wrong_rule_of_casting_is_named():
    with pytest.raises(ValueError, match='cast= is "no", "safe" or "same_kind"'):
        pyop.native_op(c_function("plus", D, D, D), "plus", cast="unsafe")


def layouts(seed=0):
    """Arrays that are the same numbers, lying in different ways."""
    x = np.random.default_rng(seed).uniform(1, 9, 6)
    raw = np.empty(6 * 8 + 1, np.uint8)[1:].view(np.float64)
    raw[:] = x
    yield x
    yield x[::-1].copy()[::-1]
    yield np.repeat(x, 3)[::3]
    yield raw
    frozen = x.copy()
    frozen.flags.writeable = False
    yield frozen


def test_every_layout_and_shape_gives_the_same(plus):
    x = next(layouts())
    for a in layouts():
        for b in layouts():
            assert np.array_equal(plus(a, b), x + x)
            assert np.array_equal(plus(a.reshape(2, 3), b.reshape(2, 3)), (x + x).reshape(2, 3))
            assert np.array_equal(plus(a.reshape(2, 3).T, b.reshape(3, 2)), x.reshape(2, 3).T + x.reshape(3, 2))
    assert np.array_equal(plus(x[:, None], x[:3]), x[:, None] + x[:3])
    assert plus(np.ones((0, 3)), np.ones(3)).shape == (0, 3)
    assert plus(np.ones(0), np.ones(0)).shape == (0,)
    assert plus(1.0, 2.0) == 3.0
    assert plus(1.0, 2.0).shape == ()
    big = np.arange(100_000.0)
    assert np.array_equal(plus(big, big), big + big)


def test_out_is_written_at_any_place(plus):
    x = np.arange(6.0)
    for out in (np.empty(6), np.empty(12)[::2], np.empty(6)[::-1], np.empty((2, 3)), np.empty((3, 2)).T):
        a, b = x.reshape(out.shape), (x + 1).reshape(out.shape)
        assert plus(a, b, out=out) is out
        assert np.array_equal(out, a + b)
    for shift in (0, 1, -1):
        buffer = np.arange(9.0)
        a, out = buffer[1:-1], buffer[1 + shift : 8 + shift]
        want = a + a
        plus(a, a, out=out)
        assert np.array_equal(out, want)
    y = x.copy()
    plus(y, y[::-1], out=y)
    assert np.array_equal(y, x + x[::-1])


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.empty(3), "out= for output 0"),
        (np.empty(2, np.float32), "out= for output 0"),
        (np.empty((2, 2)), "out= for output 0"),
        (np.broadcast_to(np.empty(2), 2), "read-only"),
        ([0.0, 0.0], "writable ndarray, not a list"),
    ],
)
def test_an_out_that_does_not_fit_is_refused(plus, out, words):
    with pytest.raises(pyop.InputError, match=words):
        plus(np.ones(2), np.ones(2), out=out)


def test_nothing_is_cast_and_shapes_are_held(plus):
    for wrong in (np.ones(2, np.float32), np.ones(2, int), np.ones(2, complex)):
        with pytest.raises(pyop.InputError, match="nothing is cast silently"):
            plus(wrong, np.ones(2))
    swapped = np.arange(3.0).astype(">f8")
    assert np.array_equal(plus(np.arange(3.0), np.asarray(swapped, "f8")), 2 * np.arange(3.0))
    with pytest.raises(pyop.InputError, match="argument 1"):
        plus(np.ones(2), np.ones(3))
    with pytest.raises(TypeError, match="misses argument 1"):
        plus(np.ones(2))
    with pytest.raises(TypeError, match="takes 2 array arguments"):
        plus(np.ones(2), np.ones(2), np.ones(2))
    with pytest.raises(TypeError, match="has no parameter 'where'"):
        plus(np.ones(2), np.ones(2), where=True)
    same = pyop.native_op(c_function("plus", D, D, D), "plus", "float64[n], float64[n] -> float64[n]")
    with pytest.raises(pyop.InputError, match=r"float64\[n\] \(n = 2\)"):
        same(np.ones(2), np.ones(1))
    g = pyop.trace(lambda x, y: same(x, y), "float64[n]", "float64[m]")
    assert np.array_equal(g.compile()(np.ones(2), np.ones(2)), [2, 2])
    with pytest.raises(pyop.InputError, match=r"float64\[n\] \(n = 2\)"):
        g.compile()(np.ones(2), np.ones(1))


def test_swapped_bytes_are_converted_or_refused_but_never_read_as_they_are(plus):
    swapped = np.arange(3.0).astype(">f8")
    try:
        result = plus(swapped, np.zeros(3))
    except pyop.InputError:
        return
    assert np.array_equal(result, np.arange(3.0))


@given(
    a=st.lists(st.integers(-128, 127), min_size=1, max_size=5),
    x=st.floats(-100, 100).map(lambda v: round(v, 1)),
    b=st.integers(0, 65535),
    y=st.floats(-100, 100, width=32),
    c=st.booleans(),
    d=st.integers(-(2**40), 2**40),
)
def test_functions_of_mixed_types(a, x, b, y, c, d):
    types = (ctypes.c_int8, D, ctypes.c_uint16, ctypes.c_float, ctypes.c_bool, ctypes.c_int64)
    function = c_function("mixed", ctypes.c_int64, *types)
    op = pyop.native_op(function, "mixed")
    arrays = [np.array(v, t) for v, t in ((x, "f8"), (b, "u2"), (y, "f4"), (c, "?"), (d, "i8"))]
    got = op(np.array(a, np.int8), *arrays)
    assert got.dtype == np.int64
    assert got.tolist() == [function(v, x, b, y, c, d) for v in a]


def test_narrow_results_are_what_c_returns():
    narrow = pyop.native_op(c_function("narrow", ctypes.c_float, ctypes.c_int, ctypes.c_float))
    assert np.array_equal(narrow(np.array([-3, 4], np.int32), np.float32(0.5)), np.array([-1.5, 2], np.float32))
    positive = pyop.native_op(c_function("positive", ctypes.c_bool, D))
    assert positive(np.array([-1.0, 2.0])).tolist() == [False, True]
    wraps = pyop.native_op(c_function("wraps", ctypes.c_int8, ctypes.c_int))
    assert wraps(np.array([127, 128, -129], np.int32)).tolist() == [127, -128, 127]
    four = pyop.native_op(c_function("four", D, D, D, D, D))
    assert four(*np.arange(4.0)) == 3210
    plan = pyop.trace(lambda x: four(x, x, x, x) * 2, "float64[n]").compile()
    assert np.array_equal(plan(np.ones(3)), np.full(3, 2222.0))


def test_core_dimensions(product):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    for matrix in (a, np.asfortranarray(a), a[::-1].copy()[::-1], np.repeat(a, 2, axis=1)[:, ::2]):
        assert np.array_equal(product(matrix, b), a @ b)
    out = np.empty(4)[::2]
    assert product(a, b, out=out) is out
    assert np.array_equal(out, a @ b)
    square = np.arange(9.0).reshape(3, 3)
    want = square @ square[0]
    product(square, square[0], out=square[0])
    assert np.array_equal(square[0], want)
    with pytest.raises(pyop.InputError, match="argument 0"):
        product(np.ones((2, 2, 3)), b)
    with pytest.raises(pyop.InputError, match="argument 1"):
        product(a, np.ones(2))
    many = pyop.native_op(c_function("product", ctypes.c_int, *POINTERS), "p", "(m,n),(n)->(m)", dtype=float)
    stack = np.arange(24.0).reshape(4, 2, 3)
    assert np.array_equal(many(stack, b), stack @ b)
    assert many(np.ones((2, 0)), np.ones(0)).tolist() == [0, 0]
    assert many(np.ones((0, 2, 3)), b).shape == (0, 2)


def test_several_results_and_numpys_own_loops():
    function = c_function("split", None, *POINTERS)
    split = pyop.native_op(function, "split", "float64[*s] -> float64[*s], float64[*s]")
    x = np.array([1.25, -2.5])
    whole, part = np.empty(2), np.empty(2)
    for got in (split(x), split(x, out=(part, whole)), pyop.trace(split, "float64[n]").compile()(x)):
        assert [r.tolist() for r in got] == [[0.25, -0.5], [1, -2]]
    assert part.tolist() == [0.25, -0.5]


def test_plans_run_it_as_numpys_loops_and_fuse_it(plus, product, roots):
    def model(a, x):
        y = plus(np.sin(x), x)
        return roots(y * y), product(a, y)

    plan = pyop.trace(model, "float64[m,n]", "float64[n]").compile()
    a, x = np.arange(6.0).reshape(2, 3), np.array([0.1, 0.2, 0.3])
    y = np.sin(x) + x
    for got in (plan(a, x), model(a, x)):
        assert np.array_equal(got[0], np.sqrt(y * y))
        assert np.array_equal(got[1], a @ y)
    text = str(plan.explain())
    assert "0 calls of Python" in text
    assert "native code product" in text
    assert "native code plus" in text
    for threads in (1, 2):
        wide = pyop.trace(lambda x: (roots(x) + 1, plus(x, x)), "float64[n]").compile(threads=threads)
        big = np.arange(400_000.0)
        r, s = wide(big)
        assert np.array_equal(r, np.sqrt(big) + 1)
        assert np.array_equal(s, big + big)


def test_a_plan_of_numbers_is_called_from_c_without_python(plus):
    plan = pyop.trace(lambda x, y: plus(np.sin(x), y) * 2, "float64[]", "float64[]").compile()
    call = plan.ctypes
    x, y, out = D(0.5), D(2.0), D()
    pointers = [
        (ctypes.c_void_p * 2)(ctypes.addressof(x), ctypes.addressof(y)),
        (ctypes.c_void_p * 1)(ctypes.addressof(out)),
    ]
    assert call(plan.address, *map(ctypes.addressof, pointers)) == 0
    assert out.value == (np.sin(0.5) + 2) * 2
    assert "on a tape" in str(plan.explain()) or "0 calls of Python" in str(plan.explain())


def test_what_fails_raises_and_leaves_all_usable(roots):
    good, bad = np.array([4.0, 9.0]), np.array([4.0, -9.0])
    plan = pyop.trace(lambda x: roots(x) + 1, "float64[n]").compile()
    single = pyop.trace(lambda x: roots(x) + 1, "float64[]").compile()
    for _ in range(3):
        for call in (roots, plan, lambda x: roots(x, out=np.empty(2)), roots.ufunc()):
            with pytest.raises(RuntimeError, match=r"kernel 'roots' failed with status 7"):
                call(bad)
            assert call(good) is not None
        with pytest.raises(RuntimeError, match="status 7"):
            single(-1.0)
        assert single(4.0) == 3.0
    big = np.ones(300_000)
    big[-1] = -1
    for threads in (1, 2):
        with pytest.raises(RuntimeError, match="status 7"):
            pyop.trace(lambda x: roots(x) + 1, "float64[n]").compile(threads=threads)(big)


def test_flags_are_reported_as_numpy_does():
    ratio = pyop.native_op(c_function("ratio", D, D, D), "ratio")
    plan = pyop.trace(lambda x, y: ratio(x, y) + 1, "float64[n]", "float64[n]").compile()
    x, y = np.array([1.0, 0.0]), np.zeros(2)
    for call in (ratio, plan, ratio.ufunc()):
        with pytest.warns(RuntimeWarning) as caught:
            call(x, y)
        assert {str(w.message).split(" encountered")[0] for w in caught} == {"divide by zero", "invalid value"}
        assert all("ratio" in str(w.message) for w in caught)
        with np.errstate(all="ignore"):
            call(x, y)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            call(x, y + 0 * x)
        assert call(np.ones(2), np.ones(2)) is not None


def test_equal_calls_are_made_once_unless_they_are_stateful():
    function, count = c_function("counted", D, D), c_function("count_calls", ctypes.c_int64)
    for stateful, expected in ((False, 1), (True, 2)):
        op = pyop.native_op(function, "counted", stateful=stateful)
        plan = pyop.trace(lambda x, op=op: op(x) + op(x), "float64[n]").compile()
        before = count()
        assert plan(np.ones(1)).tolist() == [2.0]
        assert count() - before == expected
        before = count()
        assert op(np.ones(3)).tolist() == [1.0] * 3
        assert count() - before == 3


def test_gradients(plus):
    square = pyop.native_op(c_function("plus", D, D, D), "twice", grad="fd")
    assert np.allclose(pyop.grad(lambda x: np.sum(square(x, x) * x))(np.array([1.0, 2.0])), [4.0, 8.0], atol=1e-5)

    @plus.vjp
    def _(ct, x, y):
        return ct, ct

    x = np.array([1.0, 2.0, 3.0])
    loss = lambda x: np.sum(plus(np.sin(x), x * x))
    want = np.cos(x) + 2 * x
    assert np.allclose(pyop.grad(loss)(x), want)
    assert np.allclose(pyop.compile(pyop.grad(loss))(x), want)
    with pytest.raises(Exception, match=r"no gradient rule|vjp"):
        pyop.grad(lambda x: np.sum(pyop.native_op(c_function("plus", D, D, D), "bare")(x, x)))(x)


def test_results_are_the_callers(plus):
    a = np.ones(8)
    kept = [plus(a, a * k) for k in range(50)]
    assert [r[0] for r in kept] == [1.0 + k for k in range(50)]
    first = plus(a, a)
    view = first[:2]
    del first
    for _ in range(5):
        plus(a, 9 * a)
    assert view.tolist() == [2, 2]


def test_calls_leak_nothing(plus, roots):
    a, out = np.ones(8), np.empty(8)
    bad = np.full(8, -1.0)

    def once():
        plus(a, a)
        plus(a, a, out=out)
        plus(a, 1.0)
        plus.ufunc()(a, a)
        for call in (lambda: roots(bad), lambda: plus(a), lambda: plus(a, np.ones(3))):
            with pytest.raises(Exception):  # noqa: B017
                call()

    once()
    counts = []
    for _ in range(3):
        for _ in range(200):
            once()
        gc.collect()
        counts.append((sys.getrefcount(a), sys.getrefcount(out), sys.getrefcount(plus.__wrapped__)))
    assert counts[0] == counts[1] == counts[2]


def test_the_op_and_its_ufunc_keep_the_code_and_nothing_else_does():
    function = c_function("plus", D, D, D)
    seen = weakref.ref(function)
    op = pyop.native_op(function, "plus")
    ufunc = op.ufunc()
    plan = pyop.trace(lambda x, call=op: call(x, x), "float64[n]").compile()
    del function, op
    gc.collect()
    assert plan(np.ones(2)).tolist() == [2, 2]
    del plan
    gc.collect()
    assert ufunc(1.0, 2.0) == 3.0
    assert seen() is not None
    del ufunc
    gc.collect()
    assert seen() is None


def test_a_cycle_through_the_function_is_collected():
    function = c_function("plus", D, D, D)
    seen = weakref.ref(function)
    function.op = pyop.native_op(function, "plus")
    del function
    gc.collect()
    assert seen() is None


def test_many_threads_call_it_at_once(plus):
    wrong = []

    def work(k):
        small, large = np.full(8, float(k)), np.full(5000, float(k))
        for _ in range(300):
            for x in (small, large):
                if not (plus(x, x) == 2 * k).all():
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_ufunc_has_what_ufuncs_have(plus, product):
    u = plus.ufunc()
    assert isinstance(u, np.ufunc)
    assert u is plus.ufunc()
    x = np.arange(5.0)
    assert u.reduce(x) == 10
    assert np.array_equal(u.accumulate(x), np.cumsum(x))
    assert np.array_equal(u.outer(x, x), np.add.outer(x, x))
    assert np.array_equal(u(x, 1, where=x > 2, out=np.zeros(5)), [0, 0, 0, 4, 5])
    y = np.zeros(3)
    u.at(y, [0, 0, 2], 1.0)
    assert y.tolist() == [2, 0, 1]
    assert np.array_equal(u(np.arange(3), np.float32(1)), [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="Cannot cast"):
        u(1j, 2)
    assert product.ufunc().signature == "(m,n),(n)->(m)"
    assert np.array_equal(product.ufunc()(np.ones((4, 2, 3)), np.ones(3)), np.full((4, 2), 3.0))


def test_what_cannot_be_looped_over_is_refused():
    lib = ctypes.CDLL(str(library()))
    with pytest.raises(TypeError, match="set argtypes and restype"):
        pyop.native_op(lib["plus"], "plus")
    with pytest.raises(TypeError, match="functions of numbers"):
        pyop.native_op(c_function("plus", D, D, ctypes.c_void_p), "plus")
    with pytest.raises(TypeError, match="functions of numbers"):
        pyop.native_op(c_function("plus", ctypes.c_longdouble, D, D), "plus")
    with pytest.raises(TypeError, match="calls Python"):
        pyop.native_op(ctypes.CFUNCTYPE(D, D)(lambda x: x), "f")
    with pytest.raises(TypeError, match=r"float32.*float64, float64 -> float64"):
        pyop.native_op(c_function("plus", D, D, D), "plus", "float32[n], float64[n] -> float64[n]")
    with pytest.raises(TypeError, match="called for each element"):
        pyop.native_op(c_function("plus", D, D, D), "plus", "(n),(n)->(n)")
    with pytest.raises(TypeError, match="needs a declaration"):
        pyop.native_op(c_function("roots", ctypes.c_int, *POINTERS), "roots")
    with pytest.raises(TypeError, match="names and numbers"):
        pyop.native_op(c_function("roots", ctypes.c_int, *POINTERS), "roots", "float64[n] -> float64[n+1]")
    with pytest.raises(TypeError, match="needs signature="):
        pyop.native_op(4096, "f")
    with pytest.raises(ValueError, match="no function is at this address"):
        pyop.native_op(0, "f", signature="double (double)")
    with pytest.raises(TypeError, match="is not a number type that it knows"):
        pyop.native_op(4096, "f", signature="double (double *)")
    with pytest.raises(TypeError, match="takes no ufunc"):
        pyop.native_op(np.sin, "sin")
    with pytest.raises(TypeError, match=r"got str"):
        pyop.native_op("plus", "f")


def test_an_address_needs_its_signature():
    function = c_function("plus", D, D, D)
    address = ctypes.cast(function, ctypes.c_void_p).value
    op = pyop.native_op(address, "plus", signature="double (double x, const double y)")
    assert op.__wrapped__.code.gil
    assert op(np.ones(2), np.ones(2)).tolist() == [2, 2]
    free = pyop.native_op(address, "plus", signature="double (double, double)", gil=False)
    plan = pyop.trace(lambda x: free(x, x) * 2, "float64[n]").compile()
    assert plan(np.ones(2)).tolist() == [4, 4]
    assert "0 calls of Python" in str(plan.explain())


def test_only_code_with_a_name_is_pickled(plus):
    with pytest.raises(pickle.PicklingError, match="cannot be pickled"):
        pickle.dumps(plus)
    assert "plus" in repr(plus)


def test_a_profile_and_a_check_know_it(plus):
    with pyop.profile() as p:
        plus(np.ones(4), np.ones(4))
    assert "plus" in str(p)
    assert "plus" in str(pyop.check(plus, np.ones(4), np.ones(4)))
