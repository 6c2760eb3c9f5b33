"""Hooks on Tensors and nodes."""

import numpy as np
import pytest

import pyop
from pyop import autograd

from .ops import Ident, Mul, copying, leaf, make, numbers


def test_the_whole_order():
    seen = []
    log = lambda name: lambda *a: seen.append(name)
    x = leaf(1.0)
    y = copying(lambda ctx, g: (seen.append("backward"), g)[1]).apply(x)
    y.grad_fn.register_hook(log("posthook"))
    y.grad_fn.register_prehook(log("prehook"))
    y.register_hook(log("hook"))
    x.register_hook(log("leaf hook"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("after", t is x, numbers(t.grad))))
    y.backward()
    assert seen == ["hook", "prehook", "backward", "posthook", "leaf hook", ("after", True, [1])]


def test_each_hook_sees_what_the_one_before_made():
    x = leaf(1.0)
    y = Ident.apply(x)
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 10)
    y.backward()
    assert numbers(y.grad) == [3]
    assert numbers(x.grad) == [30]
    assert y.retains_grad


def test_hooks_run_once_on_the_sum_and_in_grad_too():
    seen = []
    x = leaf(1.0)
    h = Ident.apply(x)
    h.register_hook(lambda g: seen.append(float(g[0])))
    x.register_hook(lambda g: g * 100)
    y = Mul.apply(h, h)
    (g,) = autograd.grad(y, [x], retain_graph=True)
    assert numbers(g) == [200]
    (g,) = autograd.grad(y, [h], retain_graph=True)
    assert numbers(g) == [2]
    assert seen == [2, 2]


def test_node_hooks_replace():
    x, w = leaf(1.0), leaf(1.0)
    y = make(lambda ctx, a, k, b, c: a + b, lambda ctx, g: (g, None, g * 2, None)).apply(
        x, 3, w, pyop.Tensor(np.ones(1))
    )
    seen = []
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda made, given: seen.append((made[0][0], made[1][0], made[2], given[0][0])))
    y.grad_fn.register_hook(lambda made, given: (made[0], made[1] + 1, None))
    y.backward()
    assert seen == [(10, 20, None, 10)]
    assert (numbers(x.grad), numbers(w.grad)) == ([10], [21])


def test_what_hooks_may_not_do():
    y = Ident.apply(leaf(1.0))
    with pytest.raises(TypeError, match="callable, not int"):
        y.register_hook(3)
    with pytest.raises(RuntimeError, match="requires a gradient"):
        pyop.Tensor(np.ones(1)).register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="requires a gradient"):
        pyop.Tensor(np.ones(1)).retain_grad()
    with pytest.raises(RuntimeError, match="leaf"):
        y.register_post_accumulate_grad_hook(lambda t: None)
    for returned, error, words in [
        (3, TypeError, "hook 'hook' returned int"),
        (np.ones(2), ValueError, r"hook 'hook' changed the shape.*\(1,\) to \(2,\)"),
        (np.ones(1) * 1j, RuntimeError, "complex"),
    ]:

        def hook(g, returned=returned):
            return returned

        y = Ident.apply(leaf(1.0))
        y.register_hook(hook)
        with pytest.raises(error, match=words):
            y.backward()
    y = make(lambda ctx, a, b: a * 1, lambda ctx, g: (g, None)).apply(leaf(1.0), leaf(2.0))
    y.grad_fn.register_hook(lambda made, given: (made[0], np.ones(1)))
    with pytest.raises(RuntimeError, match="None"):
        y.backward()


def test_handles():
    seen = []
    y = Ident.apply(leaf(1.0))
    with y.register_hook(lambda g: seen.append("with")):
        y.backward(retain_graph=True)
    handle = y.register_hook(lambda g: (seen.append("once"), handle.remove())[1])
    y.register_hook(lambda g: seen.append("always"))
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    handle.remove()
    assert seen == ["with", "once", "always", "always"]


def test_under_create_graph_hooks_get_tensors():
    x = leaf(3.0)
    y = Mul.apply(x, x)
    kinds = []
    y.register_hook(lambda g: (kinds.append(type(g)), Mul.apply(g, x))[1])
    (g,) = autograd.grad(y, [x], create_graph=True)
    assert kinds == [pyop.Tensor]
    assert numbers(g) == [18]
    assert numbers(autograd.grad(g, [x])[0]) == [12]


def test_in_place_leaves_hooks_on_the_old_node():
    from .ops import AddOne

    x = leaf(1.0)
    h = Ident.apply(x)
    seen = []
    h.register_hook(lambda g: seen.append(("old", g[0])))
    AddOne.apply(h)
    h.register_hook(lambda g: seen.append(("new", g[0])))
    h.backward(np.array([2.0]))
    assert seen == [("new", 2), ("old", 2)]
