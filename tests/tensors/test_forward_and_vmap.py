"""Forward mode and batches."""

import threading

import numpy as np
import pytest

import pyop
from pyop import autograd

from .ops import leaf, make, numbers


class Cube(pyop.Function):
    @staticmethod
    def forward(x, scale=1.0):
        return scale * x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * g * x * x, None

    @staticmethod
    def jvp(ctx, t, _=None):
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * t * x * x


def test_jvp_through_functions_and_numpy():
    f = lambda x: np.sum(np.sin(Cube.apply(x, 2.0)) * x)
    x = np.array([0.3, -0.7])
    t = np.array([1.0, 2.0])
    y, moved = autograd.jvp(f, pyop.Tensor(x), t)
    eps = 1e-6
    up, down = f(pyop.Tensor(x + eps * t)), f(pyop.Tensor(x - eps * t))
    assert np.allclose(y.numpy(), f(pyop.Tensor(x)).numpy())
    assert np.allclose(moved.numpy(), (up.numpy() - down.numpy()) / (2 * eps), rtol=1e-5)
    assert autograd.gradcheck(f, (leaf(0.3, -0.7),), check_forward_ad=True)


def test_forward_over_reverse_and_reverse_over_forward():
    x = leaf(2.0)
    v = np.array([1.0])

    def slope(x):
        y = Cube.apply(x)
        return autograd.grad(y, [x], create_graph=True)[0]

    _, second = autograd.jvp(lambda x: slope(x), (x,), (v,))
    assert numbers(second) == [12]
    _, first = autograd.jvp(Cube.apply, (x,), (v,))
    assert numbers(first) == [12]
    assert numbers(autograd.grad(first, [x])[0]) == [12]


def test_one_tensor_twice_and_missing_tangents():
    x = pyop.Tensor(np.array(3.0))
    _, t = autograd.jvp(lambda a, b: a * b, (x, x), (1.0, 10.0))
    assert t.numpy() == 33
    _, t = autograd.jvp(lambda a, b: a * b, (x, x), (1.0, None))
    assert t.numpy() == 3
    assert x._tangent is None
    y, t = autograd.jvp(lambda a: {"same": a, "constant": pyop.Tensor(np.ones(2))}, (x,), (1.0,))
    assert numbers(t["constant"]) == [0, 0]
    assert y["same"]._tangent is None


@pytest.mark.parametrize(
    ("jvp", "error", "words"),
    [
        (None, NotImplementedError, "Op has no jvp"),
        (lambda ctx, t: (t, t), RuntimeError, "expected 1, got 2"),
        (lambda ctx, t: np.ones(3), RuntimeError, r"\(3,\)"),
    ],
)
def test_wrong_tangents(jvp, error, words):
    op = make(lambda ctx, x: x * 1, jvp=jvp)
    with pytest.raises(error, match=words):
        autograd.jvp(op.apply, (leaf(1.0),), (np.ones(1),))


def test_what_jvp_refuses():
    x = leaf(1.0)
    with pytest.raises(ValueError, match="shape"):
        autograd.jvp(lambda x: x, (x,), (np.ones(2),))
    with pytest.raises(ValueError, match="as many"):
        autograd.jvp(lambda x: x, (x,), ())
    with pytest.raises(TypeError, match="int64"):
        autograd.jvp(lambda x: x, (np.arange(3),), (np.ones(3),))
    with pytest.raises(NotImplementedError, match="inside"):
        autograd.jvp(lambda x: autograd.jvp(lambda y: y, (x,), (np.ones(1),)), (x,), (np.ones(1),))
    # The failure left no level behind.
    assert numbers(autograd.jvp(lambda x: x * 2, (x,), (np.ones(1),))[1]) == [2]


