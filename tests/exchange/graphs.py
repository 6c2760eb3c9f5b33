"""Graphs of every kind of node, for saving: importable, so that another process finds the functions."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import pyop


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Box:
    inside: Any


@pyop.op("float64[n], float64[n] -> float64[]")
def dot(x, y, *, k=3, how="plain"):
    return np.dot(x, y) * k


@dot.vjp
def _(ct, x, y, *, k=3):
    return ct * y * k, ct * x * k


@pyop.op("float64[n] -> float64[n]")
def root(x):
    y = np.sqrt(x)
    return pyop.saved(y, slope=0.5 / y)


@root.vjp
def _(ct, x, *, saved):
    return ct * saved.slope


@pyop.op
def pairs(x):
    return np.stack([x[:-1], x[1:]], axis=1)


@pairs.abstract
def _(x):
    return pyop.Spec(x.dtype, (x.shape[0] - 1, 2))


@pyop.op
def halves(x):
    return x[:2], x[2:]


@halves.abstract
def _(x):
    return pyop.Spec(x.dtype, (2,)), pyop.Spec(x.dtype, (x.shape[0] - 2,))


@pyop.op("float64[n] -> float64[]", grad="fd")
def energy(x):
    return np.sum(x**3)


@pyop.op(inputs=[{"a": "f8[n]"}], outputs={"b": "f8[n]"})
def renamed(d):
    return {"b": d["a"]}


@pyop.op("str[n] -> str[n]")
def shouted(x):
    return np.strings.upper(x)


def loss(x):
    return np.sum(np.sin(x))


@pyop.op("float64[n] -> float64[n]", stateful=True)
def noisy(x):
    return x + 1


def sorted_down(x):
    return np.sort(x)[::-1]


V, M = "float64[n]", "float64[n,3]"
GRAPHS = {
    "ufuncs": (lambda x, y: {"s": np.sin(x) * 0.1 + y**2, "t": (x < y, np.hypot(x, y, dtype="f8"))}, [V, V]),
    "views": (lambda x: [x.T, x[1:, None, ::-1], x.reshape(-1), np.split(x, 3, axis=1), x[:, [0, 2]]], [M]),
    "sizes": (lambda x: (np.broadcast_to(x[0], (2, *x.shape)), x.reshape(x.shape[0] * 3)), [M]),
    "functions": (lambda x: (np.linalg.svd(x), np.percentile(x, 30.5), np.cumsum(x, 1), np.add.reduce(x)), [M]),
    "containers": (lambda x: Pair(Box(x + 1), {"k": [x * 2, (x,)]}), [V]),
    "ops": (lambda x, y: (dot(x, y, k=5, how="other"), pairs(x), renamed({"a": y}), noisy(x)), [V, V]),
    "several": (lambda x: halves(x), [V]),
    "py_func": (lambda x: pyop.py_func(sorted_down, [x], np.float64, stateful=False), [V]),
    "contrib": (lambda x: pyop.contrib.py_func(renamed.__wrapped__, [{"a": x}], output_types={"b": "f8"}), [V]),
    "forms": (lambda x: (x[0] ** 2.5, np.sum(x) + x[1], x[0, ...] * 2, np.ones(()) + x[..., 0]), [V]),
    "constants": (lambda x: (x + np.arange(3.0), np.array(["2020"], "M8[D]"), np.array([b"a"], object)), ["f8[3]"]),
    "vjp": (lambda x, y: pyop.grad(lambda x: dot(np.sin(x), y, k=2) + np.sum(root(x * x)))(x), [V, V]),
    "differences": (lambda x: pyop.grad(energy)(x), [V]),
    "gradients": (lambda x: pyop.grad(lambda x: np.sum(np.maximum(x[1:], 0) * np.mean(x) / x[0]))(x), [V]),
    "text": (lambda x: np.strings.upper(x), ["str[n]"]),
}  # fmt: skip


def build(name):
    fn, specs = GRAPHS[name]
    return pyop.trace(fn, *specs, name=name)


def arguments(graph):
    rng = np.random.default_rng(3)
    found = []
    for value in graph.inputs:
        shape = tuple(size if isinstance(size, int) else 4 for size in value.shape)
        if value.dtype is None or value.dtype.kind == "U":
            found.append(np.array(["a", "bc", "", "d"]))
        else:
            found.append((rng.normal(size=shape) + 2).astype(value.dtype))
    return found


@pyop.op("float32[n] -> float32[n]")
def sorted_down_op(x):
    return np.sort(x)[::-1]


def with_parts(x):
    """A loop that writes, in which an op is called, and a branch."""

    def body(i, y):
        y[i] = np.sin(y[i - 1]) + dot(x, x, k=2)
        return y

    y = pyop.fori_loop(1, 3, body, x * 1.0)
    return pyop.cond(y[0] > 0.0, lambda: y * 2.0, lambda: y - 1.0)
