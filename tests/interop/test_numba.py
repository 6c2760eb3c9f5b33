"""Plans in functions of numba: the plan's own bits, its exceptions, its life; from one thread and from `prange`."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest

import pyop

numba = pytest.importorskip("numba", reason="needs numba")
from numba import njit, prange  # noqa: E402
from scipy import LowLevelCallable, integrate  # noqa: E402


def compiled(f, *specs):
    return pyop.trace(f, *specs).compile()


def damped(x):
    return np.exp(-x * x) * np.sin(3 * x) + x


def test_numbers():
    plan = compiled(damped, "float64[]")

    @njit
    def total(n):
        s = 0.0
        for i in range(n):
            s += plan(i * 0.1)
        return s

    assert total(50) == sum(float(plan(i * 0.1)) for i in range(50))
    assert total.py_func(3) == total(3)


def test_arrays_of_any_layout_and_several_results():
    plan = compiled(lambda a, x: (a @ x, x.sum(), a.T), "float64[3,3]", "float64[3]")

    @njit
    def call(a, x):
        y, s, t = plan(a, x)
        return y, s, t

    rng = np.random.default_rng(0)
    a, x = rng.random((3, 3)), rng.random(3)
    wide = rng.random((6, 6))
    for b, v in [(a, x), (a.T, x[::-1]), (np.asfortranarray(a), x), (wide[::2, 1::2], wide[1, ::2])]:
        # As C has them: in C order. BLAS rounds otherwise for a transposed matrix.
        for want, got in zip(plan(b.copy(), v.copy()), call(b, v), strict=True):
            assert want.tobytes() == np.asarray(got).tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint64", "float32", "complex64", "complex128"])
def test_dtypes(dtype):
    plan = compiled(lambda x, y: (x, y[::-1], x == y[0]), f"{dtype}[]", f"{dtype}[3]")

    @njit
    def call(x, y):
        return plan(x, y)

    x, y = np.dtype(dtype).type(1), np.array([0, 1, 3], dtype)
    number, array, truth = call(x, y)
    assert (number, truth) == (x, False)
    assert array.dtype == y.dtype
    assert array.tobytes() == y[::-1].tobytes()
    assert call(np.array(1, dtype).reshape(()), y)[0] == x


def test_names_of_arguments_are_any():
    plan = compiled(lambda np, plan: (np - plan, np), "float64[]", "float64[]")

    @njit
    def call(x):
        return plan(plan=x, np=2 * x)

    assert call(1.5) == (1.5, 3.0)


def test_an_argument_and_integers():
    doubled, squared = compiled(lambda x: 2 * x, "float64[]"), compiled(lambda x: x * x, "float64[]")

    @njit
    def apply(plan, x):
        return plan(x) + plan(3)

    assert (apply(doubled, 5.0), apply(squared, 5.0)) == (16.0, 34.0)


def test_single_results_in_a_tuple():
    plan = compiled(lambda x: (x + 1,), "float64[]")
    assert njit(lambda x: plan(x))(1.0) == (2.0,)


@pytest.mark.parametrize(
    ("spec", "given", "text"),
    [
        ("float64[]", np.float32(1), r"input 'x' of .* is float64\[\], but compiled code passes float32"),
        ("float32[]", 1.0, r"is float32\[\], but compiled code passes float64"),
        ("int64[]", 1.0, r"is int64\[\], but compiled code passes float64"),
        ("float64[]", np.ones(1), r"is float64\[\], but compiled code passes array\(float64, 1d, C\)"),
        ("float64[3]", 1.0, r"is float64\[3\], but compiled code passes float64"),
        ("float64[3]", np.ones((3, 1)), r"is float64\[3\], but compiled code passes array\(float64, 2d"),
        ("float64[3]", np.ones(3, "f4"), r"is float64\[3\], but compiled code passes array\(float32"),
    ],
)
def test_what_the_plan_does_not_take_is_an_error_of_compilation(spec, given, text):
    plan = compiled(lambda x: x * 2, spec)
    with pytest.raises(numba.TypingError, match=text):
        njit(lambda x: plan(x))(given)


def test_another_shape():
    plan = compiled(lambda x: x * 2, "float64[3]")
    call = njit(lambda x: plan(x))
    for size in (2, 4, 0):
        with pytest.raises(pyop.InputError, match=r"input 'x' of .* is float64\[3\], but .* an array of another shape"):
            call(np.ones(size))
    assert call(np.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("f", "spec", "text"),
    [
        (lambda x: [x], "float64[]", "its results are in a list; return a tuple instead"),
        (lambda x: {"a": x}, "float64[]", "its results are in a tree"),
        (lambda x: x, "float64[n]", "declare dtypes and sizes"),
    ],
)
def test_plans_that_numba_cannot_call(f, spec, text):
    plan = compiled(f, spec)
    with pytest.raises(TypeError, match=text):
        njit(lambda x: plan(x))(1.0)


class Mine(Exception):
    pass


def raising(x):
    if x > 3:
        raise Mine("too far", 7)
    return x


def python_plan():
    return compiled(lambda x: pyop.py_func(raising, [x], "float64[]"), "float64[]")


@pytest.mark.parametrize("nogil", [False, True])
def test_exceptions_are_the_plans_own(nogil):
    plan = python_plan()
    call = njit(nogil=nogil)(lambda x: plan(x) + 1)
    for _ in range(3):
        with pytest.raises(Mine) as caught:
            call(4.0)
        assert caught.value.args == ("too far", 7)
        assert call(1.0) == 2.0


@pytest.mark.parametrize("nogil", [False, True])
def test_exceptions_that_compiled_code_catches(nogil):
    plan = python_plan()

    @njit(nogil=nogil)
    def call(x):
        try:
            return plan(x)
        except Exception:
            return -1.0

    assert [call(x) for x in (4.0, 1.0, 5.0)] == [-1.0, 1.0, -1.0]
    with pytest.raises(ZeroDivisionError):
        1 / 0


def test_floating_point_errors_are_those_of_the_caller():
    plan = compiled(lambda x: np.log(x), "float64[]")
    call = njit(lambda x: plan(x))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert call(0.0) == -np.inf
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        call(0.0)
    with np.errstate(all="ignore"):
        assert call(0.0) == -np.inf


def test_parallel_loops():
    plan = compiled(lambda x, p: (damped(x), p * x), "float64[]", "float64[3]")

    @njit(parallel=True, nogil=True)
    def many(n, p):
        numbers, arrays = np.empty(n), np.empty((n, 3))
        for i in prange(n):
            numbers[i], arrays[i] = plan(i * 0.01, p)
        return numbers, arrays

    p = np.array([1.0, 2.0, 3.0])
    numbers, arrays = many(2000, p)
    want = [plan(i * 0.01, p) for i in range(2000)]
    assert numbers.tobytes() == np.array([w[0] for w in want]).tobytes()
    assert arrays.tobytes() == np.array([w[1] for w in want]).tobytes()


def test_a_plan_that_needs_python_in_a_parallel_loop():
    plan = python_plan()

    @njit(parallel=True)
    def many(n):
        out = np.zeros(n)
        for i in prange(n):
            out[i] = plan(i / n)
        return out

    assert many(40).tolist() == [i / 40 for i in range(40)]


def test_what_a_parallel_loop_loses_is_reported():
    """numba drops exceptions of its parallel loops, its own too: they are said of a thread that nobody asks."""
    program = """
        import sys, numba, numpy as np, pyop
        from numba import njit, prange
        def raising(x):
            raise KeyError("lost")
        plan = pyop.trace(lambda x: pyop.py_func(raising, [x], "float64[]"), "float64[]").compile()
        @njit(parallel=True)
        def many(n):
            out = np.zeros(n)
            for i in prange(n):
                out[i] = plan(i / n)
            return out
        told = []
        sys.unraisablehook = lambda given: told.append((given.exc_type, repr(given.object) == repr(plan)))
        try:
            many(4)
        except (KeyError, SystemError) as error:  # the caller's own share of the loop
            told.append((KeyError, True))
        assert set(told) == {(KeyError, True)}, told
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")


