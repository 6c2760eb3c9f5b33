"""Ufuncs with core dimensions, linear algebra and products in plans against NumPy itself, bit for bit."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_checks import assert_same, check, numbers, observed, python_calls

import pyop

DTYPES = ["float64", "float32", "complex128", "int64", "int8", "bool", "float16"]


def laid_out(x, layout):
    """The same elements in another layout."""
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "transposed":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x
    if layout == "strided":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if layout == "reversed":
        return x[..., ::-1]
    if layout == "unaligned":
        return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    return x


SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((3,), (3, 4)),
    ((3, 4), (4, 5)),
    ((1, 4), (4, 1)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 1)),
    ((2, 3, 4), (4,)),
    ((3, 4), (3, 5)),  # does not fit
    ((3, 0), (0, 2)),
    ((0, 3), (3, 2)),
    ((40, 50), (50, 30)),
]
PRODUCTS = [np.matmul, np.dot, np.inner, *(getattr(np, f) for f in ("vecdot", "matvec", "vecmat") if hasattr(np, f))]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(PRODUCTS),
    st.sampled_from(SHAPES),
    st.sampled_from(DTYPES),
    st.tuples(*[st.sampled_from(["C", "C", "F", "transposed", "strided", "reversed", "unaligned"])] * 2),
    st.booleans(),
)
def test_random_products(product, shapes, dtype, layouts, named):
    rng = np.random.default_rng(0)
    a, b = (laid_out(numbers(rng, dtype, s), how) for s, how in zip(shapes, layouts, strict=True))
    check(product, a, b, named=named and product is np.matmul)


def test_a_matrix_times_its_transpose():
    a = np.random.default_rng(1).normal(size=(30, 20))
    check(lambda x: x @ x.T, a)
    check(lambda x: np.dot(x.T, x), a)


def test_common_products_run_without_python():
    rng = np.random.default_rng(2)
    a, b, v = rng.normal(size=(4, 5)), rng.normal(size=(5, 3)), rng.normal(size=5)
    for f, x, y in [(np.matmul, a, b), (np.dot, a, b), (np.dot, v, v), (np.inner, a, v), (np.dot, a, v)]:
        plan = check(f, x, y, named=False)
        assert plan.report()["native"] == 1


def well_conditioned(rng, *shape):
    a = rng.normal(size=shape)
    return a @ a.swapaxes(-1, -2) + np.eye(shape[-1])


@pytest.mark.parametrize("layout", ["C", "F", "strided", "unaligned"])
@pytest.mark.parametrize("stack", [(), (3,), (2, 3), (0,)])
def test_linalg(layout, stack):
    rng = np.random.default_rng(3)
    a = laid_out(well_conditioned(rng, *stack, 4, 4), layout)
    for dtype in ("float64", "complex128", "float32"):
        m = a.astype(dtype)
        for f in (np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.eigvalsh):
            check(f, m)
        for f in (np.linalg.eigh, np.linalg.slogdet):
            check(lambda v, f=f: tuple(f(v)), m)
        check(np.linalg.solve, m, rng.normal(size=(4, 2)).astype(dtype), named=False)
        check(np.linalg.solve, m, rng.normal(size=4).astype(dtype), named=False)


def test_linalg_runs_without_python():
    a = well_conditioned(np.random.default_rng(4), 4, 4)
    for f in (np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.eigvalsh):
        assert python_calls(check(f, a), a) == []
    for f in (np.linalg.eigh, np.linalg.slogdet):
        assert python_calls(check(lambda v, f=f: tuple(f(v)), a), a) == []
    plan = check(np.linalg.solve, a, a[0], named=False)
    assert python_calls(plan, a, a[0]) == []


def test_linalg_fails_as_numpy_does():
    singular = np.ones((3, 3))
    check(np.linalg.inv, singular)
    check(np.linalg.cholesky, -np.eye(3))
    check(np.linalg.solve, singular, np.ones(3), named=False)
    check(np.linalg.det, singular)
    check(lambda v: tuple(np.linalg.slogdet(v)), singular)
    check(lambda v: tuple(np.linalg.slogdet(v)), np.zeros((2, 2)))
    check(lambda v: tuple(np.linalg.eigh(v)), np.full((2, 2), np.nan))
    check(np.linalg.inv, np.ones((2, 3)), named=True)
    check(np.linalg.inv, np.full((2, 2), np.nan))
    check(np.linalg.inv, np.zeros((2, 2)))
    plan = pyop.trace(np.linalg.inv, "float64[n,n]").compile()
    with np.errstate(all="ignore"), pytest.raises(np.linalg.LinAlgError, match="Singular"):
        plan(np.zeros((2, 2)))
    assert plan(2 * np.eye(2)).tolist() == [[0.5, 0.0], [0.0, 0.5]]


def test_floating_point_errors_of_products_are_numpys():
    big = np.full((2, 2), 1e200)
    check(np.matmul, big, big, named=False)
    check(np.matmul, np.full((2, 2), np.inf), np.zeros((2, 2)), named=False)
    plan = pyop.trace(np.matmul, "float64[2,2]", "float64[2,2]").compile()
    for f in (np.matmul, plan):
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow"):
            f(big, big)


def test_large_products_release_the_gil_and_agree():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(5, 60, 70)), rng.normal(size=(70, 50))
    check(np.matmul, a, b, named=False)


def test_scipy_ufuncs_run_natively():
    special = pytest.importorskip("scipy.special")
    x, y = np.linspace(0.1, 3, 20), np.linspace(0.5, 2, 20)
    for f, arguments in [
        (special.gamma, (x,)),
        (special.beta, (x, y)),
        (special.betainc, (x, y, x / 4)),
        (special.sici, (x,)),
    ]:
        plan = check(f, *arguments, named=False)
        assert plan.report()["native"] == 1, f
    check(lambda v: np.add.reduce(special.gamma(v)), x)


def test_several_outputs_and_half_precision():
    rng = np.random.default_rng(6)
    for dtype in ("float64", "float16", "float32"):
        x, y = numbers(rng, dtype, 9), numbers(rng, dtype, 9) + np.array(7, dtype)
        for f in (np.divmod, np.modf, np.frexp):
            arguments = (x, y)[: f.nin]
            plan = check(lambda *a, f=f: f(*a), *arguments, named=False)
            assert plan.report()["native"] == 1


@pytest.mark.parametrize("signatures", [["float64(float64, float64)", "float32(float32, float32)"], []])
def test_numba_ufuncs_run_natively(signatures):
    numba = pytest.importorskip("numba", reason="numba is not installed: pip install numba")
    f = numba.vectorize(signatures)(lambda a, b: a * 2 + b)
    x = np.arange(5.0)
    for a in (x, x.astype("float32")):
        plan = check(lambda v: f(v, v + 1), a)
        assert plan.report()["native"] == 2
        assert python_calls(plan, a) == []
    for g in (lambda v: f(v, 2.0), lambda v: np.sum(f(v, v)), lambda v: f.reduce(v), lambda v: f(x, v)):
        check(g, x, named=False)


def test_numba_ufuncs_live_as_long_as_the_plans_that_use_them():
    numba = pytest.importorskip("numba", reason="numba is not installed: pip install numba")

    def make():
        f = numba.vectorize(lambda a, b: a * 3 - b)
        return pyop.trace(lambda v: f(v, v), "float64[n]").compile(), weakref.ref(f._dispatcher)

    plan, owner = make()
    gc.collect()
    assert owner() is not None
    assert plan(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_numba_gufuncs_run_natively():
    numba = pytest.importorskip("numba", reason="numba is not installed: pip install numba")

    @numba.guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(n)->()")
    def dot(a, b, out):
        out[0] = 0
        for i in range(a.shape[0]):
            out[0] += a[i] * b[i]

    x = np.arange(12.0).reshape(3, 4)
    plan = check(lambda v, w: dot(v, w), x, x[0], named=False)
    assert plan.report()["native"] == 1


class Around:
    """A ufunc that is not of NumPy's type, as numba's are not."""

    nout = 1

    def __init__(self, ufunc):
        self.ufunc = ufunc

    def __call__(self, *inputs, **kwargs):
        for x in inputs:
            if isinstance(x, pyop.Value):
                return x.__array_ufunc__(self, "__call__", *inputs, **kwargs)
        return self.ufunc(*inputs, **kwargs)


def test_ufuncs_of_another_type():
    f = Around(np.hypot)
    x = np.arange(5.0)
    assert check(lambda v: f(v, v * 2), x).report()["native"] == 2
    unknown = pyop.trace(lambda v: f(v, v), pyop.Spec()).compile()
    assert_same(observed(unknown, x), observed(f, x, x))
    check(lambda v: f(v, v, where=True), x)
    with pytest.raises(TypeError, match="reduce of"):
        pyop.trace(lambda v: v.__array_ufunc__(f, "reduce", v), "float64[n]")


def test_python_ufuncs_are_called():
    f = np.frompyfunc(lambda a, b: a + b, 2, 1)
    x = np.arange(4.0)
    plan = pyop.trace(lambda v: f(v, v), "float64[n]").compile()
    assert plan.report()["native"] == 0
    assert plan(x).tolist() == (x + x).tolist()
    total = pyop.trace(lambda v: f.reduce(v), "float64[n]").compile()
    assert total(x) == 6
