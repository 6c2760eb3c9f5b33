"""`cimport pyop`: plans in Cython, C and C++ alike; what is wrong is an exception, with the GIL and without."""

from __future__ import annotations

import gc
import re
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import pyop

from .building import extension, has_openmp, load, needs_compilers

pytest.importorskip("Cython", reason="Cython is not installed")
pytestmark = needs_compilers

PLANS = """
# cython: language_level=3
from cpython.pycapsule cimport PyCapsule_New
from cython.parallel cimport prange
from libc.math cimport sqrt
from libc.stdint cimport intptr_t

cimport pyop
import pyop
from pyop cimport pyop_call, pyop_plan, pyop_plan_of, pyop_signature

cdef int one(const pyop_plan *plan, const double *x, double *y) except -1 nogil:
    cdef const void *inputs = x
    cdef void *outputs = y
    return pyop_call(plan, &inputs, &outputs)

def _each(object plan, size_t x_at, size_t y_at, Py_ssize_t n, int threads):
    "Addresses, since memoryviews take the compiler most of a minute."
    cdef const pyop_plan *at = pyop_plan_of(plan, "float64[] -> float64[]")
    cdef const double *x = <const double *>x_at
    cdef double *y = <double *>y_at
    cdef Py_ssize_t i
    for i in prange(n, nogil=True, num_threads=threads, schedule="dynamic"):
        one(at, x + i, y + i)

def plain(object plan, double x):
    "With the GIL held."
    cdef double y = -1
    one(pyop_plan_of(plan, NULL), &x, &y)
    return y

def by_hand(object plan, double x):
    "The status, the message, and then the exception, as C has them."
    cdef const pyop_plan *at = pyop_plan_of(plan, NULL)
    cdef const void *inputs = &x
    cdef double y = -1
    cdef void *outputs = &y
    cdef int status
    with nogil:
        status = pyop.pyop_plan_call(at, &inputs, &outputs)
    if status == pyop.PYOP_OK:
        return y
    said = pyop.pyop_message(at).decode()
    assert status == pyop.PYOP_RAISED
    try:
        pyop.pyop_raise(at)
    except BaseException as error:
        return status, said, y, error

def told(object plan):
    cdef const pyop_plan *at = pyop_plan_of(plan, NULL)
    cdef const pyop.pyop_array *first = pyop.pyop_input(at, 0)
    sizes = [first.shape[k] for k in range(first.ndim)]
    return {
        "n": (pyop.pyop_n_inputs(at), pyop.pyop_n_outputs(at)),
        "first": (first.name, first.dtype, first.itemsize, first.ndim, first.bytes, sizes),
        "none": pyop.pyop_input(at, 99) == NULL and pyop.pyop_output(at, 99) == NULL,
        "native": pyop.pyop_is_native(at),
        "table": (at.table.version, at.table.size > 8),
        "text": pyop_signature(at),
    }

def expect(object plan, signature):
    cdef bytes text = signature.encode()
    return pyop_plan_of(plan, text) != NULL

cdef int roots(char *const *args, const intptr_t *sizes, const intptr_t *strides, void *data) noexcept nogil:
    cdef intptr_t k, i
    cdef double x
    for k in range(sizes[0]):
        for i in range(sizes[1]):
            x = (<double *>(args[0] + k * strides[0] + i * strides[2]))[0]
            if x < 0:
                return 7
            (<double *>(args[1] + k * strides[1] + i * strides[3]))[0] = sqrt(x)
    return 0

cdef const char *words(int status, void *data) noexcept nogil:
    return <const char *>data

cdef pyop.pyop_kernel_info info
info.version = pyop.PYOP_KERNEL_VERSION
info.kind = pyop.PYOP_KERNEL
info.function = <void (*)() noexcept nogil>roots
info.data = <void *><const char *>b"there is no root of that"
info.name = "roots"
info.declaration = "float64[n] -> float64[n]"
info.message = words
kernel = PyCapsule_New(&info, pyop.PYOP_KERNEL_CAPSULE, NULL)

cdef api double twice(double x, int n) noexcept nogil:
    return x * 2 ** n

cdef double half(double x, int n) noexcept nogil:
    return x / 2 ** n

cdef pyop.pyop_kernel_info half_info
half_info.version = pyop.PYOP_KERNEL_VERSION
half_info.kind = pyop.PYOP_SCALAR
half_info.c_signature = "double (double, int)"
half_info.function = <void (*)() noexcept nogil>half
half_info.name = "half"
half_kernel = PyCapsule_New(&half_info, pyop.PYOP_KERNEL_CAPSULE, NULL)

def versions():
    here = pyop.PYOP_VERSION_MAJOR, pyop.PYOP_VERSION_MINOR, pyop.PYOP_VERSION_PATCH
    return here, pyop.PYOP_ENTRY_VERSION, pyop.PYOP_PLAN_CAPSULE, pyop.__version__
"""


