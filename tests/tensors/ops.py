"""Functions that the tests of autograd compute with."""

import numpy as np

import pyop


def leaf(*numbers, dtype=float):
    return pyop.Tensor(np.array(numbers, dtype=dtype), requires_grad=True)


def make(forward, backward=None, name="Op", **more):
    """A Function of functions."""
    methods = {"forward": forward, "backward": backward, **more}
    given = {key: staticmethod(f) if callable(f) else f for key, f in methods.items() if f is not None}
    return type(name, (pyop.Function,), given)


def copying(backward, name="Copy"):
    return make(lambda ctx, x: x.copy(), backward, name)


class Mul(pyop.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return Mul.apply(g, b), Mul.apply(g, a)


class Exp(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return Mul.apply(g, y)


class AddOne(pyop.Function):
    """In place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x += 1
        return x

    @staticmethod
    def backward(ctx, g):
        return g


Ident = copying(lambda ctx, g: g, "Ident")


def numbers(t):
    return None if t is None else t.numpy().tolist()