def recent_forgotten():
    # numba keeps the last hundred dispatchers that were made.
    from numba.core.dispatcher import Dispatcher

    Dispatcher._recent.clear()
    gc.collect()


def test_the_code_keeps_the_plan_alive():
    plan = compiled(damped, "float64[]")
    expected, alive = float(plan(0.3)), weakref.ref(plan)

    def make(plan):
        inner = njit(lambda x: plan(x))
        return njit(lambda x: inner(x)), inner

    outer, inner = make(plan)
    assert outer(0.3) == expected
    # What the functions read may be something else by now.
    inner.py_func.__closure__[0].cell_contents = None
    del plan, inner
    outer.py_func.__closure__[0].cell_contents = None
    recent_forgotten()
    assert alive() is not None
    assert outer(0.3) == expected
    del outer
    recent_forgotten()
    assert alive() is None


def test_what_is_compiled_with_an_address_is_not_kept_in_files(tmp_path):
    (tmp_path / "kept.py").write_text(
        textwrap.dedent("""
            import pyop, warnings
            from numba import njit
            offset = __import__("os").environ["OFFSET"]
            plan = pyop.trace(lambda x: x + float(offset), "float64[]").compile()
            inner = njit(lambda x: plan(x))
            @njit(cache=True)
            def direct(x): return plan(x)
            @njit(cache=True)
            def through(x): return inner(x)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                print(direct(1.0), through(1.0), ["dynamic globals" in str(w.message) for w in caught])
        """)
    )
    for offset in (1, 5):
        done = subprocess.run(
            [sys.executable, "kept.py"], cwd=tmp_path, env={**os.environ, "OFFSET": str(offset)},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.stdout == f"{1.0 + offset} {1.0 + offset} [True, True]\n", done.stderr


def test_calls_leave_nothing_behind():
    plan = compiled(lambda x, y: (x * 2, y), "float64[3]", "float64[]")
    call = njit(lambda x, y: plan(x, y))
    x = np.ones(3)
    call(x, 1.0)
    before = sys.getrefcount(plan), sys.getrefcount(x)
    for _ in range(1000):
        call(x, 1.0)
    assert (sys.getrefcount(plan), sys.getrefcount(x)) == before
    array = call(x, 1.0)[0]
    alive = weakref.ref(array)
    del array
    assert alive() is None


def test_a_plan_that_numba_has_seen_is_pickled_as_before():
    plan = compiled(damped, "float64[]")
    njit(lambda x: plan(x))(1.0)
    again = pickle.loads(pickle.dumps(plan))
    assert again(0.5) == plan(0.5)
    assert njit(lambda x: again(x))(0.5) == plan(0.5)


def test_a_c_function_of_numbers():
    plan = compiled(lambda x, n, flag: np.where(flag, x * n, -x), "float64[]", "int32[]", "bool[]")
    c = plan.cfunc
    assert c is plan.cfunc
    assert c.ctypes.argtypes == (ctypes.c_double, ctypes.c_int32, ctypes.c_bool)
    assert (c.ctypes(2.5, 3, True), c.ctypes(2.5, 3, False)) == (7.5, -2.5)

    @njit
    def total(n):
        s = 0.0
        for i in range(n):
            s += c(i * 0.5, np.int32(i), True)
        return s

    assert total(9) == sum(0.5 * i * i for i in range(9))
    single = compiled(lambda x: x / 3, "float32[]").cfunc.ctypes
    assert single.restype is ctypes.c_float
    assert single(1.0) == np.float32(1) / np.float32(3)


def test_a_c_function_of_arrays_and_several_results():
    plan = compiled(lambda a, z, k: (a * k, a.sum(), z.conj()), "float64[2,3]", "complex128[]", "int64[]")
    a, z = np.arange(6.0).reshape(2, 3), np.array(3 + 4j)
    y, s, w = np.zeros((2, 3)), np.zeros(()), np.zeros((), complex)
    call = plan.cfunc.ctypes
    assert call.restype is ctypes.c_int32
    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 3)
    at = [x.ctypes.data for x in (a, z, y, s, w)]
    assert function(plan.cfunc.address)(*at[:2], 5, *at[2:]) == 0
    for want, got in zip(plan(a, z, 5), (y, s, w), strict=True):
        assert want.tobytes() == got.tobytes()


