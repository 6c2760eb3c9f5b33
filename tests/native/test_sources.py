"""Where compiled code comes from: Cython, capsules of <pyop/kernel.h>, cffi, numba; and ufuncs of Python ops."""

from __future__ import annotations

import datetime
import gc
import importlib.util
import pickle
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

import pyop

from .building import COMPILER, NO_COMPILER, folder, library

needs_compiler = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)

CYTHON = """
# cython: language_level=3
cdef api double scaled(double x, double y) noexcept nogil:
    return 2 * x + y

cdef api double checked(double x) except? -1:
    if x < 0:
        raise ValueError(f"negative: {x}")
    return 2 * x

cdef api double checked_nogil(double x) except? -1 nogil:
    if x < 0:
        with gil:
            raise ValueError(f"negative: {x}")
    return 2 * x

cdef api long mixed(int n, long k, float z) noexcept nogil:
    return n * k + <long>z

cpdef api double both(double x):
    return x

cpdef api double both_checked(double x, int n) except? -1:
    if x < 0:
        raise ValueError(f"negative: {x}")
    return x + n

cpdef double with_default(double x, double y=2.5, int n=3):
    return x + y * n

cdef double optional(int n, double y=0.5):
    return n + y

cpdef api int many(int a, int b, int c, int d, int e, int f):
    return a + b + c + d + e + f

cdef api object objects(object x):
    return x

cdef api int thrice(char **args, const Py_ssize_t *sizes, const Py_ssize_t *strides, void *data) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(sizes[0]):
        (<double *>(args[1] + i * strides[1]))[0] = 3 * (<double *>(args[0] + i * strides[0]))[0]
    return 0
"""

# What other modules of Cython may call: these may have optional arguments.
SHARED = """
cpdef double with_default(double x, double y=*, int n=*)
cdef double optional(int n, double y=*)
"""

CAPSULES = r"""
#include <Python.h>
#include <pyop/kernel.h>
#define ALIKE "float64[*s] -> float64[*s]"

static int add_data(char *const *args, const intptr_t *sizes, const intptr_t *strides, void *data) {
    for (intptr_t i = 0; i < sizes[0]; ++i) {
        const double x = *(const double *)(args[0] + i * strides[0]);
        if (x > 100) return 3;
        *(double *)(args[1] + i * strides[1]) = x + *(const double *)data;
    }
    return 0;
}
static int raising(char *const *args, const intptr_t *sizes, const intptr_t *strides, void *data) {
    (void)args; (void)sizes; (void)strides; (void)data;
    PyErr_SetString(PyExc_KeyError, "by the kernel");
    return -1;
}
static double half(double x) { return x / 2; }
static const char *words(int status, void *data) { (void)data; return status == 3 ? "more than 100" : NULL; }
static double shift = 10;
static const pyop_kernel_info infos[] = {
    {PYOP_KERNEL_VERSION, PYOP_KERNEL, (void (*)(void))add_data, &shift, 0, "add_data", ALIKE, NULL, words},
    {PYOP_KERNEL_VERSION, PYOP_KERNEL, (void (*)(void))raising, NULL, PYOP_KERNEL_GIL, "raising", ALIKE, NULL, NULL},
    {PYOP_KERNEL_VERSION, PYOP_SCALAR, (void (*)(void))half, NULL, PYOP_KERNEL_STATEFUL, "half", NULL,
     "double (double)", NULL},
    {99, PYOP_KERNEL, (void (*)(void))add_data, &shift, 0, "newer", ALIKE, NULL, words},
};
static PyObject *kernel(PyObject *self, PyObject *k) {
    (void)self;
    return PyCapsule_New((void *)&infos[PyLong_AsLong(k)], PYOP_KERNEL_CAPSULE, NULL);
}
static PyMethodDef methods[] = {{"kernel", kernel, METH_O, NULL}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "pyop_test_capsules", NULL, -1, methods};
PyMODINIT_FUNC PyInit_pyop_test_capsules(void) { return PyModule_Create(&module); }
"""