@pytest.fixture(scope="module", params=["C", "C++"])
def plans(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    cplus = request.param == "C++"
    # Two names: one process loads both.
    flags = ("-fopenmp",) if has_openmp(folder) else ("-Wno-unknown-pragmas",)
    return load(extension(folder, "plans_cpp" if cplus else "plans_c", PLANS, cplus=cplus, flags=flags))


def each(plans, plan, x, y, threads):
    plans._each(plan, x.ctypes.data, y.ctypes.data, len(x), threads)


def compiled(f, *specs):
    return pyop.trace(f, *specs).compile()


def loud(x):
    if x > 500:
        raise Mine(float(x))
    return x * x


class Mine(Exception):
    pass


NATIVE = compiled(lambda x: np.exp(-x * x) * np.sin(3 * x) + x, "float64[]")
PYTHON = compiled(lambda x: pyop.py_func(loud, [x], "float64[]"), "float64[]")


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("plan", "n"), [(NATIVE, 20_000), (PYTHON, 400)], ids=["native", "Python"])
def test_prange_has_the_plans_own_bits(plans, plan, n, threads):
    x = np.linspace(-3, 3, n)
    y = np.zeros(n)
    each(plans, plan, x, y, threads)
    assert y.tobytes() == np.array([plan(v) for v in x]).tobytes()


@pytest.mark.parametrize("threads", [1, 4])
def test_what_one_iteration_raises_leaves_the_loop_as_it_was(plans, threads):
    x = np.arange(1000.0)
    y = np.full(1000, -1.0)
    with pytest.raises(Mine) as caught:
        each(plans, PYTHON, x, y, threads)
    assert caught.value.args[0] > 500
    assert "loud" in [entry.name for entry in caught.traceback]
    done = y != -1
    assert y[done].tobytes() == (x[done] * x[done]).tobytes()
    assert not done[501:].any()
    # Nothing is left of it.
    each(plans, NATIVE, x, y, threads)
    assert y.tobytes() == np.array([NATIVE(v) for v in x]).tobytes()


def test_floating_point_errors_of_native_plans_are_raised(plans):
    """The thread that called has np.errstate; the others have NumPy's defaults, which warn."""
    plan = compiled(lambda x: np.log(x), "float64[]")
    assert told_native(plans, plan)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        each(plans, plan, np.zeros(3), np.zeros(3), 1)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        each(plans, plan, np.zeros(64), np.zeros(64), 4)


def told_native(plans, plan):
    return plans.told(plan)["native"]


def test_with_the_gil_held(plans):
    assert plans.plain(NATIVE, 0.5) == NATIVE(0.5)
    assert plans.plain(PYTHON, 3.0) == 9.0
    with pytest.raises(Mine, match=r"501\.0"):
        plans.plain(PYTHON, 501.0)
    status, said, y, error = plans.by_hand(PYTHON, 501.0)
    assert (status, said, y) == (-1, "Mine: 501.0", -1.0)
    assert isinstance(error, Mine)
    assert plans.by_hand(PYTHON, 2.0) == 4.0


