"""Gradients that ops declare: rules, Jacobians, residuals, differences; eager, compiled, twice."""

import gc
import weakref

import numpy as np
import pytest

import pyop
from pyop import NoRule


def make(rule=None, **options):
    @pyop.op("float64[n], float64[n] -> float64[n]", **options)
    def f(x, y):
        return np.asarray(x).conj() * 0 + np.asarray(x) ** 2 * np.asarray(y)

    return f


def with_vjp():
    f = make()

    @f.vjp
    def _(ct, x, y):
        return 2 * ct * x * y, ct * x * x

    @f.jvp
    def _(tx, ty, x, y):
        return 2 * tx * x * y + ty * x * x

    return f


def with_jac():
    f = make()
    f.jac(lambda x, y: np.diag(2 * x * y))
    f.jac(lambda x, y: x * x, wrt="y", structure="diagonal")
    return f


def with_sparse_jac():
    f = make()
    places = (np.arange(3), np.arange(3))
    f.jac(lambda x, y: 2 * x * y, structure=places)
    f.jac(lambda x, y: x * x, wrt=1, structure=places)
    return f


def complex_ready():
    @pyop.op("float64[n], float64[n] -> float64[n]", grad="cs")
    def f(x, y):
        return x * x * y

    return f


X, Y = np.array([1.0, 2.0, -3.0]), np.array([0.5, -1.0, 2.0])
MAKERS = [with_vjp, with_jac, with_sparse_jac, lambda: make(grad="fd"), complex_ready]


@pytest.mark.parametrize("maker", MAKERS)
def test_both_modes(maker):
    f = maker()

    def total(x, y):
        return np.sum(np.sin(f(x, 2 * y)))

    plan = pyop.trace(pyop.value_and_grad(total, (0, 1)), "float64[3]", "float64[3]").compile()
    value, (dx, dy) = plan(X, Y)
    slope = np.cos(2 * X**2 * Y)
    assert value == pytest.approx(np.sum(np.sin(2 * X**2 * Y)))
    np.testing.assert_allclose(dx, slope * 4 * X * Y, rtol=1e-7)
    np.testing.assert_allclose(dy, slope * 2 * X**2, rtol=1e-7)
    t = np.array([1.0, -1.0, 0.5])
    _, pushed = pyop.jvp(total, (X, Y), (t, None))
    np.testing.assert_allclose(pushed, np.sum(dx * t), rtol=1e-7)


@pytest.mark.parametrize("maker", [with_vjp, with_jac])
def test_second_order_by_what_the_rule_does(maker):
    f = maker()
    hessian = pyop.hessian(lambda x: np.sum(f(x, Y)))(X)
    np.testing.assert_allclose(hessian, np.diag(2 * Y))


def test_rule_of_a_rule():
    @pyop.op("float64[n] -> float64[n]")
    def f(x):
        return np.array([v**3 for v in x.tolist()])

    @f.vjp
    def rule(ct, x):
        return np.array([3 * v * v * c for v, c in zip(x.tolist(), ct.tolist(), strict=True)])

    def gradient(x):
        return np.sum(pyop.grad(lambda z: np.sum(f(z)))(x) * np.arange(3.0))

    with pytest.raises(NoRule, match=r"second derivative of op 'f'.*has a \.vjp too"):
        pyop.grad(gradient)(X)

    @rule.vjp
    def _(ct, c, x):
        return ct * 3 * x * x, ct * 6 * x * c

    np.testing.assert_allclose(pyop.grad(gradient)(X), 6 * X * np.arange(3.0))


def test_rule_of_a_rule_with_several_cotangents():
    @pyop.op("float64[n], float64[n] -> float64[n]")
    def f(x, y):
        return np.array([a * b for a, b in zip(x.tolist(), y.tolist(), strict=True)])

    @f.vjp
    def rule(ct, x, y):
        return np.array((ct * y).tolist()), np.array((ct * x).tolist())

    @rule.vjp
    def _(cts, ct, x, y):
        assert type(cts) is tuple
        return cts[0] * y + cts[1] * x, cts[1] * ct, cts[0] * ct

    ct, t = np.array([1.0, 10.0, 2.0]), np.array([3.0, 4.0, 5.0])

    def gradient(x, y, k):
        return np.sum(pyop.grad(lambda x, y: np.sum(f(x, y) * ct), k)(x, y) * t)

    for k, want in ((0, (0 * X, ct * t)), (1, (ct * t, 0 * X))):
        found = pyop.grad(lambda x, y, k=k: gradient(x, y, k), (0, 1))(X, Y)
        assert all(np.array_equal(g, w) for g, w in zip(found, want, strict=True))
        plan = pyop.trace(pyop.grad(lambda x, y, k=k: gradient(x, y, k), (0, 1)), "float64[3]", "float64[3]").compile()
        assert all(np.array_equal(g, w) for g, w in zip(plan(X, Y), want, strict=True))