def extension(name, c_source):
    """An extension module, compiled and imported."""
    made = folder() / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    paths = [f"-I{sysconfig.get_path('include')}", f"-I{pyop.get_include()}"]
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-w", *paths, "-o", made, c_source], check=True)
    spec = importlib.util.spec_from_file_location(name, made)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cython_module():
    if COMPILER is None:
        pytest.skip(NO_COMPILER)
    pytest.importorskip("Cython", reason="Cython compiles the functions of this test")
    source = folder() / "pyop_test_cython.pyx"
    source.write_text(CYTHON)
    source.with_suffix(".pxd").write_text(SHARED)
    subprocess.run([sys.executable, "-m", "cython", "-3", source], check=True, cwd=folder())
    return extension("pyop_test_cython", source.with_suffix(".c"))


@pytest.fixture(scope="module")
def capsules():
    if COMPILER is None:
        pytest.skip(NO_COMPILER)
    source = folder() / "capsules.c"
    source.write_text(CAPSULES)
    return extension("pyop_test_capsules", source)


def test_the_header_is_plain_c99():
    if COMPILER is None:
        pytest.skip(NO_COMPILER)
    for flags in (["-std=c99", "-x", "c"], ["-std=c++11", "-x", "c++"]):
        if (
            flags[-1] == "c++"
            and subprocess.run([COMPILER, "-x", "c++", "-E", "-"], input=b"", capture_output=True).returncode
        ):
            continue  # a compiler of C alone
        command = [COMPILER, *flags, "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{pyop.get_include()}"]
        subprocess.run([*command, "-fsyntax-only", "-"], input=b"#include <pyop/kernel.h>\n", check=True)


def test_cython_functions(cython_module):
    scaled = pyop.native_op(cython_module, "scaled", "float64[n], float64 -> float64[n]")
    assert scaled(np.ones(3), np.array(2.0)).tolist() == [4, 4, 4]
    assert scaled.__wrapped__.code.gil
    free = pyop.native_op(cython_module, "scaled", gil=False)
    plan = pyop.trace(lambda x: free(x, x) + 1, "float64[n]").compile()
    assert plan(np.ones(2)).tolist() == [4, 4]
    assert "0 calls of Python" in str(plan.explain())
    mixed = pyop.native_op(cython_module, "mixed")
    assert mixed(np.array([2, -3], np.int32), np.array([-5, 7]), np.float32(1.5)).tolist() == [-9, -20]
    thrice = pyop.native_op(cython_module, "thrice", "float64[*s] -> float64[*s]", gil=False)
    assert thrice(np.ones((2, 2))).tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize(("name", "gil"), [("checked", None), ("checked_nogil", None), ("checked_nogil", False)])
def test_what_cython_raises_is_raised(cython_module, name, gil):
    op = pyop.native_op(cython_module, name, gil=gil)
    bad = np.array([1.0, -1.0])
    plan = pyop.trace(lambda x: op(x) + 1, "float64[n]").compile()
    single = pyop.trace(lambda x: op(x) + 1, "float64[]").compile()
    for call in (op, plan, op.ufunc(), lambda x: single(x[1])):
        with pytest.raises(ValueError, match=r"negative: -1\.0"):
            call(bad)
    large = np.ones(100_000)
    large[-1] = -1
    for call in (op, plan, op.ufunc()):
        for array in (large, np.full(5, -1.0)):
            with pytest.raises(ValueError, match=r"negative: -1\.0") as info:
                call(array)
            assert info.value.__cause__ is info.value.__context__ is None
        assert call(np.ones(2)) is not None


def test_cython_signatures_are_compared_with_the_declaration(cython_module):
    with pytest.raises(TypeError, match=r"'float32\[n\] -> float64\[n\]', but the C function is 'double \(double\)'"):
        pyop.native_op(cython_module, "checked", "float32[n] -> float64[n]")
    with pytest.raises(TypeError, match="but the C function is"):
        pyop.native_op(cython_module, "checked", "float64[n], float64[n] -> float64[n]")
    with pytest.raises(AttributeError, match="exports no C function 'nothing', only: both, both_checked, checked"):
        pyop.native_op(cython_module, "nothing")
    with pytest.raises(TypeError, match="with an argument that no kernel has"):
        pyop.native_op(cython_module, "both", "float64[n] -> float64[n]", kind="kernel")
    with pytest.raises(TypeError, match="up to 6 integers"):
        pyop.native_op(cython_module, "many")
    with pytest.raises(TypeError, match="is not a number type that it knows"):
        pyop.native_op(cython_module, "objects")
    with pytest.raises(TypeError, match="name the function"):
        pyop.native_op(cython_module)


