"""pyop.compile(f, fallback=True): what is not NumPy's becomes calls of Python in the plan, and is never wrong."""

from __future__ import annotations

import ctypes
import math
import warnings

import numpy as np
import pytest

import pyop

pytest.importorskip("scipy")
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.special

SPARSE = scipy.sparse.csr_array(np.triu(np.arange(25.0).reshape(5, 5)))
WITHOUT_LOOP = np.vectorize(lambda a, b: a + b if a > b else a - b)
LIBM = ctypes.CDLL(None)
LIBM.cos.restype, LIBM.cos.argtypes = ctypes.c_double, [ctypes.c_double]
LIBM.memset.argtypes = [np.ctypeslib.ndpointer(np.float64), ctypes.c_int, ctypes.c_size_t]
CURVE = scipy.interpolate.CubicSpline(np.arange(5.0), np.arange(5.0) ** 2)


def special(x):
    return scipy.special.logsumexp(x) + 1, np.float32(2) * x


def image(x):
    y = scipy.ndimage.gaussian_filter(x, 1.0)
    y[1:-1] += 1
    return y * 2


def linalg(x):
    p, low, u = scipy.linalg.lu(np.outer(x, x) + np.eye(5))
    return low @ u, scipy.linalg.cho_solve(scipy.linalg.cho_factor(np.outer(x, x) + 5 * np.eye(5)), p @ x)


def sparse(x):
    y = SPARSE @ x + x @ SPARSE
    y[0] = 3.0
    return SPARSE.T.dot(y), scipy.sparse.linalg.spsolve((SPARSE + scipy.sparse.eye_array(5) * 30).tocsc(), y)


def vectorized(x):
    return WITHOUT_LOOP(x, 1.0), np.vectorize(lambda v: v + 1 if v > 1 else v - 1)(x)


def along(x):
    return np.apply_along_axis(lambda row: scipy.special.softmax(row), 0, np.outer(x, x))


def of_c(x):
    return x.astype(np.float32) * LIBM.cos(x[0]) + math.exp(x[1])


def curve(x):
    return CURVE(np.clip(x, 0, 4)), CURVE.derivative()(x[0])


def held_callback(x):
    def residual(z):
        return z * z * z - np.abs(x)

    return scipy.optimize.root(residual, np.ones(5)).x * 2


def integrated(x):
    return scipy.integrate.quad(lambda t, a: np.sum(x * t) + a, 0, 1, args=(2.0,))[0] * x


def in_a_loop(x):
    for _ in range(20):
        x = x * 0.5 + (SPARSE @ x) * 0.01
    return x


def transformed(x):
    return np.abs(scipy.fft.fft(x)), scipy.signal.lfilter([1.0], [1, -0.5], x)


NODES = [
    special,
    image,
    linalg,
    sparse,
    vectorized,
    of_c,
    curve,
    held_callback,
    integrated,
    in_a_loop,
    transformed,
]


def of_other_sizes(x):
    return scipy.signal.find_peaks(np.sin(9 * x), height=0.2)[0] * 2


def decides(x):
    return x + 1 if scipy.special.logsumexp(x) > 2 else x - 1


def an_object(x):
    return scipy.interpolate.CubicSpline(np.arange(5.0), x)(2.5)


def into_its_argument(x):
    y = x * 2
    LIBM.memset(y, 0, 16)
    return y + x


def into_an_argument(x):
    x[0] = 3.0
    x[1:] = scipy.ndimage.gaussian_filter(x, 1.0)[1:]


def that_raises(x):
    return scipy.linalg.cholesky(np.outer(x, x) + (x[0] - 1) * np.eye(5))


def that_is_caught(x):
    try:
        return scipy.linalg.cholesky(np.outer(x, x) + (x[0] - 1) * np.eye(5))
    except np.linalg.LinAlgError:
        return x


PLAIN = [along, of_other_sizes, decides, an_object, into_its_argument, into_an_argument, that_raises, that_is_caught]

WAYS = [{}, {"optimize": False}, {"threads": 2}]


def outcome(f, x):
    try:
        return f(x), x
    except Exception as error:
        return type(error), x


