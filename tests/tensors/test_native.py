"""Operations that are recorded without Python: the numbers of NumPy, the derivatives of the table of rules."""

import gc
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pyop
from pyop import autograd
from pyop.autograd import recording

from .ops import leaf, numbers

X = np.array([[0.3, 0.8, 1.7], [2.2, 0.5, 1.1]])
UNARY = [
    *(np.negative, np.absolute, np.square, np.reciprocal, np.sqrt, np.exp, np.expm1, np.log, np.log1p, np.sin, np.cos),
    *(np.tan, np.arctan, np.sinh, np.cosh, np.tanh),
]
BINARY = [np.add, np.subtract, np.multiply, np.divide]


def tensor(a, grad=True):
    return pyop.Tensor(np.array(a), requires_grad=grad)


def generally(ufunc, *args):
    """The same call on the way that knows every function."""
    return recording.call(ufunc, ufunc, args, {})


def derivatives(make, inputs):
    """Value, gradients, and the gradients of a number made of these."""
    tensors = [tensor(a) for a in inputs]
    y = make(*tensors)
    seed = np.linspace(0.5, 1.5, y.size).reshape(y.shape)
    first = autograd.grad(y, tensors, seed, create_graph=True, materialize_grads=True)
    mixed = [(g * g * 0.5).sum() for g in first if g.requires_grad]
    second = autograd.grad(sum(mixed), tensors, materialize_grads=True) if mixed else ()
    return [None if t is None else t.numpy() for t in (y, *first, *second)]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        a, b = (np.zeros(1) if x is None else x for x in (a, b))
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ufunc", UNARY, ids=lambda u: u.__name__)
def test_one_operand(ufunc, dtype):
    x = X.astype(dtype)
    y = ufunc(tensor(x))
    assert y.grad_fn.name() == f"{ufunc.__name__.capitalize()}Backward"
    assert np.array_equal(y.numpy(), ufunc(x))
    assert y.dtype == dtype
    if dtype is np.float64:
        assert_same(derivatives(ufunc, [x]), derivatives(lambda t: generally(ufunc, t), [x]))
        assert autograd.gradcheck(ufunc, [tensor(x)])
        assert autograd.gradgradcheck(ufunc, [tensor(x)])
    else:
        y = ufunc(t := tensor(x))
        y.backward(np.ones_like(x))
        assert t.grad.dtype == dtype


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), ()), ((), ()), ((0,), (0,))]
)
def test_two_operands_of_any_shapes(ufunc, shapes):
    a, b = (np.resize(X, shape) + 0.25 * k for k, shape in enumerate(shapes))
    assert_same(derivatives(ufunc, [a, b]), derivatives(lambda s, t: generally(ufunc, s, t), [a, b]))
    assert np.array_equal(ufunc(tensor(a), tensor(b)).numpy(), ufunc(a, b))


@pytest.mark.parametrize("other", [3, 0.25, np.float32(0.25), np.int64(3), True, np.array(2.5), np.arange(1, 4), X[0]])
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_an_operand_without_gradient(ufunc, other):
    for dtype in (np.float64, np.float32):
        for args in (lambda t: (t, other), lambda t: (other, t)):
            x = tensor(X.astype(dtype))
            found, expected = ufunc(*args(x)), ufunc(*args(X.astype(dtype)))
            assert found.dtype == expected.dtype
            assert np.array_equal(found.numpy(), expected)
            found.backward(np.ones(found.shape))
            assert x.grad.dtype == dtype
    for args in (lambda t: (t, other), lambda t: (other, t)):
        found = derivatives(lambda t, args=args: ufunc(*args(t)), [X])
        assert_same(found, derivatives(lambda t, args=args: generally(ufunc, *args(t)), [X]))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.0, 0.5, 1.0, 2.0, 2.5, -0.5])
def test_powers_of_numbers(exponent):
    assert_same(derivatives(lambda t: t**exponent, [X]), derivatives(lambda t: generally(np.power, t, exponent), [X]))
    assert np.array_equal((tensor(X) ** exponent).numpy(), X**exponent)
    assert numbers((leaf(2.0) ** leaf(3.0)).detach()) == [8]  # the general way