def test_what_is_told_of_a_plan(plans):
    plan = compiled(lambda m, k: (m.sum() * k, m.T), "float32[2,3]", "int64[]")
    assert plans.told(plan) == {
        "n": (2, 2),
        "first": (b"m", b"float32", 4, 2, 24, [2, 3]),
        "none": True,
        "native": True,
        "table": (plans.versions()[1], True),
        "text": "float32[2,3], int64[] -> float64[], float32[3,2]",
    }
    assert plans.told(NATIVE)["native"]
    here, _, name, version = plans.versions()
    assert ".".join(map(str, here)) == re.match(r"\d+\.\d+\.\d+", version)[0]
    assert name == b"pyop.plan"


@pytest.mark.parametrize("text", ["float64[] -> float64[]", "float64[]->float64[]", " float64 [ ] -> float64[] "])
def test_a_signature_may_have_spaces(plans, text):
    assert plans.expect(NATIVE, text)
    assert plans.expect(NATIVE.capsule, text)


@pytest.mark.parametrize("text", ["float64[]", "f8[] -> f8[]", "float64[], float64[] -> float64[]", "", "float64[] ->"])
def test_another_signature_is_refused(plans, text):
    message = re.escape(f"expected a plan of {text}, and got one of float64[] -> float64[]")
    with pytest.raises(TypeError, match=message):
        plans.expect(NATIVE, text)


class Pretender:
    """Its capsule would be gone, and the plan with it, when the pointer is used."""

    @property
    def capsule(self):
        return compiled(lambda x: x, "float64[]").capsule


class Broken:
    @property
    def capsule(self):
        raise Mine("no capsule today")


@pytest.mark.parametrize(
    "thing", [None, 3, "plan", NATIVE.address, np.zeros(3), Pretender(), pyop.compile(loud), sys, np.float64]
)
def test_what_is_no_plan_is_refused(plans, thing):
    with pytest.raises(TypeError, match=r"expected a pyop.Plan, or the capsule of one, not[\s\S]*graph.compile"):
        plans.expect(thing, "float64[] -> float64[]")


def test_a_long_thing_is_shown_in_short(plans):
    with pytest.raises(TypeError) as caught:
        plans.expect(list(range(10_000)), "")
    assert len(str(caught.value)) < 400


def test_capsules_of_others_are_refused(plans):
    from numpy._core import _multiarray_umath

    with pytest.raises(TypeError, match="expected a pyop"):
        plans.expect(_multiarray_umath._ARRAY_API, "")
    with pytest.raises(Mine, match="no capsule today"):
        plans.expect(Broken(), "")


def test_a_plan_that_c_cannot_call_says_why(plans):
    with pytest.raises(TypeError, match=r"input 'x' is float64\[n\]"):
        plans.expect(compiled(lambda x: x, "float64[n]"), "float64[n] -> float64[n]")


def test_nothing_is_left_behind(plans):
    plan = compiled(lambda x: x * 2, "float64[]")
    capsule = plan.capsule
    plans.plain(plan, 1.0)
    before = sys.getrefcount(plan), sys.getrefcount(capsule)
    for _ in range(1000):
        plans.plain(plan, 1.0)
        plans.plain(capsule, 1.0)
        plans.expect(capsule, "float64[] -> float64[]")
        with pytest.raises(TypeError):
            plans.expect(plan, "float64[2] -> float64[]")
    assert (sys.getrefcount(plan), sys.getrefcount(capsule)) == before
    alive = weakref.ref(plan)
    del plan
    gc.collect()
    assert alive() is not None
    assert plans.plain(capsule, 4.0) == 8.0
    del capsule
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("threads", [1, 4])
def test_exceptions_of_a_loop_are_let_go(plans, threads):
    """Also those that Cython drops, since another thread was the first."""
    alive = []

    def fails(x):
        alive.append(weakref.ref(error := Mine(float(x))))
        raise error

    plan = compiled(lambda x: pyop.py_func(fails, [x], "float64[]"), "float64[]")
    for _ in range(5):
        with pytest.raises(Mine):
            each(plans, plan, np.arange(64.0), np.zeros(64), threads)
    gc.collect()
    assert len(alive) >= 5
    assert [ref() for ref in alive if ref() is not None] == []


