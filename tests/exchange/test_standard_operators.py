"""NumPy functions, losses and their gradients in standard operators, at the ends of the range too."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402
from pyop._tree import flatten  # noqa: E402


def leaves(tree):
    return [np.asarray(leaf) for leaf in flatten(tree)[0]]


def ways(graph, *args):
    """The results of a graph whose export has standard operators only: of pyop, then of those who read it."""
    model = pyop.onnx.export(graph)
    assert {node.domain for node in model.graph.node} == {""}, [n.op_type for n in model.graph.node if n.domain]
    onnx.checker.check_model(model)
    feeds = {value.name: arg for value, arg in zip(graph.inputs, args, strict=True)}
    yield leaves(graph.compile()(*args))
    yield leaves(list(pyop.onnx.load(model, trust="none").compile()(**feeds).values()))
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    yield session.run(None, feeds)


def assert_same_everywhere(graph, *args, rtol=1e-11):
    expected, *others = ways(graph, *args)
    for got in others:
        for mine, theirs in zip(got, expected, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            tolerance = rtol if theirs.dtype != np.float32 else 2e-5
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance / 10)


def cross_entropy(x, w1, b1, w2, b2, y):
    z = np.tanh(x @ w1 + b1) @ w2 + b2
    z = z - np.max(z, axis=1, keepdims=True)
    return -np.mean(np.sum(y * (z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))), axis=1))


def relu_network(x, w1, b1, w2, b2, y):
    return np.mean((np.maximum(x @ w1 + b1, 0) @ w2 + b2 - y) ** 2)


def softmax_network(x, w1, b1, w2, b2, y):
    h = x @ w1 + b1
    e = np.exp(np.where(h > 0, h, 0.01 * h) @ w2 + b2)
    return -np.sum(y * np.log(e / e.sum(axis=-1, keepdims=True) + 1e-6)) / x.shape[0]


def normalised(x):
    scaled = (x - np.mean(x, axis=-1, keepdims=True)) / np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)
    return np.sum(scaled * np.tanh(x))


NETWORK = ["float32[n,m]", "float32[m,k]", "float32[k]", "float32[k,c]", "float32[c]", "float32[n,c]"]
V, M = "float64[n]", "float64[n,m]"
LOSSES = {
    "cross entropy": (cross_entropy, NETWORK),
    "relu": (relu_network, NETWORK),
    "softmax": (softmax_network, NETWORK),
    "least squares": (lambda a, x, b: np.sum((a @ x - b) ** 2), [M, "float64[m]", V]),
    "normalised": (normalised, [M]),
    "slices": (lambda x: np.sum(x[1:] * x[:-1]) + np.sum(x[::-2]) * x[0] + np.sum(np.diff(x) ** 2), [V]),
    "moments": (lambda x: np.mean(x**2) * np.var(x) + np.sum(np.std(x, axis=0)) + np.var(x, ddof=1), [M]),
    "extrema": (lambda x: np.max(x) * np.sum(np.min(x, axis=0)) + np.sum(np.max(x, axis=1) ** 2), [M]),
    "norms": (lambda x: np.linalg.norm(x) + np.sum(np.linalg.norm(x, axis=1)) + np.linalg.norm(x[0], 1), [M]),
    "spread": (lambda x, b, c: np.sum(np.tanh(x + b) * c), [M, "float64[n,1]", "float64[]"]),
    "choices": (lambda x, y: np.sum(np.where(x > y, x * y, np.clip(x, -0.5, 0.5)) + np.maximum(x, y)), [M, M]),
    "joined": (lambda x, y: np.sum(np.concatenate([x, y[1:]]) ** 2) + np.sum(np.stack([x, x]) ** 3), [V, "float64[m]"]),
    "picked": (lambda x, i: -np.mean(np.take(x, i, axis=0) ** 2) + np.sum(x[i, 0]), [M, "int64[k]"]),
    "of a class": (lambda x, i: -np.mean(np.take_along_axis(x, i, axis=1)), [M, "int64[n,1]"]),
    "masked": (lambda x: np.sum(x[x > 0] ** 2), [M]),
    "moved": (lambda x: np.sum(x * np.roll(x, 3)) + np.sum(np.pad(np.flip(x), 2) ** 2) + np.sum(np.repeat(x, 2)), [V]),
    "softplus": (lambda x: np.sum(np.log1p(np.exp(x)) + np.logaddexp(0, x) + np.expm1(x)), [V]),
    "contracted": (lambda x, y: np.sum(np.einsum("ij,kj->ik", x, y) ** 2) + np.trace(np.inner(x, y)), [M, M]),
    "matrices": (lambda x, y: np.sum((x @ y) ** 2), ["float64[2,n,m]", "float64[m,k]"]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients(name):
    f, specs = LOSSES[name]
    sizes = {"n": 6, "m": 4, "k": 5, "c": 3}
    rng = np.random.default_rng(1)
    args = []
    for spec in map(pyop.Spec.parse, specs):
        shape = tuple(sizes.get(str(size), size) for size in spec.shape)
        args.append(
            (rng.normal(size=shape) if spec.dtype.kind == "f" else rng.integers(0, 3, shape)).astype(spec.dtype)
        )
    argnums = tuple(k for k, x in enumerate(args) if x.dtype.kind == "f")
    graph = pyop.trace(pyop.value_and_grad(f, argnums=argnums), *specs)
    assert_same_everywhere(graph, *args)


SPECIAL = np.array(
    [0.0, -0.0, 1, -1, 0.5, -0.75, 1e-300, -1e-20, 1e-9, 3.7, -25, 88, 700, -800, 1e18, -1e200, np.inf, -np.inf, np.nan]
)
UNARY = [
    np.log1p, np.expm1, np.log2, np.log10, np.exp2, np.cbrt, np.tan, np.arctan, np.arcsin, np.arccos, np.cosh, np.sinh,
    np.arcsinh, np.arccosh, np.arctanh, np.degrees, np.radians, np.trunc, np.nan_to_num,
    *([np.fix] if np.lib.NumpyVersion(np.__version__) < "2.5.0" else []),  # deprecated since
]  # fmt: skip
BINARY = [np.logaddexp, np.logaddexp2, np.hypot, np.arctan2, np.copysign, np.heaviside, np.fmax, np.fmin, np.isclose]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_formulas_of_one_number(function, dtype):
    x = np.concatenate([SPECIAL, np.random.default_rng(2).normal(size=200) * np.logspace(-8, 1, 200)]).astype(dtype)
    if function is np.tan:
        x = x[~(np.abs(x) > 1e6)]  # beyond, sine and cosine of runtimes differ
    expected, *others = ways(pyop.trace(function, f"{dtype}[n]"), x)
    for (got,) in others:
        assert got.dtype == expected[0].dtype
        np.testing.assert_allclose(got, expected[0], rtol=1e-14 if dtype == "float64" else 1e-5, atol=0)


@pytest.mark.parametrize(("function", "operator"), [(np.tan, "Tan"), (np.arctan, "Atan"), (np.cosh, "Cosh")])
def test_an_operator_that_runtimes_lack_for_a_dtype_is_a_formula_there(function, operator):
    narrow, wide = (
        [node.op_type for node in pyop.onnx.export(pyop.trace(function, f"{dtype}[n]")).graph.node]
        for dtype in ("float32", "float64")
    )
    assert narrow == [operator]
    assert len(wide) > 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_formulas_of_two_numbers(function):
    x, y = map(np.ravel, np.meshgrid(SPECIAL, SPECIAL))
    expected, *others = ways(pyop.trace(function, "float64[n]", "float64[n]"), x, y)
    for (got,) in others:
        np.testing.assert_allclose(got, expected[0], rtol=1e-14, atol=0)
        if function in (np.arctan2, np.copysign):
            real = ~np.isnan(got)
            np.testing.assert_array_equal(np.signbit(got)[real], np.signbit(expected[0])[real])


def test_quotients_and_remainders():
    x = np.array([7, -7, 7, -7, 0, 5, 9, -9], np.int64)
    y = np.array([3, 3, -3, -3, 2, -5, 1, -1], np.int64)
    assert_same_everywhere(pyop.trace(lambda x, y: (x // y, x % y, x // 3, x % -4), "int64[n]", "int64[n]"), x, y)
    a, b = x * 1.25, y * 0.5
    assert_same_everywhere(pyop.trace(lambda x, y: (x // y, x % y, np.divmod(x, 0.3)), V, V), a, b)
    # A divisor of zero and the least integer by -1, which end the process of a runtime that divides.
    graph = pyop.trace(lambda x, y: (x % y, np.floor_divide(x, y)), "int32[n]", "int32[n]")
    args = np.array([5, -(2**31)], np.int32), np.array([0, -1], np.int32)
    with np.errstate(all="ignore"):
        assert_same_everywhere(graph, *args)


M3 = "float64[n,3]"
FUNCTIONS = {
    "sizes as numbers": (lambda x: (x * x.shape[0], np.sum(x) / x.size, x + 2 * x.shape[0] - x.shape[1]), [M3]),
    "several indices": (
        lambda x, i: (x[i, i % 3], x[np.arange(4), [0, 1, 2, 0]], x[i, -1], x[1:, i % 3], x[None][0, i, 1]),
        [M3, "int64[4]"],
    ),
    "axes of indices": (lambda x, i: (x[:, i, i], x[i, :, i], x[0, i], x[..., i]), ["float64[3,3,3]", "int64[2,2]"]),
    "masks": (
        lambda x: (x[x > 0], x[:, np.array([True, False, True])], np.compress([True, False, True], x, axis=1)),
        [M3],
    ),
    "places": (lambda x: (np.nonzero(x > 0), np.argwhere(x > 0), np.flatnonzero(x), np.where(x < 0)), [M3]),
    "reductions": (
        lambda x: (
            np.sum(x, where=x > 0),
            np.max(x, initial=9.0),
            np.prod(x, axis=0, initial=2.0),
            np.mean(x, axis=1, where=x > -9),
            np.any(x),
            np.all(x, axis=0),
            np.count_nonzero(x, axis=0),
            np.std(x, axis=0, ddof=1),
            np.ptp(x, axis=1),
            np.average(x, axis=0),
        ),
        [M3],
    ),
    "joining": (
        lambda x: (
            np.dstack([x, x]),
            np.column_stack([x[0], x[1]]),
            np.append(x, [1.0, 2.0]),
            np.repeat(x, 2, 1),
            np.roll(x, 4, axis=0),
            np.roll(x, -1),
            np.rot90(x),
            np.broadcast_arrays(x, x[0]),
        ),
        [M3],
    ),
    "margins": (lambda x: (np.pad(x, ((1, 2), (0, 1))), np.pad(x, 1, constant_values=3)), [M3]),
    "margins of elements": (lambda x: (np.pad(x, 1, mode="edge"), np.pad(x, 1, mode="reflect")), ["float64[4,3]"]),
    "products": (
        lambda x: (
            np.inner(x, x),
            np.vdot(x, x),
            np.tensordot(x, x, ([1], [1])),
            np.vecdot(x, x),
            np.matvec(x, x[0]) if hasattr(np, "matvec") else x @ x[0],
            np.dot(x[None], x.T),
            np.add.outer(x[0], x[1]),
        ),
        [M3],
    ),
    "norms": (
        lambda x: (
            [np.linalg.norm(x, k) for k in ("fro", 1, -1, np.inf)]
            + [np.linalg.norm(x, k, axis=0) for k in (3, np.inf, -np.inf)]
        ),
        [M3],
    ),
    "diagonals": (lambda x: (np.diagonal(x), np.diagonal(x, 1), np.trace(x), np.diagonal(x, -5)), [M3]),
    "powers at equal steps": (lambda x: np.logspace(x[0], x[1, 0], 4, base=2.0), [M3]),
    "select": (lambda x: (np.select([x > 1, x < 0], [x, x * 2], 0.5), np.round(x, 2), x.clip(0)), [M3]),
    "powers of integers": (lambda x: (x**2, x**5, x**8), ["int32[n]"]),
    "narrow integers": (
        lambda x: (
            np.maximum(x, 3),
            x.max(axis=0),
            np.argmax(x),
            np.triu(x),
            x @ x.T,
            np.where(x > 0, x, 1),
            np.sum(x),
            x + 2,
        ),
        ["uint16[4,3]"],
    ),
    "bytes": (
        lambda x: (
            np.minimum(x, 3),
            x.min(),
            np.argmin(x, axis=1),
            np.tril(x),
            x @ x.T,
            np.sum(x),
            np.prod(x, axis=0),
            np.cumsum(x, axis=0),
            x[x > 0],
        ),
        ["uint8[4,3]"],
    ),
    "halves": (lambda x: (np.mean(x), np.var(x, axis=0), np.log1p(np.abs(x))), ["float16[n,3]"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f, specs = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    args = []
    for spec in map(pyop.Spec.parse, specs):
        shape = tuple(size if isinstance(size, int) else 4 for size in spec.shape)
        made = rng.normal(size=shape) if spec.dtype.kind == "f" else rng.integers(0, 3, shape)
        args.append((made + 30 * (spec.dtype == np.int32)).astype(spec.dtype))
    rtol = 2e-3 if name == "halves" else 1e-11
    assert_same_everywhere(pyop.trace(f, *specs), *args, rtol=rtol)