@pytest.mark.parametrize(
    "shapes", [((3, 2), (2, 4)), ((3, 2), (2,)), ((2,), (2, 4)), ((3,), (3,)), ((5, 3, 2), (2, 4))]
)
def test_matrix_products(shapes):
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=shape) for shape in shapes)
    assert np.array_equal((tensor(a) @ tensor(b)).numpy(), a @ b)
    found = derivatives(lambda s, t: s @ t, [a, b])
    assert_same(found, derivatives(lambda s, t: generally(np.matmul, s, t), [a, b]))
    assert autograd.gradcheck(lambda s, t: s @ t, [tensor(a), tensor(b)])


@pytest.mark.parametrize("function", [np.sum, np.mean])
@pytest.mark.parametrize("kwargs", [{}, {"axis": 0}, {"axis": -1}, {"axis": 1, "keepdims": True}, {"keepdims": True}])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 2), (1, 4)])
def test_sums_and_means(function, kwargs, shape):
    x = np.resize(X, shape)
    y = function(tensor(x), **kwargs)
    assert np.array_equal(y.numpy(), function(x, **kwargs))
    assert y.grad_fn.name() == f"{function.__name__.capitalize()}Backward"

    def general(t):
        return recording.call(function, function, (t,), kwargs)

    assert_same(derivatives(lambda t: function(t * t, **kwargs), [x]), derivatives(lambda t: general(t * t), [x]))


def test_what_sums_leave_to_numpy():
    assert np.sum(tensor(X), axis=(0, 1)).shape == ()
    assert np.sum(tensor(X), where=X > 1).numpy() == X[X > 1].sum()
    with pytest.raises(np.exceptions.AxisError):
        np.sum(tensor(X), axis=2)
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"), np.errstate(all="ignore"):
        np.mean(tensor(np.ones((0,))))
    half = np.full(5000, 0.1, np.float16)
    assert np.mean(tensor(half)).numpy() == np.mean(half)


@pytest.mark.parametrize("size", [3, 10_000])
def test_floating_point_errors_are_told_as_numpy_tells_them(size):
    x = tensor(np.zeros(size))
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        y = np.log(x)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        y.sum().backward()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        1.0 / x
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf((1.0 / x).numpy()).all()
    assert np.isnan(np.array([np.nan]) * tensor([1.0])).numpy().all()  # and a NaN that was there is no error


def test_gradients_that_somebody_keeps_are_not_overwritten():
    """Backward computes in place, on what nobody else can see."""
    kept = []
    x = tensor(X)
    a = x * 2.0
    b = np.sin(a)
    for t in (a, b):
        t.register_hook(kept.append)
    b.grad_fn.register_hook(lambda made, given: kept.extend([*made, *given]))
    c = b * b + b
    seed = np.ones(X.shape)
    first = autograd.grad(c, [b, a, x], seed, retain_graph=True)
    copies = [np.array(k) for k in kept]
    values = [t.numpy().copy() for t in first]
    c.backward(seed)
    assert all(np.array_equal(k, v) for k, v in zip(kept, copies, strict=False))
    assert all(np.array_equal(t.numpy(), v) for t, v in zip(first, values, strict=True))
    assert np.array_equal(seed, np.ones(X.shape))
    np.testing.assert_allclose(x.grad.numpy(), (2 * np.sin(2 * X) + 1) * np.cos(2 * X) * 2)


def test_only_what_is_read_is_saved_and_that_is_freed():
    x, y = tensor(X), tensor(X, grad=False)
    assert (x + y).grad_fn.saved_tensors == ()
    kept, other = (x * y).grad_fn.saved_tensors
    assert kept is None
    assert other.numpy() is y.numpy()
    z = x * x
    z.sum().backward()
    with pytest.raises(RuntimeError, match=r"MultiplyBackward .* second time"):
        z.sum().backward()
    total = np.sum(x * 1.0, axis=0)
    total.backward(np.ones(3))
    with pytest.raises(RuntimeError, match=r"SumBackward .* second time"):
        total.backward(np.ones(3))
    s = x + y
    s.sum().backward()
    s.sum().backward()  # there was nothing to free