NATIVE_TEXT = "lambda x: 2 * x + 1"
ENDING = """
import sys, threading, time
import numpy as np
sys.path[:0] = [{folder!r}]
import pyop, {name} as plans
plan = pyop.trace({text}, "float64[]").compile()
def call():
    x, y = np.ones(50), np.zeros(50)
    while True:
        plans._each(plan, x.ctypes.data, y.ctypes.data, 50, 2)
for _ in range(2):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.3)
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit"])
@pytest.mark.parametrize(
    "text",
    [NATIVE_TEXT, "lambda x: pyop.py_func(lambda v: v, [x], 'float64[]')"],
    ids=["native", "Python"],
)
def test_loops_that_run_while_python_ends(plans, text, end):
    made = Path(plans.__file__)
    if "cpp" in made.name:
        # Before 3.14 CPython ends daemon threads by unwinding, and OpenMP in C++ aborts; 3.14 itself aborts now and
        # then, where a thread of OpenMP takes the GIL at the end of a prange.
        pytest.skip("the end of Python under a prange in C++ is not survived, whatever it calls")
    program = ENDING.format(folder=str(made.parent), name=plans.__name__, text=text, end=end)
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        # A thread that gets the GIL once more raises what says so, and `threading` begins to print it.
        assert done.stderr == b"" or (text != NATIVE_TEXT and done.stderr.startswith(b"Exception in thread"))


def test_kernels(plans):
    roots = pyop.native_op(plans.kernel)
    x = np.linspace(0, 4, 9)
    assert roots(x[::-2]).tobytes() == np.sqrt(x[::-2]).tobytes()
    assert roots.name == "roots"
    plan = compiled(lambda x: roots(x + 1) * 2, "float64[9]")
    assert plan(x).tobytes() == (np.sqrt(x + 1) * 2).tobytes()
    for call in (roots, plan):
        with pytest.raises(RuntimeError, match="there is no root of that"):
            call(x - 3)
    twice = pyop.native_op(plans, "twice", gil=False)
    assert twice(x, np.array(3, "int32")).tobytes() == (x * 8).tobytes()
    half = pyop.native_op(plans.half_kernel)
    one = compiled(lambda x: half(x * 3, np.array(2, "int32")), "float64[]")
    assert plans.plain(one, 5.0) == 3.75
    # Only the capsule says that it sets no exception: a plan called from C then needs no Python.
    assert plans.told(one)["native"]
    assert not plans.told(compiled(lambda x: twice(x, np.array(2, "int32")), "float64[]"))["native"]
    with pytest.raises(TypeError, match=r"double \(double, int\)"):
        pyop.native_op(plans, "twice", "float64[], float64[] -> float64[]")


def test_headers_that_are_newer_than_the_pyop_at_hand(tmp_path):
    """As an extension finds it that was built with a pyop of the future."""
    shutil.copytree(Path(pyop.get_include()), tmp_path / "include")
    header = tmp_path / "include/pyop/entry.h"
    text = header.read_text()
    version = int(re.search(r"#define PYOP_ENTRY_VERSION (\d+)\n", text)[1])
    newer = text.replace(f"ENTRY_VERSION {version}\n", f"ENTRY_VERSION {version + 1}\n")
    newer = newer.replace("} pyop_table;", "    int (*newest)(void);\n} pyop_table;")
    assert newer.count("newest") == 1
    header.write_text(newer)
    source = """
from pyop cimport pyop_plan_of
def take(object plan):
    return pyop_plan_of(plan, NULL) != NULL
"""
    module = load(extension(tmp_path, "newer", source, include=str(tmp_path / "include")))
    says = rf"built with the headers of pyop \d+\.[\s\S]*version {version} [\s\S]* {version + 1} is needed"
    with pytest.raises(ImportError, match=says):
        module.take(NATIVE)
