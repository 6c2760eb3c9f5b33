"""`pyop_plan_call`: the plan's own results, whatever its arrays are, and nothing written where it fails."""

from __future__ import annotations

import ctypes
import gc
import sys
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pyop

from .calling import call, function, message, results_for, told

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def compiled(f, *specs):
    return pyop.trace(f, *specs).compile()


def same(plan, arrays):
    """C's results are Python's, bit for bit."""
    results = results_for(plan)
    with np.errstate(all="ignore"):
        expected = plan(*arrays)
        assert call(plan, arrays, results) == 0
    for want, got in zip(expected if isinstance(expected, (tuple, list)) else [expected], results, strict=True):
        assert want.dtype == got.dtype
        assert want.tobytes() == got.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=3))
def test_any_dtype_and_shape(data, dtype, shape):
    x, y = (data.draw(hnp.arrays(dtype, tuple(shape))) for _ in range(2))
    text = f"{dtype}[{','.join(map(str, shape))}]"
    plan = compiled(lambda x, y: (x + y, x.T, np.maximum(x, y), x * y == x), text, text)
    same(plan, [x, y])
    names, _ = told(plan)
    assert names == [("x", dtype, tuple(shape)), ("y", dtype, tuple(shape))]


def horner(x):
    total = x * 0
    for c in (1.5, -2.0, 0.25, 3.0):
        total = total * x + c
    return total


PROGRAMS = {
    "polynomial": (horner, ["float64[]"], True),
    "loops of NumPy": (lambda x: np.exp(-x * x) * np.sin(3 * x) + x, ["float64[]"], True),
    "several": (lambda x, y: (x * y, x, np.hypot(x, y)), ["float64[]", "float64[]"], True),
    "elements": (lambda v: v[0] * v[1] - v[-1], ["float64[4]"], True),
    "elements of rows": (lambda m: m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0], ["float64[2,2]"], True),
    "complex": (lambda z: z * z + 1, ["complex128[]"], True),
    "integers": (lambda i, j: i * j + (i & j), ["int64[]", "int64[]"], True),
    "bool": (lambda x, y: np.where(x < y, x, y), ["float32[]", "float32[]"], True),
    "reductions": (lambda x: (x.max() - x.min()) / (x.std() + 1), ["float64[9]"], None),
    "elementwise": (lambda x: np.sqrt(np.abs(x)) * 2 + x, ["float64[3,5]"], None),
    "view": (lambda x: x[::-1].T, ["int32[2,3]"], None),
    "constant": (lambda x: (x, np.arange(3.0)), ["float64[]"], None),
    "calls Python": (lambda x: pyop.py_func(lambda v: v[::-1] * 2, [x], "float64[4]"), ["float64[4]"], False),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_programs(name, threads):
    f, specs, native = PROGRAMS[name]
    plan = pyop.trace(f, *specs).compile(threads=threads)
    rng = np.random.default_rng(3)
    for _ in range(5):
        arrays = []
        for _, dtype, shape in told(plan)[0]:
            numbers = rng.normal(size=shape) * 4
            arrays.append(np.asarray(numbers + (1j if dtype.startswith("complex") else 0)).astype(dtype))
        same(plan, arrays)
    if native is not None:
        assert plan._without_python is native
        assert function(plan, "is_native", ctypes.c_int, ctypes.c_void_p)(plan.address) == native


@pytest.mark.parametrize("f", [lambda x, y: x * y + y, lambda x, y: (x - y) / (x.max() + 9)], ids=["elements", "row"])
@pytest.mark.parametrize("shape", ["", "6"])
def test_results_may_lie_where_the_arguments_do(f, shape):
    plan = compiled(f, f"float64[{shape}]", f"float64[{shape}]")
    memory = np.random.default_rng(1).normal(size=16)
    n = int(shape or 1)
    for at in (0, 1, 3):
        here = memory.copy()
        x, y, out = here[0:n], here[6 : 6 + n], here[at : at + n]
        expected = plan(*(a.copy().reshape((n,) * bool(shape)) for a in (x, y)))
        assert call(plan, [x, y], [out]) == 0
        assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", ["", "5"])
def test_any_alignment(shape):
    plan = compiled(lambda x: x * 2 + 1, f"float64[{shape}]")
    n = int(shape or 1)
    memory, out = np.zeros(8 * n + 3, np.uint8), np.zeros(8 * n + 5, np.uint8)
    memory[3:] = np.arange(1.0, n + 1).view(np.uint8)
    assert call(plan, [memory[3:]], [out[5:]]) == 0
    assert out[5:].tobytes() == (np.arange(1.0, n + 1) * 2 + 1).tobytes()


def collatz_like(x, n):
    def step(i, carried):
        y, k = carried
        return np.where(y > 1.0, y * 0.5, y * 3.0 + 0.25), k + i

    return pyop.fori_loop(0, 600_000, step, (x, n))


@pytest.mark.parametrize("gil", [True, False])
def test_a_long_loop_needs_no_gil(gil):
    """It looks at signals where it has the GIL, which other threads get meanwhile."""
    plan = compiled(collatz_like, "float64[]", "int64[]")
    assert plan._without_python
    results = results_for(plan)
    arrays = [np.array(7.0), np.array(2)]
    assert call(plan, arrays, results, gil=gil) == 0
    assert [r.tobytes() for r in results] == [np.asarray(r).tobytes() for r in plan(*arrays)]


