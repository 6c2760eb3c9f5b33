"""What users meet beside plain expressions, written for every peer as its documentation advises.

A `Task` has a base, over which everybody's speed is given, and for each candidate a function of the data that returns a
`Statement`: it computes the result once. What a candidate cannot do it is left out of.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

import pyop

from . import gradients
from .candidates import NUMPY, PYOP
from .harness import Statement

Data = Mapping[str, Any]
Make = Callable[[Data], Statement]
AUTOGRAD = "autograd"


@dataclass(frozen=True)
class Task:
    """A computation: its words, the sizes it is measured at, its data, and who computes it."""

    title: str
    sizes: tuple[int, ...]
    data: Callable[[int], Data]
    base: str
    candidates: Mapping[str, tuple[str, Make]]  # name: package it needs, how it is made


# --- five points of a square, written into the inner part of another array


def _square(n: int) -> Data:
    u = np.random.default_rng(0).random((n, n))
    return {"u": u, "out": np.zeros_like(u)}


def _step(u: Any, out: Any) -> None:
    out[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (
        u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
    )


def _step_by_loops(u: Any, out: Any) -> None:
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            out[i, j] = u[i, j] + 0.1 * around


def _writing(function: Callable[..., Any], data: Data) -> Statement:
    return Statement("f(u, out)", {"f": function, **data}, unroll=1)


def _numba_stencil(data: Data) -> Statement:
    import numba

    return _writing(numba.njit(_step_by_loops), data)


def _numexpr_stencil(data: Data) -> Statement:
    import numexpr

    numexpr.set_num_threads(1)
    u = data["u"]
    parts = {"c": u[1:-1, 1:-1], "n": u[:-2, 1:-1], "s": u[2:, 1:-1], "w": u[1:-1, :-2], "e": u[1:-1, 2:]}
    names = {"f": numexpr.evaluate, "parts": parts, "inner": data["out"][1:-1, 1:-1]}
    return Statement("f('c + 0.1 * (n + s + w + e - 4.0 * c)', local_dict=parts, out=inner)", names, unroll=1)


def _jax_stencil(data: Data) -> Statement:
    import jax

    jax.config.update("jax_enable_x64", True)

    def step(u: Any, out: Any) -> Any:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
        return out.at[1:-1, 1:-1].set(u[1:-1, 1:-1] + 0.1 * around)

    there = {name: jax.device_put(array) for name, array in data.items()}
    return Statement("f(u, out).block_until_ready()", {"f": jax.jit(step), **there}, unroll=1)


def _pytensor_stencil(data: Data) -> Statement:
    import pytensor
    from pytensor import tensor

    u, out = tensor.dmatrix("u"), tensor.dmatrix("out")
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
    result = tensor.set_subtensor(out[1:-1, 1:-1], u[1:-1, 1:-1] + 0.1 * around)
    function = pytensor.function([u, pytensor.In(out, mutable=True, borrow=True)], result, mode="CVM")
    function.trust_input = True
    return _writing(function, data)


def _dace_stencil(data: Data) -> Statement:
    import dace

    step = FunctionType(_step.__code__, {"dace": dace})  # by its annotations the arguments would be numbers
    dace.Config.set("default_build_folder", value=tempfile.mkdtemp())
    return _writing(dace.program(auto_optimize=True)(step), data)


# --- an expression of single numbers, and a function whose loop is the C library's


def _numbers(_: int) -> Data:
    return {"a": 0.5, "b": 1.25, "c": -2.0, "d": 0.125}


def _arithmetic(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a * b + c * d - a


def _waves(n: int) -> Data:
    return {"x": np.random.default_rng(0).uniform(-10, 10, n)}


def _calling(call: str, function: Callable[..., Any], data: Data, after: str = "") -> Statement:
    return Statement(f"f({call}){after}", {"f": function, **data}, unroll=1)


def _numba(function: Callable[..., Any], call: str) -> Make:
    def make(data: Data) -> Statement:
        import numba

        return _calling(call, numba.njit(function), data)

    return make


def _numexpr(text: str, call: str) -> Make:
    def make(data: Data) -> Statement:
        import numexpr

        numexpr.set_num_threads(1)
        signature = [(name.strip(), np.float64) for name in call.split(",")]
        return _calling(call, numexpr.NumExpr(text, signature=signature), data)

    return make


def _jax(of: Callable[[Any], Callable[..., Any]], call: str) -> Make:
    def make(data: Data) -> Statement:
        import jax

        jax.config.update("jax_enable_x64", True)
        there = {name: jax.device_put(value) for name, value in data.items()}
        return _calling(call, jax.jit(of(jax.numpy)), there, ".block_until_ready()")

    return make


def _pytensor(of: Callable[[Any], Callable[..., Any]], call: str, kind: str) -> Make:
    def make(data: Data) -> Statement:
        import pytensor
        from pytensor import tensor

        names = [getattr(tensor, kind)(name.strip()) for name in call.split(",")]
        function = pytensor.function(names, of(tensor)(*names), mode="CVM")
        function.trust_input = True
        return _calling(call, function, {name: np.asarray(value) for name, value in data.items()})

    return make


def _sine(x: Any) -> Any:
    return np.sin(x)


# --- value and gradient of 20 operations


def _three(n: int) -> Data:
    rng = np.random.default_rng(0)
    return {name: rng.random(n) for name in "xyz"}


def _jax_gradients(data: Data) -> Statement:
    import jax

    jax.config.update("jax_enable_x64", True)
    function = jax.jit(jax.value_and_grad(gradients.expression(jax.numpy), (0, 1, 2)))
    there = {name: jax.device_put(value) for name, value in data.items()}
    return Statement("wait(f(x, y, z))", {"f": function, "wait": jax.block_until_ready, **there}, unroll=1)


TASKS: dict[str, Task] = {
    "stencil": Task(
        "Five points of a square of n by n, written into another array",
        (150, 700),
        _square,
        NUMPY,
        {
            NUMPY: ("numpy", lambda data: _writing(_step, data)),
            PYOP: ("pyop", lambda data: _writing(pyop.compile(_step), data)),
            "numexpr": ("numexpr", _numexpr_stencil),
            "numba njit": ("numba", _numba_stencil),
            "PyTensor C": ("pytensor", _pytensor_stencil),
            "JAX": ("jax", _jax_stencil),
            "DaCe": ("dace", _dace_stencil),
        },
    ),
    "number": Task(
        "a*b + c*d - a of four Python floats (base: of four np.float64)",
        (1,),
        _numbers,
        NUMPY,
        {
            NUMPY: (
                "numpy",
                lambda data: _calling("a, b, c, d", _arithmetic, {k: np.float64(v) for k, v in data.items()}),
            ),
            PYOP: ("pyop", lambda data: _calling("a, b, c, d", pyop.compile(_arithmetic), data)),
            "numexpr": ("numexpr", _numexpr("a*b + c*d - a", "a, b, c, d")),
            "numba njit": ("numba", _numba(_arithmetic, "a, b, c, d")),
            "PyTensor C": ("pytensor", _pytensor(lambda _: _arithmetic, "a, b, c, d", "dscalar")),
            "JAX": ("jax", _jax(lambda _: _arithmetic, "a, b, c, d")),
        },
    ),
    "sine": Task(
        "sin(x), x between -10 and 10",
        (1_000, 100_000, 1_000_000),
        _waves,
        NUMPY,
        {
            NUMPY: ("numpy", lambda data: _calling("x", _sine, data)),
            PYOP: ("pyop", lambda data: _calling("x", pyop.compile(_sine), data)),
            "numexpr": ("numexpr", _numexpr("sin(x)", "x")),
            "numba njit": ("numba", _numba(_sine, "x")),
            "PyTensor C": ("pytensor", _pytensor(lambda xp: xp.sin, "x", "dvector")),
            "JAX": ("jax", _jax(lambda xp: xp.sin, "x")),
        },
    ),
    "gradient": Task(
        "Value and gradient of 20 operations on three arrays (base: autograd)",
        (10, 1_000, 1_000_000),
        _three,
        AUTOGRAD,
        {
            AUTOGRAD: (AUTOGRAD, lambda data: _calling("x, y, z", gradients.with_autograd(), data)),
            PYOP: (
                "pyop",
                lambda data: _calling(
                    "x, y, z", pyop.compile(pyop.value_and_grad(gradients.expression(np), (0, 1, 2))), data
                ),
            ),
            "PyTensor C": ("pytensor", lambda data: _calling("x, y, z", gradients.with_pytensor(), data)),
            "JAX": ("jax", _jax_gradients),
        },
    ),
}
