"""`pyop.interop.torch.op_of`: functions of torch as ops with their gradients, and tensors whose gradient none loses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pyop

torch = pytest.importorskip("torch", reason="torch is not installed")

from pyop.interop.torch import op_of, wrap  # noqa: E402

X = np.array([0.5, -1.0, 2.0])
softplus = op_of(torch.nn.functional.softplus, "float64[n] -> float64[n]")


def test_values_and_gradients():
    want = 1 / (1 + np.exp(-X))
    np.testing.assert_allclose(softplus(X), np.log1p(np.exp(X)))
    np.testing.assert_allclose(pyop.grad(lambda x: np.sum(softplus(x)))(X), want)
    np.testing.assert_allclose(pyop.jacobian(softplus)(X), np.diag(want))
    plan = pyop.trace(pyop.value_and_grad(lambda x: np.sum(softplus(x) * x)), "float64[3]").compile()
    value, gradient = plan(X)
    np.testing.assert_allclose(value, np.sum(softplus(X) * X))
    np.testing.assert_allclose(gradient, want * X + softplus(X))
    compiled = pyop.compile(lambda x: softplus(np.sin(x)))
    np.testing.assert_allclose(compiled(X), softplus(np.sin(X)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "float16"])
def test_several_arguments_and_dtypes(dtype):
    op = op_of(lambda x, y: (x * y, x + 0 * y), "T[n], T[n] -> T[n], T[n]", name="both")
    x, y = X.astype(dtype), (X + 1).astype(dtype)
    results, pull = pyop.vjp(op, x, y)
    assert np.array_equal(results[0], x * y)
    ct = np.ones(3, dtype)
    found = pull((ct, 2 * ct))
    np.testing.assert_allclose(found[0], np.conj(y) + 2)
    np.testing.assert_allclose(found[1], np.conj(x))
    assert [g.dtype for g in found] == [x.dtype, y.dtype]


def test_integers_have_no_gradient():
    op = op_of(lambda x, k: x[k], "float64[n], int64[m] -> float64[m]", name="taken")
    gradient = pyop.grad(lambda x: np.sum(op(x, np.array([0, 0, 2]))))(X)
    assert gradient.tolist() == [2, 0, 1]


def test_containers_and_static_arguments():
    def mixed(parts, *, power=1):
        return {"sum": parts["a"] + parts["b"] ** power}

    op = op_of(mixed, inputs=[{"a": "float64[n]", "b": "float64[n]"}], outputs={"sum": "float64[n]"})
    assert np.array_equal(op({"a": X, "b": X}, power=2)["sum"], X + X**2)
    gradient = pyop.grad(lambda a, b: np.sum(op({"a": a, "b": b}, power=2)["sum"]), (0, 1))(X, X)
    assert np.array_equal(gradient[0], np.ones(3))
    assert np.array_equal(gradient[1], 2 * X)


def test_modules():
    layer = torch.nn.Linear(3, 2, dtype=torch.float64)
    text = "float64[b,3] -> float64[b,2]"
    x = np.ones((4, 3))
    for call in (op_of(layer, text), pyop.compile(op_of(layer, text))):
        with pytest.raises(TypeError, match=r"require a gradient.*requires_grad_\(False\)"):
            call(x)
    with pytest.raises(TypeError, match="require a gradient"):
        pyop.grad(lambda x: np.sum(op_of(layer, text)(x)))(x)
    by_arguments = op_of(
        lambda w, b, x: torch.func.functional_call(layer, {"weight": w, "bias": b}, (x,)),
        "float64[2,3], float64[2], float64[b,3] -> float64[b,2]",
        name="layer",
    )
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    gradient = pyop.grad(lambda w: np.sum(by_arguments(w, b, x)))(w)
    assert np.array_equal(gradient, np.full((2, 3), 4.0))
    layer.requires_grad_(False)
    op = op_of(layer, text)
    np.testing.assert_allclose(op(x), x @ w.T + b)
    np.testing.assert_allclose(pyop.grad(lambda x: np.sum(op(x)))(x), np.tile(w.sum(0), (4, 1)))


def test_nothing_is_copied():
    seen = []

    def double(x):
        seen.append(x.data_ptr())
        y = x * 2
        seen.append(y.data_ptr())
        return y

    y = op_of(double, "float64[n] -> float64[n]")(X)
    assert seen == [X.ctypes.data, y.ctypes.data]


def test_arguments_stay_as_they_are():
    def grow(x):
        x += 1
        return x

    op = op_of(grow, "float64[n] -> float64[n]")
    with pytest.raises(RuntimeError, match=r"has written into an argument.*x.clone\(\)"):
        op(X.copy())
    with pytest.raises(RuntimeError, match="in-place"):
        pyop.grad(lambda x: np.sum(op(x)))(X.copy())
    same = op_of(lambda x: x[1:], "float64[n] -> float64[m!]", name="tail")
    y = same(X)
    assert np.shares_memory(y, X)
    assert not y.flags.writeable
    assert pyop.grad(lambda x: np.sum(same(x)))(X).tolist() == [0, 1, 1]
    assert np.array_equal(softplus(X[::-1]), softplus(X)[::-1])


def test_there_and_back():
    again = op_of(wrap(softplus), "float64[n] -> float64[n]")
    assert np.array_equal(again(X), softplus(X))
    assert np.array_equal(pyop.grad(lambda x: np.sum(again(x)))(X), pyop.grad(lambda x: np.sum(softplus(x)))(X))
    x = torch.from_numpy(X.copy()).requires_grad_()
    y = torch.from_numpy(X.copy()).requires_grad_()
    wrap(softplus)(x).sum().backward()
    torch.nn.functional.softplus(y).sum().backward()
    assert torch.equal(x.grad, y.grad)


def test_errors():
    with pytest.raises(TypeError, match="all inputs and outputs"):
        op_of(torch.sin, outputs="float64[n]")
    with pytest.raises(TypeError, match="takes a callable"):
        op_of(3, "float64[n] -> float64[n]")
    wrong = op_of(lambda x: x.float(), "float64[n] -> float64[n]", name="wrong")
    with pytest.raises(pyop.OutputError, match="float32"):
        wrong(X)
    elsewhere = op_of(lambda x: x.to("meta"), "float64[n] -> float64[n]", name="elsewhere")
    with pytest.raises(TypeError, match=r"return y.cpu\(\)"):
        elsewhere(X)


def squared(x):
    return x * x


def test_pickles():
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    op = pickle.loads(cloudpickle.dumps(op_of(squared, "float64[n] -> float64[n]")))
    assert np.array_equal(op(X), X**2)
    assert np.array_equal(pyop.grad(lambda x: np.sum(op(x)))(X), 2 * X)


# --- elsewhere in pyop: a tensor that requires a gradient never loses it in silence

half = pyop.op(lambda x: x / 2, "float64[n] -> float64[n]", name="half")
halves = pyop.op(lambda xs: xs[0] / 2, inputs=[["float64[n]", "float64[n]"]], outputs="float64[n]", name="halves")
keyed = pyop.op(lambda xs: xs["a"] / 2, inputs=[{"a": "float64[n]"}], outputs="float64[n]", name="keyed")


class Half(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, ct):
        return ct / 2


def summed(x):
    return np.sum(x * 2)


PLAN = pyop.trace(lambda x: x * 2 + 1, "float64[3]").compile()


def run_of_graph(t):
    graph = pyop.trace(lambda x: x * 2, "float64[3]")
    return graph.run(None, dict(zip(graph.inputs, [t], strict=True)))


LOSING = {
    "an op": half,
    "an op, by keyword": lambda t: half(x=t),
    "an op in a list": lambda t: halves([t, X]),
    "the second in a list": lambda t: halves([X, t]),
    "an op in a dict": lambda t: keyed({"a": t}),
    "a plan": PLAN,
    "a plan that writes into it": lambda t: PLAN(X, out=t),
    "a graph": lambda t: run_of_graph(t),
    "a Tensor": pyop.Tensor,
    "a Function": Half.apply,
    "a Function beside a Tensor": lambda t: Half.apply(pyop.Tensor(X) * t),
    "a Tensor times it": lambda t: pyop.Tensor(X, requires_grad=True) * t,
    "grad": lambda t: pyop.grad(summed)(t),
    "vjp": lambda t: pyop.vjp(half, t),
    "jvp": lambda t: pyop.jvp(summed, (t,), (X,)),
    "a tangent": lambda t: pyop.jvp(summed, (X,), (t,)),
    "vmap": lambda t: pyop.vmap(lambda x: x * 2)(t),
    "py_func": lambda t: pyop.py_func(lambda x: x * 2, [t], np.float64),
    "numpy_function": lambda t: pyop.numpy_function(lambda x: x * 2, [t], np.float64),
    "from_dlpack": pyop.from_dlpack,
    "a constant": lambda t: pyop.Graph().constant(t),
    "scan": lambda t: pyop.scan(lambda c, x: (c + x, c), np.float64(0), t),
    "a compiled function, declared": lambda t: pyop.compile(lambda x: half(x) * 2)(t),
}


@pytest.mark.parametrize("way", LOSING)
def test_no_gradient_is_lost_in_silence(way):
    t = torch.from_numpy(X.copy()).requires_grad_()
    for given in (t, torch.nn.Parameter(t.detach()), t * 1):
        try:
            found = LOSING[way](given)
        except Exception as error:  # whichever fits: what it says is what matters
            said = str(error)
            if "grad" not in said and "must be a writable ndarray" not in said:
                raise
        else:
            assert isinstance(found, torch.Tensor), found
            assert found.requires_grad
