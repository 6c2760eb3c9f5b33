"""Function: arrays changed in place, what is saved for backward, and derivatives that are not known."""

import numpy as np
import pytest

import pyop
from pyop import autograd

from .ops import AddOne, Exp, Ident, Mul, leaf, make, numbers

# --- in place


def test_in_place_continues_the_history_of_the_same_object():
    x = leaf(1.0)
    h = Ident.apply(x)
    first = h.grad_fn
    assert AddOne.apply(h) is h
    assert h.grad_fn.next_functions[0][0] is first
    assert h._version == 1
    h.backward()
    assert numbers(x.grad) == [1]


def test_in_place_on_a_leaf_is_refused_before_the_damage():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="leaf"):
        AddOne.apply(x)
    assert numbers(x) == [1]
    with pyop.no_grad():
        y = AddOne.apply(x)
    assert numbers(x) == [2]
    assert y is not x
    assert not y.requires_grad
    assert np.shares_memory(x.numpy(), y.numpy())
    assert x.requires_grad


View = make(lambda ctx, x: x.reshape(2, 1), lambda ctx, g: g.reshape(2), name="View")


def test_in_place_on_a_view_is_refused():
    h = Ident.apply(leaf(1.0, 2.0))
    view = View.apply(h)
    with pytest.raises(RuntimeError, match="view"):
        AddOne.apply(view)


def test_a_view_of_changed_memory_is_not_used():
    h = Ident.apply(leaf(1.0, 2.0))
    view = View.apply(h)
    AddOne.apply(h)
    with pytest.raises(RuntimeError, match="take the view again"):
        Ident.apply(view)
    with pytest.raises(RuntimeError, match="take the view again"):
        view.backward(np.ones((2, 1)))
    View.apply(h).backward(np.ones((2, 1)))


def test_a_dirty_argument_must_be_returned():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    with pytest.raises(RuntimeError, match="dirty"):
        make(forward).apply(Ident.apply(leaf(1.0)))


# --- saving


def test_saving_refuses_what_is_no_array():
    with pytest.raises(TypeError, match="argument 1 is of type str"):
        make(lambda ctx, x: ctx.save_for_backward(x, "x")).apply(leaf(1.0))
    with pytest.raises(TypeError, match="argument 0 is of type list"), pyop.no_grad():
        make(lambda ctx, x: ctx.save_for_backward([x])).apply(leaf(1.0))


def test_what_is_saved_comes_back_as_it_is_needed():
    x, b = leaf(3.0), pyop.Tensor(np.array([2.0]))
    kinds = []

    def forward(ctx, x, b, c):
        y = x * b * c
        ctx.save_for_backward(x, b, c, y, None)
        return y

    def backward(ctx, g):
        kinds.append([type(s) for s in ctx.saved_tensors])
        return g * ctx.saved_tensors[1] * ctx.saved_tensors[2], None, None

    op = make(forward, backward)
    c = np.array([5.0])
    autograd.grad(op.apply(x, b, c), [x])
    autograd.grad(op.apply(x, b, c), [x], create_graph=True)
    arrays = [np.ndarray] * 4
    assert kinds == [[*arrays, type(None)], [pyop.Tensor, pyop.Tensor, np.ndarray, pyop.Tensor, type(None)]]
    y = op.apply(x, b, c)
    saved = y.grad_fn.saved_tensors
    assert saved[0] is x
    assert saved[1] is b
    assert saved[2] is c
    assert saved[3] is not y
    assert saved[3].grad_fn is y.grad_fn


def test_changes_of_what_was_saved_are_noticed():
    h = Ident.apply(leaf(1.0, 2.0))
    z = Mul.apply(h, h)
    AddOne.apply(h)
    with pytest.raises(RuntimeError, match=r"Mul.*\(2,\).*AddOneBackward.*modified.*version 1, expected version 0"):
        z.backward(np.ones(2))


@pytest.mark.parametrize("which", ["input", "output"])
def test_writing_through_numpy_is_noticed_too(which):
    x = leaf(1.0, 2.0)
    y = Exp.apply(x) if which == "output" else Mul.apply(x, x)
    (y if which == "output" else x).numpy()[0] = 5.0
    with pytest.raises(RuntimeError, match="modified"):
        y.backward(np.ones(2))


def test_large_arrays_are_watched_under_anomaly_detection():
    x = pyop.Tensor(np.ones(1000), requires_grad=True)
    with autograd.detect_anomaly():
        y = Mul.apply(x, x)
        x.numpy()[500] = 5.0
        with pytest.raises(RuntimeError, match="modified"):
            y.backward(np.ones(1000))


def test_freed_is_said_and_retaining_works():
    x = leaf(3.0)
    y = Mul.apply(x, x)
    y.backward(retain_graph=True)
    y.backward()
    assert numbers(x.grad) == [12]
    with pytest.raises(RuntimeError, match=r"second time.*retain_graph"):
        y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn.saved_tensors


def test_a_node_that_failed_keeps_what_it_saved():
    fail = [True]

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if fail[0]:
            raise KeyError("first time")
        return g * x

    op = make(lambda ctx, x: (ctx.save_for_backward(x), x * 1)[1], backward)
    x = leaf(4.0)
    y = op.apply(x)
    with pytest.raises(KeyError):
        y.backward()
    fail[0] = False
    y.backward()
    assert numbers(x.grad) == [4]


# --- derivatives of derivatives that are not known


def test_an_intermediate_result_does_not_pass_for_a_constant():
    def forward(ctx, x):
        inner = np.sin(x)
        ctx.save_for_backward(inner)
        return inner**2 / 2

    op = make(forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(0.5)
    (g,) = autograd.grad(op.apply(x), [x], create_graph=True)
    with pytest.raises(RuntimeError, match=r"saved array 0.*ctx"):
        autograd.grad(g, [x])


def test_a_plain_array_from_backward_does_not_pass_for_a_constant():
    op = make(lambda ctx, x: x**2, lambda ctx, g: np.asarray(g.numpy() if isinstance(g, pyop.Tensor) else g) * 2)
    x, v = leaf(3.0), leaf(1.0)
    (g,) = autograd.grad(op.apply(x), [x], [v], create_graph=True)
    for wrt in (x, v):
        with pytest.raises(RuntimeError, match="plain array"):
            autograd.grad(g, [wrt], retain_graph=True)


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_once_differentiable(order):
    def backward(ctx, g):
        assert type(g) is np.ndarray
        assert not autograd.is_grad_enabled()
        return g * 2

    if order == "inside":
        marked = staticmethod(autograd.once_differentiable(backward))
    else:
        marked = autograd.once_differentiable(staticmethod(backward))
    op = type("Once", (pyop.Function,), {"forward": staticmethod(lambda ctx, x: x * 2), "backward": marked})
    x = leaf(3.0)
    (g,) = autograd.grad(op.apply(x), [x], create_graph=True)
    assert numbers(g) == [2]
    with pytest.raises(RuntimeError, match=r"Once.*once_differentiable"):
        autograd.grad(g, [x])
    op.apply(x).backward()
    assert numbers(x.grad) == [2]
