"""What is let go of, and when: by reference counts alone wherever no user made a cycle."""

import gc
import sys
import sysconfig
import weakref

import numpy as np
import pytest

import pyop
from pyop import autograd

from .ops import AddOne, Exp, Ident, Mul, copying, leaf, make


class Marker:
    pass


@pytest.fixture
def no_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def marked(save, backward=lambda ctx, g: g):
    """A Function whose ctx carries a Marker, and the weak references to them."""
    found = []

    def forward(ctx, x):
        y = x * 1
        ctx.marker = Marker()
        found.append(weakref.ref(ctx.marker))
        save(ctx, x, y)
        return y

    return make(forward, backward), found


@pytest.mark.usefixtures("no_gc")
@pytest.mark.parametrize(
    "save",
    [
        lambda ctx, x, y: None,
        lambda ctx, x, y: ctx.save_for_backward(x),
        lambda ctx, x, y: ctx.save_for_backward(y),
        lambda ctx, x, y: ctx.save_for_backward(x, y, None, x + 1),
        lambda ctx, x, y: setattr(ctx, "x", x),
        lambda ctx, x, y: setattr(ctx, "y", y),
    ],
)
@pytest.mark.parametrize("use", ["dropped", "backward", "graph", "no_grad", "failed"])
def test_freed_by_reference_counts(save, use):
    def failing(ctx, g):
        raise KeyError

    op, found = marked(save, failing if use == "failed" else lambda ctx, g: g)
    x = leaf(1.0)
    if use == "no_grad":
        with pyop.no_grad():
            op.apply(x)
    else:
        y = op.apply(Ident.apply(x))
        if use == "backward":
            y.backward()
        elif use == "graph":
            (g,) = autograd.grad(y, [x], create_graph=True)
            del g
        elif use == "failed":
            with pytest.raises(KeyError):
                y.backward()
            sys.exc_info()
        del y
    x.grad = None
    if use == "failed":
        gc.collect()  # the traceback of pytest.raises
    assert found[0]() is None


def test_cycles_that_users_make_are_collected():
    for make_cycle in (
        lambda x, y: setattr(y.grad_fn, "y", y),
        lambda x, y: y.register_hook(lambda g, y=y: None),
        lambda x, y: x.register_hook(lambda g, y=y: None),
        lambda x, y: y.grad_fn.register_hook(lambda *a, y=y: None),
        lambda x, y: y.grad_fn.metadata.update(y=y),
        lambda x, y: y.backward(create_graph=True),
    ):
        op, found = marked(lambda ctx, x, y: ctx.save_for_backward(x), lambda ctx, g: Mul.apply(g, *ctx.saved_tensors))
        x = leaf(1.0)
        y = op.apply(x)
        make_cycle(x, y)
        del x, y
        gc.collect()
        assert found[0]() is None


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys.version_info < (3, 14),
    reason="once a thread was started, free-threaded CPython 3.13 makes every class immortal",
)
def test_a_class_is_collected():
    op = copying(lambda ctx, g: g)
    ref = weakref.ref(op)
    op.apply(leaf(1.0)).backward()
    del op
    gc.collect()
    assert ref() is None


def test_the_node_keeps_the_graph_and_the_other_way_round():
    x = leaf(2.0)
    y = Mul.apply(x, x)
    node = y.grad_fn
    del y
    assert node.saved_tensors[0] is x
    ref = weakref.ref(node)
    del node
    assert ref() is None


def references(make_call, *watched):
    """How much the reference counts grew over many calls."""
    make_call()
    gc.collect()
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(200):
        make_call()
    gc.collect()
    after = [sys.getrefcount(w) for w in watched]
    return [a - b for a, b in zip(after, before, strict=True)]


def test_no_reference_leaks():
    a = np.ones(3)
    x = pyop.Tensor(a, requires_grad=True)
    w = pyop.Tensor(np.ones(3), requires_grad=True)
    boom = copying(lambda ctx, g: 1 / 0)
    bad = make(lambda ctx, x: [x])
    tree = make(lambda ctx, t: t[0] + t[1], lambda ctx, g: ((g, g),))
    dirty = make(lambda ctx, x: ctx.mark_dirty(x))

    def all_of_it():
        y = Exp.apply(Mul.apply(x, w))
        y.backward(a, retain_graph=True)
        (g,) = autograd.grad(y, [x], a, create_graph=True)
        np.sum(g * np.sin(x)).backward()
        AddOne.apply(Ident.apply(x)).backward(a)
        tree.apply((x, w)).backward(a)
        Mul.apply(a, a)
        x.detach()
        x.register_hook(lambda g: g).remove()
        with pyop.no_grad():
            Mul.apply(x, a)
        for wrong in (lambda: boom.apply(x).backward(a), lambda: bad.apply(x), lambda: dirty.apply(x)):
            with pytest.raises((ZeroDivisionError, TypeError, RuntimeError)):
                wrong()
        x.grad = w.grad = None

    grown = references(
        all_of_it, a, x, w, Mul, Exp, type(x), type(Mul.apply(x, w).grad_fn), np.dtype(float), None, True
    )
    assert max(grown[:7]) <= 0
    assert abs(grown[7]) < 50  # others use it too