def refuses(x):
    if x > 1:
        raise Mine(float(x))
    return x + 1


def test_a_c_function_that_returns_a_number_raises_when_python_goes_on():
    plan = compiled(pyop.op(refuses, "float64[] -> float64[]"), "float64[]")
    c = plan.cfunc.ctypes
    assert c(0.5) == 1.5
    with pytest.raises(Mine, match=r"^2\.0\n"):
        c(2.0)
        c(3.0)
    assert c(0.5) == 1.5
    with pytest.raises(Mine, match=r"^9\.0\n"):
        integrate.quad(LowLevelCallable(compiled(refuses_all, "float64[]").cfunc.ctypes), 0, 1)


refuses_all = pyop.op(lambda x: refuses(9.0 + 0 * x), "float64[] -> float64[]", name="refuses_all")


def test_a_c_function_with_a_status_says_so():
    plan = compiled(pyop.op(lambda k: refuses(k), "int64[] -> int64[]", name="of_integers"), "int64[]")
    got = np.array(7)
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p)(plan.cfunc.address)
    assert function(1, got.ctypes.data) == 0
    assert got == 2
    with pytest.raises(Mine):  # the GIL was held: it is set, and ctypes raises it
        function(5, got.ctypes.data)
    assert got == 2


def test_a_c_function_on_a_thread_without_python(monkeypatch):
    """The failure of a function without a status is reported: nobody will return to Python there."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: seen.append(told.exc_value))
    plan = compiled(lambda x: refuses_all(x[0]), "float64[1]")
    start, thread, x = ctypes.c_void_p(plan.cfunc.address), ctypes.c_ulong(), np.zeros(1)
    libc = ctypes.CDLL(None)
    assert libc.pthread_create(ctypes.byref(thread), None, start, ctypes.c_void_p(x.ctypes.data)) == 0
    assert libc.pthread_join(thread, None) == 0
    assert [type(each) for each in seen] == [Mine]


def test_a_c_function_lives_as_long_as_it_is_held():
    plan = compiled(damped, "float64[]")
    want, c = float(plan(0.3)), plan.cfunc
    gone = weakref.ref(plan)
    assert pickle.loads(pickle.dumps(plan))(0.3) == want
    del plan
    gc.collect()
    assert gone() is None
    assert c.ctypes(0.3) == want
    op = pyop.native_op(c, "damped")
    assert op(np.full(3, 0.3)).tolist() == [want] * 3


@pytest.mark.parametrize(
    ("spec", "text"), [("float64[n]", "sizes"), ("float16[]", "numba, which has no float16"), ("str[]", "declare|C ")]
)
def test_what_has_no_c_function(spec, text):
    with pytest.raises((TypeError, pyop.PyopError), match=text):
        compiled(lambda x: x, spec).cfunc


def test_numba_is_imported_by_who_uses_it():
    program = "import sys, pyop; plan = pyop.trace(lambda x: x, 'float64[]').compile(); plan(1.0); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "numba" not in done.stdout.split()
