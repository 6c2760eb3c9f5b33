"""Who computes an elementwise expression: NumPy, plans, and the peers, each as fast as its documentation says it goes.

A candidate is made of the text of an expression and gives what is timed for four arrays: a `Statement` that returns a
new array. Peers are imported when they are asked for; requirements.txt lists the versions that were compared.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

import pyop

from .harness import Statement

ARITHMETIC = "a*b + c*d - a"
TRANSCENDENTAL = "sin(a)*b + exp(c) - d"
Arrays = Mapping[str, np.ndarray]
Prepare = Callable[[Arrays], Statement]

CALL = "f(a, b, c, d)"


def arrays_of(size: int) -> dict[str, np.ndarray]:
    """Four arrays of random float64."""
    rng = np.random.default_rng(0)
    return {name: rng.random(size) for name in "abcd"}


def function_of(text: str, **names: Any) -> Callable[..., Any]:
    """The expression as a function of four arrays; `sin` and `exp` are NumPy's unless others are given."""
    function: Callable[..., Any] = eval(f"lambda a, b, c, d: {text}", {"sin": np.sin, "exp": np.exp, **names})
    return function


def _calling(function: Callable[..., Any]) -> Prepare:
    return lambda arrays: Statement(CALL, {"f": function, **arrays}, unroll=1)


def _numpy(text: str) -> Prepare:
    return _calling(function_of(text))


def _pyop(text: str) -> Prepare:
    return _calling(pyop.trace(function_of(text), *["float64[n]"] * 4).compile())


def _numexpr(text: str) -> Prepare:
    import numexpr

    numexpr.set_num_threads(1)
    return _calling(numexpr.NumExpr(text, signature=[(name, np.float64) for name in "abcd"]))


def _numba_njit(text: str) -> Prepare:
    import numba

    return _calling(numba.njit(fastmath=True, error_model="numpy")(function_of(text)))


def _numba_vectorize(text: str) -> Prepare:
    import numba

    return _calling(numba.vectorize(["float64(float64, float64, float64, float64)"], fastmath=True)(function_of(text)))


def _pytensor(mode: str) -> Callable[[str], Prepare]:
    def make(text: str) -> Prepare:
        import pytensor
        from pytensor import tensor

        names = {name: tensor.vector(name, dtype="float64") for name in "abcd"}
        result = function_of(text, sin=tensor.sin, exp=tensor.exp)(**names)
        function = pytensor.function(list(names.values()), result, mode=mode)
        function.trust_input = True
        return _calling(function)

    return make


def _jax(text: str) -> Prepare:
    import jax

    jax.config.update("jax_enable_x64", True)
    jitted = jax.jit(function_of(text, sin=jax.numpy.sin, exp=jax.numpy.exp))

    def prepare(arrays: Arrays) -> Statement:
        there = {name: jax.device_put(array) for name, array in arrays.items()}
        return Statement(f"{CALL}.block_until_ready()", {"f": jitted, **there}, unroll=1)

    return prepare


NUMPY, PYOP = "NumPy", "pyop"
# Name: the package it needs, and how it is made of the text of an expression.
CANDIDATES: dict[str, tuple[str, Callable[[str], Prepare]]] = {
    NUMPY: ("numpy", _numpy),
    PYOP: ("pyop", _pyop),
    "numexpr": ("numexpr", _numexpr),
    "numba njit": ("numba", _numba_njit),
    "numba vectorize": ("numba", _numba_vectorize),
    "PyTensor C": ("pytensor", _pytensor("CVM")),
    "PyTensor numba": ("pytensor", _pytensor("NUMBA")),
    "JAX": ("jax", _jax),
}
NEEDS_NUMBA = {"PyTensor numba"}


def installed() -> tuple[list[str], list[str]]:
    """The candidates that can run, and the packages for want of which the others cannot."""
    missing = {
        package
        for package in {package for package, _ in CANDIDATES.values()} | {"numba"}
        if importlib.util.find_spec(package) is None
    }
    there = [
        name
        for name, (package, _) in CANDIDATES.items()
        if package not in missing and not (name in NEEDS_NUMBA and "numba" in missing)
    ]
    return there, sorted(missing)


def versions() -> dict[str, str]:
    """The versions of the peers that are installed."""
    there, _ = installed()
    packages = dict.fromkeys(CANDIDATES[name][0] for name in there)
    return {package: version(package) for package in packages if package not in ("numpy", "pyop")}


def make(name: str, text: str) -> Prepare:
    """A candidate for an expression."""
    return CANDIDATES[name][1](text)