def check_same(f, compiled):
    for seed in (0, 1, 2, 0, 3):
        x = np.abs(np.random.default_rng(seed).normal(size=5)) * (1 + seed)
        wanted, found = outcome(f, x.copy()), outcome(compiled, x.copy())
        assert pyop._tree.flatten(wanted)[1] == pyop._tree.flatten(found)[1]
        for a, b in zip(pyop._tree.flatten(wanted)[0], pyop._tree.flatten(found)[0], strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b, strict=False)


@pytest.mark.parametrize("options", WAYS, ids=["", "as it is", "threads"])
@pytest.mark.parametrize("f", NODES)
def test_calls_are_nodes(f, options):
    compiled = pyop.compile(f, fallback=True, **options)
    check_same(f, compiled)
    graph = compiled.plan_for(np.ones(5)).graph
    assert "OpaqueCall" in {type(node.function).__name__ for node in graph.nodes if node.kind == "py"}


@pytest.mark.parametrize("f", NODES)
def test_sizes_with_names(f):
    check_same(f, pyop.compile(f, "float64[n]", fallback=True))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", PLAIN)
def test_what_cannot_be_a_node_runs_itself(f):
    check_same(f, pyop.compile(f, fallback=True))


def test_it_is_told_when_the_function_itself_runs():
    compiled = pyop.compile(an_object, fallback=True)
    with pytest.warns(
        pyop.RetraceWarning, match=r"calls 'CubicSpline', which returns a .* \(at .*test_fallback.py:\d+"
    ):
        compiled(np.ones(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(np.zeros(5))


def test_another_kind_of_result_runs_itself():
    compiled = pyop.compile(of_other_sizes, fallback=True)
    compiled(np.linspace(0.1, 3, 5))
    with pytest.warns(pyop.RetraceWarning, match=r"'find_peaks', called at .*:\d+, returns results of another kind"):
        assert compiled(np.zeros(5)).shape == (0,)


def test_each_call_is_one_call():
    counted = []
    count = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda v: counted.append(v) or v + len(counted))

    def f(x):
        return x * count(x[0])

    compiled = pyop.compile(f, fallback=True)
    for k in range(4):
        assert compiled(np.ones(2))[0] == 2.0 + k
    assert len(counted) == 4


def test_warnings_and_errors_of_a_later_call_are_its_own():
    compiled = pyop.compile(that_raises, fallback=True)
    x = np.ones(5) * 3
    np.testing.assert_array_equal(compiled(x), that_raises(x))
    with pytest.raises(np.linalg.LinAlgError, match=r"leading minor|potrf"):
        compiled(np.zeros(5))


@pytest.mark.parametrize(
    ("f", "who"),
    [
        (special, "logsumexp"),
        (sparse, "__matmul__"),
        (of_c, "LIBM.cos"),
        (vectorized, "WITHOUT_LOOP"),
        (image, "scipy.ndimage"),
    ],
)
def test_without_it_the_warning_names_function_line_and_remedies(f, who):
    with pytest.warns(pyop.RetraceWarning) as caught:
        got = pyop.compile(f)(np.ones(5))
    assert repr(got) == repr(f(np.ones(5)))
    text = str(caught[0].message)
    for word in (who, f"test_fallback.py:{f.__code__.co_firstlineno + 1}", "fallback=True", "pyop.op"):
        assert word in text, text


def smoothed(x):
    return np.sum(scipy.ndimage.gaussian_filter(x, 1.0))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")  # the function itself may have run, and said so
@pytest.mark.parametrize(
    "derivative",
    [
        pyop.grad(pyop.compile(smoothed, fallback=True)),
        pyop.compile(pyop.grad(smoothed), fallback=True),
        lambda x: pyop.jvp(pyop.compile(smoothed, fallback=True), (x,), (x,)),
    ],
    ids=["of the compiled function", "compiled", "forward"],
)
def test_no_gradient_through_it_in_silence(derivative):
    with pytest.raises(TypeError, match="the gradient through them zero without a word"):
        derivative(np.ones(5))