def test_a_change_of_what_was_saved_is_noticed():
    x = tensor(X)
    a = x * 1.0
    b = a * a
    with autograd.no_grad():
        a += 1
    with pytest.raises(RuntimeError, match="modified in place"):
        b.sum().backward()
    constant = np.ones(3)
    c = x * constant
    constant[0] = 5
    with pytest.raises(RuntimeError, match="through NumPy"):
        c.sum().backward()


def test_complex_numbers_and_forward_mode_go_the_general_way():
    z = tensor(X + 1j)
    (g,) = autograd.grad(np.real(z * z).sum(), [z])
    np.testing.assert_allclose(g.numpy(), 2 * np.conj(X + 1j))
    _, tangent = autograd.jvp(lambda t: np.sin(t) * t, (X,), (np.ones(X.shape),))
    np.testing.assert_allclose(np.asarray(tangent), np.cos(X) * X + np.sin(X))


def test_recording_leaves_nothing_behind():
    gc.collect()
    x = tensor(np.ones(3))
    gc.disable()
    try:
        before = sys.getrefcount(x), sys.getrefcount(x.numpy())
        for _ in range(3):
            y = np.exp(-(x * x) / 2.0).sum() + (x @ x) ** 3 - x.mean()
            (g,) = autograd.grad(y, [x], create_graph=True)
            g.sum().backward()
            x.grad = None
        del y, g
        assert (sys.getrefcount(x), sys.getrefcount(x.numpy())) == before
    finally:
        gc.enable()


KEYS = [
    0,
    -1,
    slice(1, None),
    slice(None, None, -2),
    None,
    ...,
    (0, 1),
    (slice(None), 1),
    (..., None, 0),
    (-1, slice(1)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_views_by_indices(key):
    x = tensor(X)
    y = x[key]
    assert np.array_equal(y.numpy(), X[key])
    assert y.grad_fn.name() == "GetitemBackward"

    def generally_taken(t):
        return recording.getitem(t, key)

    assert_same(
        derivatives(lambda t: (t * t)[key] * 2.0, [X]), derivatives(lambda t: generally_taken(t * t) * 2.0, [X])
    )
    assert np.array_equal(tensor(X, grad=False)[key].numpy(), X[key])


@pytest.mark.parametrize(
    "view",
    [lambda t: t.reshape(3, 2), lambda t: np.reshape(t, -1), lambda t: t.T, np.transpose, lambda t: t.T.reshape(6)],
)
def test_views_of_another_shape(view):
    assert np.array_equal(view(tensor(X)).numpy(), view(X))
    weight = np.linspace(1, 2, 6).reshape(view(X).shape)
    assert autograd.gradcheck(lambda t: view(t * t) * weight, [tensor(X)])
    assert autograd.gradgradcheck(lambda t: view(t * t) * weight, [tensor(X)])


def test_views_share_the_version_of_their_memory():
    x, free = tensor(X) * 1.0, tensor(X, grad=False)
    for make in (lambda t: t[0], lambda t: t.T, lambda t: t.reshape(6)):
        view, other = make(x), make(free)
        with autograd.no_grad():
            x += 1
        free[0, 0] = 5
        assert view._version == x._version
        assert other._version == free._version
        with pytest.raises(RuntimeError, match="changed in place after the view was taken"):
            view * 2
    with pytest.raises(IndexError):
        x[7]
    with pytest.raises(ValueError, match="cannot reshape"):
        x.reshape(4)


@pytest.mark.parametrize("kind", ["product", "slice"])
def test_deep_chains_run_and_die_without_recursion(kind):
    x = tensor(np.ones(2))
    y = x
    for _ in range(100_000):
        y = y * x if kind == "product" else y[:]
    y.backward(np.ones(2))
    assert numbers(x.grad) == ([100_001, 100_001] if kind == "product" else [1, 1])
    del y


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_goes_backward():
    code = """
import os, numpy as np, pyop
x = pyop.Tensor(np.ones(2), requires_grad=True)
y = (np.sin(x) * x).sum()
y.backward(retain_graph=True)
child = os.fork()
if child == 0:
    y.backward()
    os._exit(0 if np.array_equal(x.grad.numpy(), 2 * (np.cos([1, 1]) + np.sin([1, 1]))) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "0", done.stderr