class Square(pyop.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x @ y, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g @ y.T + h, x.T @ g


def test_a_generated_rule_is_the_loop_and_is_differentiable():
    x = pyop.Tensor(np.random.default_rng(0).random((2, 3, 4)), requires_grad=True)
    y = pyop.Tensor(np.random.default_rng(1).random((4, 2)), requires_grad=True)
    got, total = autograd.vmap(Square.apply, in_dims=(1, None))(pyop.Tensor(np.moveaxis(x.numpy(), 0, 1)), y)
    assert np.allclose(got.numpy(), x.numpy() @ y.numpy())
    assert np.allclose(total.numpy(), x.numpy().sum(axis=(1, 2)))
    got, _ = autograd.vmap(Square.apply, in_dims=(0, None))(x, y)
    np.sum(got).backward()
    assert np.allclose(x.grad.numpy(), np.broadcast_to(y.numpy().sum(axis=1), x.shape))


def test_numpy_functions_nested_batches_and_out_dims():
    a = np.random.default_rng(0).random((3, 4, 5))
    b = np.random.default_rng(1).random((5, 3))
    f = lambda x, y: (np.sin(x) * y, np.sum(x * 2.0), x[0])
    got = autograd.vmap(f, in_dims=(0, 1), out_dims=(1, 0, 0))(a, b)
    want = [f(a[k], b[:, k]) for k in range(3)]
    assert np.allclose(got[0], np.stack([w[0] for w in want], axis=1))
    assert np.allclose(got[1], [w[1] for w in want])
    assert np.allclose(got[2], [w[2] for w in want])
    outer = autograd.vmap(lambda x: autograd.vmap(lambda r, c: r * c, in_dims=(0, None))(x, x[0]))(a)
    assert np.allclose(outer, a * a[:, :1])
    assert np.allclose(autograd.vmap(lambda x: 1.0)(a), np.ones(3))


def test_what_vmap_refuses():
    for call, error, words in [
        (lambda: autograd.vmap(lambda x: x, in_dims=None)(np.ones(3)), ValueError, "at least one"),
        (lambda: autograd.vmap(lambda x, y: x)(np.ones(3), np.ones(4)), ValueError, "different sizes"),
        (lambda: autograd.vmap(lambda x: x, in_dims=(0, 0))(np.ones(3)), ValueError, "2 entries for 1"),
        (lambda: autograd.vmap(lambda x: x, in_dims=2)(np.ones(3)), ValueError, "in_dims=2"),
        (
            lambda: autograd.vmap(make(lambda x: x, setup_context=lambda *a: None).apply)(np.ones(3)),
            RuntimeError,
            "rule",
        ),
        (lambda: autograd.vmap(make(lambda c, x: x, generate_vmap_rule=True).apply)(np.ones(3)), RuntimeError, "split"),
        (lambda: autograd.vmap(lambda x: 1 if x > 0 else 2)(np.ones(3)), TypeError, "np.where"),
        (lambda: autograd.vmap(lambda x: np.asarray(x))(np.ones(3)), TypeError, "no array"),
    ]:
        with pytest.raises(error, match=words):
            call()
    both = make(lambda x: x, setup_context=lambda *a: None, vmap=lambda *a: None, generate_vmap_rule=True)
    with pytest.raises(RuntimeError, match="both"):
        autograd.vmap(both.apply)(np.ones(3))
    wrong = make(lambda x: x, setup_context=lambda *a: None, vmap=lambda info, dims, x: (x, 5))
    with pytest.raises(RuntimeError, match="axis 5"):
        autograd.vmap(wrong.apply)(np.ones(3))


def test_examples_have_what_arrays_have():
    a = np.random.default_rng(3).standard_normal((5, 3, 4))
    z = a + 1j * a[::-1]
    for f in (
        lambda x: x.T @ x,
        lambda x: x.mT,
        lambda x: x.real + x.imag * x.size + len(x),
        lambda x: x.astype(np.complex64).flatten(),
        lambda x: x.reshape(4, 3).transpose(1, 0),
        lambda x: x.reshape((2, 6), order="F").conj().sum(axis=0),
    ):
        for batch, dim in ((z, 0), (np.moveaxis(z, 0, 1), 1)):
            got, want = autograd.vmap(f, in_dims=dim)(batch), np.stack([f(example) for example in z])
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6)
    for name in ("linspace", "pi"):
        with pytest.raises(AttributeError, match=f"no '{name}'"):
            autograd.vmap(lambda x, name=name: getattr(x, name))(a)
    for name, remedy in {
        "sort": "np.sort",
        "fill": "np.full_like",
        "put": "np.where",
        "item": "what vmap returns",
    }.items():
        with pytest.raises(TypeError, match=rf"x\.{name}\(\).*{remedy}"):
            autograd.vmap(lambda x, name=name: getattr(x, name)())(a)


