"""Parameters and results of ops, compiled and transformed functions, as their functions have them; see public_api.py.

What must be refused stands in wrong/calls.py.
"""

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import pyop
from pyop.typing import Context, Profile, ProfileRow, Pullback, Symbolic, Transformed

Array = npt.NDArray[np.float64]
x = np.ones(3)


@pyop.op(grad="fd")
def plain(a: Array) -> Array:
    return a * 2


@pyop.op("float64[n], float64[n] -> float64[n]", name="scaled")
def scaled(a: Array, b: Array, *, factor: float = 2.0) -> Array:
    return a * b * factor


@pyop.compile
def fast(a: Array, b: Array) -> Array:
    return a + b


@pyop.compile(threads=2)
def faster(a: Array) -> tuple[Array, Array]:
    return a + 1, a - 1


def loss(a: Array, weight: float = 1.0) -> np.float64:
    total: np.float64 = np.sum(a * a) * weight
    return total


@pyop.op
def bare(a: Array) -> Array:
    return a


class Model:
    @pyop.op("float64[n] -> float64[n]")
    def apply(self, a: Array) -> Array:
        return a

    @pyop.compile
    def step(self, a: Array) -> Array:
        return a + 1


# --- results
assert_type(plain(x), Array)
assert_type(bare(x), Array)
assert_type(scaled(x, x, factor=3.0), Array)
assert_type(scaled(a=x, b=x), Array)
assert_type(fast(x, x), Array)
assert_type(faster(x), tuple[Array, Array])
assert_type(Model().apply(x), Array)
assert_type(Model().step(x), Array)
assert_type(Model.apply(Model(), x), Array)
assert_type(fast.plan_for(x, x), pyop.Plan)

# --- the classes take the same brackets when the program runs
annotated: pyop.Op[[Array], Array] = plain
compiled: pyop.CompiledFunction[[Array, Array], Array] = fast
unspecified: pyop.Op = scaled
assert_type(plain.map([x, x]), list[Array])
kinds: list[Any] = [pyop.Op[[int], float], pyop.CompiledFunction[..., Any]]
as_function: Callable[[Array], Array] = plain

# --- transformed functions
gradient = pyop.grad(loss)
slopes = [gradient(x), gradient(x, weight=2.0)]
given_both: Transformed[[Array, float], Any] = pyop.grad(loss)
given_both(x, 1.0)
value, slope = pyop.value_and_grad(loss)(x, 2.0)
assert_type(value, np.float64)
assert_type(pyop.vmap(plain)(np.ones((2, 3))), Array)
derivatives = [pyop.jacobian(plain)(x), pyop.hessian(loss)(x)]
at, pullback = pyop.vjp(loss, x)
assert_type(at, np.float64)
assert_type(pullback, Pullback[np.float64])
assert_type(pullback(np.float64(1.0)), tuple[Any, ...])
assert_type(pyop.jvp(plain, (x,), (x,)), tuple[Array, Array])
pyop.grad(np.sum)(x)
pyop.vmap(np.sin)(x)
pyop.op(np.sin)(x)
pyop.compile(np.sin)(x)

# --- Values and Tensors in place of arrays
with pyop.Graph() as g:
    v = g.input("float64[n]", name="v")
    nodes = [plain(v), scaled(v, x), scaled(x, v, factor=2.0), fast(v, v), gradient(v)]
scaled(x, pyop.Tensor(x))
standing: Symbolic = {"v": v}


class Double(pyop.Function):
    @staticmethod
    def forward(ctx: Context, a: Array) -> Array:
        ctx.save_for_backward(a)
        ctx.factor = 2.0
        return a * 2

    @staticmethod
    @pyop.autograd.once_differentiable
    def backward(ctx: Context, ct: Array) -> Array:
        assert_type(ctx.saved_tensors, tuple[Any, ...])
        assert_type(ctx.needs_input_grad, tuple[bool, ...])
        factor: float = ctx.factor
        return ct * factor


Double.apply(pyop.Tensor(x, requires_grad=True)).sum().backward()


def slowest(p: Profile) -> list[ProfileRow]:
    return p.rows[:1]


with pyop.profile() as recorded:
    pyop.trace(plain, "float64[n]").compile()(x)
assert_type(slowest(recorded), list[ProfileRow])