class Mine(Exception):
    pass


def failing(x):
    raise Mine("not today")


def test_a_failure_is_a_status_and_writes_nothing():
    plan = compiled(lambda x: (x + 1, pyop.py_func(failing, [x], "float64[]")), "float64[]")
    x = np.array(1.0)
    results = results_for(plan)
    before = [r.tobytes() for r in results]
    assert call(plan, [x], results) == -1
    assert message(plan) == "Mine: not today"
    assert [r.tobytes() for r in results] == before
    # Who had no GIL raises it with the GIL taken, as it was, and only once.
    throw = function(plan, "raise", ctypes.c_int, gil=True)
    with pytest.raises(Mine, match="not today") as caught:
        throw()
    assert "failing" in [entry.name for entry in caught.traceback]
    with pytest.raises(pyop.PyopError, match="Mine: not today"):
        throw()
    # Who has it gets it at once.
    with pytest.raises(Mine, match="not today"):
        call(plan, [x], results, gil=True)


def test_the_exception_of_a_failure_is_let_go():
    plan = compiled(lambda x: pyop.py_func(failing, [x], "float64[]"), "float64[]")
    assert call(plan, [np.array(1.0)], results_for(plan)) == -1
    held = []

    def another(x):
        held.append(weakref.ref(error := Mine("again")))
        raise error

    other = compiled(lambda x: pyop.py_func(another, [x], "float64[]"), "float64[]")
    assert call(other, [np.array(1.0)], results_for(other)) == -1
    assert held[0]() is not None
    assert call(plan, [np.array(1.0)], results_for(plan)) == -1
    gc.collect()
    assert held[0]() is None


@pytest.mark.parametrize("shape", ["", "3"])
def test_floating_point_errors_are_those_of_the_plan(shape):
    plan = compiled(lambda x, y: np.log(x) / y, f"float64[{shape}]", f"float64[{shape}]")
    zeros, ones = (np.full((3,) * bool(shape), v) for v in (0.0, 1.0))
    for x, y, text in [(zeros, ones, "divide by zero"), (-ones, ones, "invalid value"), (ones, zeros, "invalid value")]:
        results = results_for(plan)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert call(plan, [x, y], results) == 0
        assert [str(w.message).split(" encountered")[0] for w in caught] == [text]
        with np.errstate(all="raise"):
            assert call(plan, [x, y], results) == -1
            assert message(plan).startswith("FloatingPointError: " + text)
        with np.errstate(all="ignore"):
            assert call(plan, [x, y], results) == 0
        with np.errstate(all="ignore"):
            assert results[0].tobytes() == plan(x, y).tobytes()
    tiny = np.full_like(ones, 1e-300)
    small = compiled(lambda x: x * x, f"float64[{shape}]")
    with np.errstate(under="raise"):
        assert call(small, [tiny], results_for(small)) == -1
    assert call(small, [tiny], results_for(small)) == 0


@pytest.mark.parametrize(
    ("f", "specs", "text"),
    [
        (lambda x: x, ["float64[n]"], r"input 'x' is float64\[n\][\s\S]*declare dtypes and sizes"),
        (lambda x: x, ["float64"], r"input 'x' is float64[\s\S]*'float64\[\]'"),
        (lambda x: x, ["object[2]"], "input 'x' is object"),
        (lambda x: x[x > 0], ["float64[3]"], "result 0 is"),
    ],
)
def test_what_has_no_address(f, specs, text):
    plan = compiled(f, *specs)
    for _ in range(2):
        with pytest.raises(TypeError, match=text):
            plan.address
    with pytest.raises(TypeError, match=text):
        plan.capsule


def test_a_plan_that_writes_into_its_argument_has_no_address():
    def f(x):
        x[0] = 1.0
        return x.sum()

    plan = pyop.compile(f).plan_for(np.zeros(3))
    with pytest.raises(TypeError, match="it writes into its input 'x'"):
        plan.address


def test_a_capsule_keeps_the_plan_and_an_address_does_not():
    plan = compiled(lambda x: x + 1, "float64[]")
    alive = weakref.ref(plan)
    assert plan.address == plan.address
    capsule = plan.capsule
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    assert get(capsule, b"pyop.plan") == plan.address
    del plan
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_a_profile_sees_the_calls():
    plan = compiled(lambda x: x + 1, "float64[]")
    with pyop.profile() as profile:
        assert call(plan, [np.array(1.0)], results_for(plan)) == 0
    assert "plan" in str(profile)


def test_calls_leave_nothing_behind():
    plans = [
        compiled(lambda x: x * 2, "float64[3]"),
        compiled(lambda x: pyop.py_func(np.sin, [x], "float64[3]"), "float64[3]"),
    ]
    x = np.ones(3)
    for plan in plans:
        results = results_for(plan)
        call(plan, [x], results)
        before = sys.getrefcount(plan), sys.getrefcount(x)
        for _ in range(1000):
            assert call(plan, [x], results) == 0
        assert (sys.getrefcount(plan), sys.getrefcount(x)) == before
