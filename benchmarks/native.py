"""B15: an op of compiled code on 8 doubles against np.add; and against ctypes, cffi and numba."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import pyop

from .harness import Harness, Row, Statement

SOURCE = """
double plus(double a, double b) { return a + b; }
void plus_arrays(const double *a, const double *b, double *out, long n) {
    for (long i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
"""


def run(harness: Harness) -> list[Row]:
    """One C function of two numbers, over 8 of them."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return [Row("B15", "a native op on 8 doubles", "≤ 0.6", None, 0.6, detail="needs a C compiler")]
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "plus.c", Path(folder) / "plus.so"
        source.write_text(SOURCE)
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        return rows(harness, library)


def rows(harness: Harness, library: Path) -> list[Row]:
    function = ctypes.CDLL(str(library)).plus
    function.argtypes, function.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double
    a, b, out = np.arange(8.0), np.ones(8), np.empty(8)
    names = {
        "op": pyop.native_op(function, "plus", "float64[n], float64[n] -> float64[n]"),
        "add": np.add,
        "a": a,
        "b": b,
        "out": out,
    }
    assert np.array_equal(names["op"](a, b), a + b)
    statements = {
        "NumPy": Statement("add(a, b)", names),
        "op": Statement("op(a, b)", names),
        "op, out=": Statement("op(a, b, out=out)", names),
        "ufunc": Statement("u(a, b)", {**names, "u": names["op"].ufunc()}),
        "ctypes": by_ctypes(library, a, b, out),
    }
    for name, maker in (("cffi", by_cffi), ("numba", by_numba)):
        if importlib.util.find_spec(name):
            statements[name] = maker(library, a, b, out)
    times = harness.compare(statements)
    found = [
        Row("B15", f"a native op on 8 doubles{how} over np.add(a, b)", f"≤ {budget}", times.ratio(key, "NumPy"), budget,
            detail=f"{times.ns(key):.0f} ns, np.add {times.ns('NumPy'):.0f} ns")
        for key, how, budget in (("op", "", 0.6), ("op, out=", ", with out=,", 0.25))
    ]  # fmt: skip
    what = {
        "ufunc": "op.ufunc() itself",
        "ctypes": "the same on arrays by ctypes, addresses at hand",
        "cffi": "the same on arrays by cffi, pointers at hand",
        "numba": "the same by numba.njit, which makes the result",
    }
    for key, title in what.items():
        ratio = times.ratio(key, "NumPy") if key in statements else None
        detail = f"{times.ns(key):.0f} ns" if key in statements else f"needs {key}"
        found.append(Row("B15", f"{title}, over np.add(a, b)", "reported", ratio, math.inf, detail=detail))
    return found


def by_ctypes(library: Path, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Statement:
    function = ctypes.CDLL(str(library)).plus_arrays
    function.argtypes, function.restype = [ctypes.c_void_p] * 3 + [ctypes.c_long], None
    addresses = {"p": a.ctypes.data, "q": b.ctypes.data, "r": out.ctypes.data}
    return Statement("f(p, q, r, 8)", {"f": function, **addresses, "keep": (a, b, out)})


def by_cffi(library: Path, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Statement:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef("void plus_arrays(const double *, const double *, double *, long);")
    lib = ffi.dlopen(str(library))
    pointers = {name: ffi.from_buffer("double[]", x) for name, x in (("p", a), ("q", b), ("r", out))}
    return Statement("f(p, q, r, 8)", {"f": lib.plus_arrays, **pointers, "keep": lib})


def by_numba(library: Path, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Statement:
    import numba

    add = numba.njit(lambda x, y: x + y)
    add(a, b)
    return Statement("f(a, b)", {"f": add, "a": a, "b": b})