def test_cpdef_functions_and_optional_arguments(cython_module):
    x = np.linspace(0.5, 2.0, 5)
    for name, arguments, expected in (
        ("both", (x,), x),
        ("both_checked", (x, np.int32(3)), x + 3),
        ("with_default", (x,), x + 7.5),
        ("optional", (np.arange(5, dtype=np.int32),), np.arange(5) + 0.5),
    ):
        op = pyop.native_op(cython_module, name)
        np.testing.assert_array_equal(op(*arguments), expected)
        np.testing.assert_array_equal(pyop.compile(lambda *a, op=op: op(*a) + 0)(*arguments), expected)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(op))(*arguments), expected)
    with pytest.raises(ValueError, match=r"negative: -1\.0"):
        pyop.native_op(cython_module, "both_checked")(-x * 2, np.int32(1))


def test_ops_of_modules_are_pickled(cython_module):
    op = pyop.native_op(cython_module, "scaled", "float64[n], float64[n] -> float64[n]", gil=False)
    again = pickle.loads(pickle.dumps(op))
    assert again(np.ones(2), np.ones(2)).tolist() == [3, 3]
    assert (again.spec, again.parameters, again.__wrapped__.code.gil) == (op.spec, op.parameters, False)
    plan = pyop.trace(lambda x: op(x, x), "float64[n]")
    assert pickle.loads(pickle.dumps(plan)).compile()(np.ones(2)).tolist() == [3, 3]


def test_capsules(capsules):
    op = pyop.native_op(capsules.kernel(0))
    gc.collect()
    plan = pyop.trace(lambda x: op(x) * 2, "float64[n]").compile()
    assert op(np.ones((2, 2))).tolist() == [[11, 11], [11, 11]]
    assert plan(np.ones(2)).tolist() == [22, 22]
    for call in (op, plan):
        with pytest.raises(RuntimeError, match="kernel 'add_data' failed with status 3: more than 100"):
            call(np.full(2, 101.0))
    raising = pyop.native_op(capsules.kernel(1))
    for call in (raising, pyop.trace(raising, "float64[n]").compile(), raising.ufunc()):
        with pytest.raises(KeyError, match="by the kernel"):
            call(np.ones(2))
    half = pyop.native_op(capsules.kernel(2), "halved")
    assert half.stateful
    assert half.name == "halved"
    assert half(3.0) == 1.5
    with pytest.raises(ValueError, match="version 99"):
        pyop.native_op(capsules.kernel(3))
    with pytest.raises(TypeError, match=r"named 'pyop\.kernel'"):
        pyop.native_op(datetime.datetime_CAPI)


@needs_compiler
def test_cffi():
    cffi = pytest.importorskip("cffi", reason="cffi is not installed")
    ffi = cffi.FFI()
    ffi.cdef(
        "double plus(double, double); int roots(char **, intptr_t *, intptr_t *, void *); double ratio(double, ...);"
    )
    lib = ffi.dlopen(str(library()))
    plus = pyop.native_op(ffi.addressof(lib, "plus"), "plus")
    assert plus(np.ones(2), np.ones(2)).tolist() == [2, 2]
    cast = pyop.native_op(ffi.cast("double(*)(double, double)", ffi.addressof(lib, "plus")), "cast")
    assert cast(np.ones(2), np.ones(2)).tolist() == [2, 2]
    roots = pyop.native_op(ffi.addressof(lib, "roots"), "roots", "float64[*s] -> float64[*s]")
    assert roots(np.array([4.0])).tolist() == [2]
    with pytest.raises(TypeError, match="variable number"):
        pyop.native_op(ffi.addressof(lib, "ratio"), "ratio")
    with pytest.raises(TypeError, match="calls Python"):
        pyop.native_op(ffi.callback("double(double)", lambda x: x), "callback")
    with pytest.raises(TypeError, match="takes a function of cffi"):
        pyop.native_op(ffi.new("double *"), "pointer")


def test_numba():
    numba = pytest.importorskip("numba", reason="numba is not installed")

    @numba.cfunc("float64(float64, int64)")
    def power(base, n):
        result = 1.0
        for _ in range(n):
            result *= base
        return result

    op = pyop.native_op(power)
    assert op.parameters == ("base", "n")
    assert op.name == "power"
    assert op(np.array([2.0, 3.0]), n=np.array([3, 2])).tolist() == [8, 9]
    plan = pyop.trace(lambda x: op(x, np.array(2)) + 1, "float64[n]").compile()
    del power
    gc.collect()
    assert plan(np.array([2.0, 3.0])).tolist() == [5, 10]