def test_residuals_travel_through_a_context_output():
    calls = []

    @pyop.op("float64[n] -> float64[n]")
    def root(x):
        calls.append(1)
        y = np.sqrt(x)
        return pyop.saved(y, slope=0.5 / y)

    @root.vjp
    def _(ct, x, *, saved, needs, out):
        assert needs == (True,)
        np.testing.assert_array_equal(out * out * 1.0, out**2)
        return ct * saved.slope

    np.testing.assert_array_equal(root(np.array([4.0])), [2.0])
    graph = pyop.trace(pyop.value_and_grad(lambda x: np.sum(root(x) * 3)), "float64[n]")
    forward = next(node for node in graph.nodes if node.name == "root")
    context = forward.outputs[-1]
    assert (context.dtype, context.shape, len(forward.outputs)) == (np.int64, (1,), 2)
    assert any(value.node == forward and value.output_index == 1 for node in graph.nodes for value in node.inputs)
    del calls[:]
    _, gradient = graph.compile()(np.array([4.0, 9.0]))
    np.testing.assert_allclose(gradient, [0.75, 0.5])
    assert len(calls) == 1
    # The context can be fetched, and fed back in another run; a number like it cannot.
    array = graph.run(context, {"x": np.array([4.0, 9.0])})
    assert array.dtype == np.int64
    fed = {"x": np.array([4.0, 9.0]), forward.outputs[0]: np.ones(2), context: array}
    np.testing.assert_allclose(graph.run(graph.outputs[1], fed), [0.75, 0.5])
    with pytest.raises(TypeError, match="context of op 'root'"):
        graph.run(graph.outputs[1], {**fed, context: np.array([1])})


def test_residuals_die_with_their_context():
    class Residual:
        pass

    alive = weakref.WeakSet()

    @pyop.op("float64[n] -> float64[n]")
    def f(x):
        residual = Residual()
        alive.add(residual)
        return pyop.saved(x * 2, residual)

    f.vjp(lambda ct, x, *, saved: ct * 2)
    gc.disable()
    try:
        plan = pyop.trace(f, "float64[n]").compile()
        both = pyop.trace(pyop.value_and_grad(lambda x: np.sum(f(x))), "float64[n]").compile()
        for _ in range(20):
            plan(X)  # forward without backward
            both(X)
        assert len(alive) == 0
    finally:
        gc.enable()


def test_several_results_trees_and_statics():
    @pyop.op(inputs=({"a": "float64[n]", "b": "float64[]"},), outputs={"sum": "float64[]", "scaled": "float64[n]"})
    def f(p, *, power=2):
        return {"sum": np.sum(p["a"]), "scaled": p["a"] ** power * p["b"]}

    @f.vjp
    def _(ct, p, *, power=2):
        a, b = p["a"], p["b"]
        return {
            "a": ct["sum"] + ct["scaled"] * power * a ** (power - 1) * b,
            "b": np.sum(ct["scaled"] * a**power),
        }

    def g(p):
        out = f(p, power=3)
        return np.sum(out["scaled"] * 2) + out["sum"]

    found = pyop.grad(g)({"a": X, "b": np.asarray(2.0)})
    np.testing.assert_allclose(found["a"], 1 + 2 * 3 * X**2 * 2)
    np.testing.assert_allclose(found["b"], np.sum(2 * X**3))


def test_rules_that_do_not_fit_say_so():
    f = make()
    with pytest.raises(NoRule, match=r"op 'f' .*@f\.vjp or @f\.jac, or declare it with grad=\"fd\""):
        pyop.grad(lambda x: np.sum(f(x, Y)))(X)
    with pytest.raises(TypeError, match="takes saves=, which is never passed"):
        f.vjp(lambda ct, x, y, *, saves: None)
    with pytest.raises(ValueError, match="structure is"):
        f.jac(lambda x, y: x, structure="banded")
    with pytest.raises(ValueError, match='grad is "fd"'):
        make(grad="bp")
    f.vjp(lambda ct, x, y: (ct[:1], ct))
    with pytest.raises(ValueError, match=r"vjp rule of op 'f' returned an array of shape \(1,\) for argument 'x'"):
        pyop.grad(lambda x: np.sum(f(x, Y)))(X)
    f.vjp(lambda ct, x, y: ct)
    with pytest.raises(TypeError, match="must return 2 cotangents"):
        pyop.grad(lambda x: np.sum(f(x, Y)))(X)
    f.vjp(lambda ct, x, y, *, saved: (ct, ct))
    with pytest.raises(TypeError, match="the op saved nothing"):
        pyop.grad(lambda x: np.sum(f(x, Y)))(X)


def test_rules_get_the_defaults_of_static_parameters():
    @pyop.op("float64[n], float64[n] -> float64[n]")
    def scaled(x, y, *, k=3, unread=None):
        return x * y * k

    @scaled.vjp
    def _(ct, x, y, *, k, needs):
        assert needs == (True, False)
        return ct * y * k, None

    @scaled.jvp
    def _(tx, ty, x, y, *, k):
        return tx * y * k + ty * x * k

    x, y = np.arange(3.0), np.ones(3)
    f = lambda x: np.sum(scaled(x, y) + scaled(x, y, k=2))
    np.testing.assert_array_equal(pyop.grad(f)(x), [5.0, 5.0, 5.0])
    np.testing.assert_array_equal(pyop.trace(pyop.grad(f), "float64[3]").compile()(x), [5.0, 5.0, 5.0])
    assert pyop.jvp(f, (x,), (x,))[1] == 15.0


def test_an_op_of_integers_needs_no_rule():
    @pyop.op("float64[n] -> int64[n], bool[n]")
    def ranks(x):
        return np.argsort(np.argsort(x)), x > 0

    def f(x):
        rank, positive = ranks(x)
        return np.sum(x[rank] * positive)

    x = np.array([3.0, -1.0, 2.0])
    assert pyop.grad(f)(x).tolist() == [0, 1, 1]
    assert pyop.jvp(f, (x,), (np.ones(3),))[1] == 2

    @pyop.op("float64[n] -> float64[n]")
    def unknown(x):
        return x * 2

    for way in (pyop.grad, lambda f: lambda x: pyop.jvp(f, (x,), (x,))):
        with pytest.raises(NoRule, match="unknown"):
            way(lambda x: np.sum(unknown(x)))(x)