def test_pullbacks_and_tangents_of_examples():
    x, t = np.random.default_rng(4).standard_normal((2, 5, 3))
    f = lambda x: np.exp(x) * np.sum(x)
    value, pushed = pyop.vmap(lambda x, t: pyop.jvp(f, (x,), (t,)))(x, t)
    np.testing.assert_allclose(value, [f(one) for one in x])
    np.testing.assert_allclose(pushed, [pyop.jvp(f, (a,), (b,))[1] for a, b in zip(x, t, strict=True)])
    pulled = pyop.vmap(lambda x, t: pyop.vjp(f, x)[1](t)[0])(x, t)
    np.testing.assert_allclose(pulled, [pyop.vjp(f, a)[1](b)[0] for a, b in zip(x, t, strict=True)])


def test_vmap_nests_on_each_thread_by_itself():
    started, nested, ended = threading.Event(), threading.Event(), threading.Event()

    def elsewhere(x):
        started.set()
        assert nested.wait(30)
        return x

    def inner(y):
        nested.set()
        assert ended.wait(30)
        return pyop.vmap(lambda z: np.sum(z) + np.sum(y))(y)

    def outer(x):
        assert started.wait(30)
        return pyop.vmap(inner)(x)

    def other_thread():
        pyop.vmap(elsewhere)(np.ones(2))
        ended.set()

    thread = threading.Thread(target=other_thread)
    thread.start()
    x = np.arange(24.0).reshape(2, 3, 4)
    got = pyop.vmap(lambda x: started.wait(30) and outer(x))(x[:, :, :, None])
    thread.join()
    np.testing.assert_array_equal(got, x + x.sum(2, keepdims=True))


def test_a_primal_that_changes_by_another_name_is_refused():
    def f(x, other):
        other[1:3] = 5.0
        return np.dot(x, x)

    x = np.arange(4.0)
    with pytest.raises(TypeError, match="pass a copy"):
        pyop.jvp(lambda t: f(t, x), (x,), (np.ones(4),))


def test_an_example_passes_for_what_it_is():
    X = np.arange(6.0).reshape(2, 3)

    def f(x):
        e = x[0]
        assert isinstance(x, np.ndarray)
        assert not isinstance(e, np.ndarray)
        assert isinstance(e, float)
        assert isinstance(x.sum(), np.float64)
        assert not np.isscalar(x)
        assert np.isscalar(e)
        y = x * 2
        z = y
        y += 1
        e += 1
        return z, e

    z, e = pyop.vmap(f)(X)
    assert np.array_equal(z, X * 2 + 1)
    assert np.array_equal(e, X[:, 0] + 1)
    assert np.array_equal(X, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.__iadd__(1),
        lambda x: np.add(x, 1, out=np.zeros(3)),
        lambda x: (x * 2)[1:].__imul__(2),
        lambda x: np.copyto(np.zeros(3), x),
        lambda x: x.sort(),
        lambda x: (x * 1).__setitem__(0, 1.0),
        lambda x: float(x[0]),
        lambda x: x * 2 if np.allclose(x, [0.0, 1.0, 2.0]) else x,
        lambda x: x * 2 if hasattr(x, "flags") else x,
        lambda x: x[x > 1],
    ],
)
def test_an_example_that_cannot_be_written_or_read_is_refused(f):
    X = np.arange(6.0).reshape(2, 3)

    def swallowing(x):
        try:
            return f(x)
        except Exception:
            return x

    for function in (f, swallowing):
        with pytest.raises((TypeError, AttributeError), match=r"use|write|put|take|choose"):
            pyop.vmap(function)(X)
    assert np.array_equal(X, np.arange(6.0).reshape(2, 3))
