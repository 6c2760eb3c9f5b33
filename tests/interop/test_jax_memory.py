"""What JAX's buffers and pyop's calls have of each other: writes, copies, and what is kept."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

import pyop

jax = pytest.importorskip("jax", reason="JAX is not installed", exc_type=ImportError)

import jax.numpy as jnp  # noqa: E402

from pyop.interop.jax import wrap  # noqa: E402

from .ten_ops import CASES  # noqa: E402
from .test_jax import same, x64  # noqa: E402, F401


def test_no_copy_of_what_a_native_plan_reads_and_writes():
    """The addresses that a kernel of C is called with are those of JAX's own buffers."""
    seen = []
    pointers = ctypes.POINTER(ctypes.c_void_p), *[ctypes.POINTER(ctypes.c_ssize_t)] * 2, ctypes.c_void_p
    loop = ctypes.CFUNCTYPE(None, *pointers)  # one that cannot fail: others compute beside their results

    @loop
    def double(args, sizes, strides, data):
        seen.append([args[0], args[1]])
        for k in range(sizes[0]):
            number = ctypes.c_double.from_address(args[0] + k * strides[0]).value
            ctypes.c_double.from_address(args[1] + k * strides[1]).value = 2 * number

    by_address = loop(ctypes.cast(double, ctypes.c_void_p).value)
    native = pyop.native_op(by_address, "double", "float64[*s] -> float64[*s]", kind="ufunc_loop")
    n = 5000  # fewer go through the cells of a tape
    f = jax.jit(wrap(pyop.trace(native, f"float64[{n}]").compile()))
    x = jnp.arange(float(n))
    for _ in range(3):
        seen.clear()
        y = f(x).block_until_ready()
        same(y, np.arange(float(n)) * 2)
        assert seen[0] == [x.unsafe_buffer_pointer(), y.unsafe_buffer_pointer()]
    n = 1 << 20
    g = jax.jit(wrap(pyop.trace(lambda x: np.sin(x) * 2, f"float64[{n}]").compile()))
    big = jnp.ones(n)
    g(big).block_until_ready()
    with pyop.profile() as profile:
        g(big).block_until_ready()
    assert sum(row.bytes_out for row in profile.rows) >= 8 * n
    assert sum(row.bytes_copied for row in profile.rows) == 0


# --- what is written, and what is kept


def test_writes_are_results_alone():
    @pyop.op("float64[n] -> float64[n]", mutates="x")
    def ranked(x):
        x.sort()
        return x

    f, x = wrap(ranked), np.array([3.0, 1.0, 2.0])
    given = jnp.asarray(x)
    for way in (f, jax.jit(f), jax.jit(lambda x: f(x) + 0 * x), lambda x: jax.vmap(f)(x[None])[0]):
        same(way(given), np.sort(x))
        same(given, x)
    same(jax.jit(lambda x: (f(x), x))(given)[1], x)
    numpys = x.copy()
    f(numpys)
    same(numpys, x)
    with pytest.raises(pyop.NoRule, match="ranked"):
        jax.grad(lambda x: f(x).sum())(given)


def test_writes_that_nobody_sees_are_refused():
    silent = pyop.op(lambda x: x.sort(), "float64[n] -> ()", mutates="x", name="silent")
    for way in (wrap(silent), jax.jit(wrap(silent))):
        with pytest.raises(TypeError, match=r"op 'silent' writes into 'x' and returns nothing"):
            way(jnp.ones(3))


@pytest.mark.parametrize("case", [CASES[0], *CASES[-1:]], ids=lambda c: c.name)
def test_a_thousand_traces_keep_one_entry(case):
    import pyop.interop.jax_native as native

    arguments = [jnp.asarray(a) for a in case.made()]

    def total(*a):
        return sum(y.sum() for y in jax.tree_util.tree_leaves(wrap(case.op)(*a, **case.statics)))

    def traced(times, f):
        for _ in range(times):
            jax.make_jaxpr(lambda *a: f(*a))(*arguments)
        return len(native._kept)

    once = traced(1, jax.grad(total))
    for _ in range(10):
        jax.clear_caches()  # what JAX remembers of derivatives
        assert traced(1, jax.grad(total)) == once
    assert traced(1000, total) == once


def test_wrappers_are_shared_and_end():
    op = pyop.op(lambda x: x, "float64[n] -> float64[n]", name="ends")
    assert wrap(op) is wrap(op)
    assert wrap(op, derivatives="jvp") is not wrap(op)
    gone = weakref.ref(op)
    wrap(op)
    del op
    gc.collect()
    assert gone() is None
    compiled = pyop.compile(lambda x: x + 1)
    jax.make_jaxpr(wrap(compiled))(jnp.ones(3))
    one = wrap(compiled)
    before = len(one._made)
    del one
    gc.collect()
    jax.make_jaxpr(lambda x: wrap(compiled)(x))(jnp.ones(3))
    assert len(wrap(compiled)._made) == before == 1