# --- ufuncs of Python ops


@pyop.op("float64[*s], float64[*s] -> float64[*s]")
def longer(x, y):
    if (x < -100).any():
        raise ValueError("too small")
    return np.hypot(x, y)


def test_ufunc_of_an_elementwise_op():
    u = longer.ufunc()
    x = np.arange(1.0, 5.0)
    assert u.reduce(x) == np.hypot.reduce(x)
    assert np.array_equal(u.accumulate(x), np.hypot.accumulate(x))
    assert np.array_equal(u.outer(x, x), np.hypot.outer(x, x))
    assert np.array_equal(u(x[::-1], 1), np.hypot(x[::-1], 1))
    assert u(np.ones((2, 0)), 1.0).shape == (2, 0)
    for call in (lambda: u(-1000.0, 1.0), lambda: u.reduce(np.array([-1000.0, 1.0])), lambda: u.outer([-1000.0], x)):
        with pytest.raises(ValueError, match="too small"):
            call()


def test_ufunc_of_a_gufunc_op_and_of_cores():
    dot = pyop.op(lambda x, y: np.dot(x, y), "(n),(n)->()", dtype="float64", name="dot")
    assert dot.ufunc().signature == "(n),(n)->()"
    assert dot.ufunc()(np.ones((4, 3)), np.arange(3.0)).tolist() == [3.0] * 4
    backwards = pyop.op(lambda x: x[::-1], "float64[n] -> float64[n]", name="backwards")
    assert backwards.ufunc()(np.arange(6).reshape(2, 3)).tolist() == [[2, 1, 0], [5, 4, 3]]
    both = pyop.op(lambda x: (x.min(), x.max()), "(n)->(),()", dtype=float, name="both")
    assert [r.tolist() for r in both.ufunc()(np.arange(6.0).reshape(2, 3))] == [[0, 3], [2, 5]]
    open_dtype = pyop.op(lambda x: x.sum(), "(n)->()", name="total")
    assert open_dtype.ufunc(dtype=float)(np.ones((2, 3))).tolist() == [3, 3]


def test_a_kept_argument_of_a_ufunc_stays_what_it_was():
    kept = []
    keep = pyop.op(lambda x: kept.append(x) or x + 1, "float64[*s] -> float64[*s]", name="keep")
    assert keep.ufunc()(np.arange(3)).tolist() == [1, 2, 3]
    gc.collect()
    assert kept[0].tolist() == [0, 1, 2]


def test_what_is_no_ufunc_says_why():
    for op, words in [
        (pyop.op(lambda x: x, "(n)->(n)", name="a"), "no ufunc without dtypes"),
        (pyop.op(lambda x: x, "float64 -> float64", name="b"), "any number of dimensions"),
        (pyop.op(lambda x: x[1:], "float64[n] -> float64[n-1]", name="c"), "names and numbers"),
        (pyop.op(lambda x: x, outputs={"a": "float64[]"}, name="d"), "declare inputs and outputs"),
        (pyop.op(lambda x: x, "float64[n] -> float64[n]", name="e", mutates="x"), "mutates="),
    ]:
        with pytest.raises(TypeError, match=words):
            op.ufunc()


def test_refcounts_of_ufuncs_of_ops():
    x = np.arange(1.0, 5.0)
    u = longer.ufunc()
    u(x, x)
    before = sys.getrefcount(x), sys.getrefcount(longer)
    for _ in range(100):
        u(x, x)
        with pytest.raises(ValueError, match="too small"):
            u(-1000.0, x)
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(longer)) == before
    del u
    gc.collect()
    assert sys.getrefcount(longer) == before[1] - 1


def test_dask_and_xarray_take_the_ufunc():
    u = longer.ufunc()
    x = np.arange(1.0, 7.0)
    dask = pytest.importorskip("dask.array", reason="dask is not installed")
    assert np.array_equal(u(dask.from_array(x, chunks=2), 1.0).compute(), np.hypot(x, 1))
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    got = xarray.apply_ufunc(u, xarray.DataArray(x, dims="t"), 1.0)
    assert got.dims == ("t",)
    assert np.array_equal(got, np.hypot(x, 1))
