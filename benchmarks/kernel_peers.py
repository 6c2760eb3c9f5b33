"""The compilers that `python -m benchmarks kernels` measures kernels beside, where they are installed: numba and DaCe.

Each gets the function as it is written, without annotations, and those of its module that it calls; what it makes of it
need not have NumPy's bits.
"""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np


def installed() -> list[str]:
    """Their names."""
    return [name for name in _COMPILERS if importlib.util.find_spec(name)]


@contextlib.contextmanager
def compiler(peer: str) -> Iterator[Callable[[FunctionType], Any]]:
    """What compiles a function, once it has compiled one: the first time loads what any other needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with _COMPILERS[peer]() as compiled:
            compiled(_warm)(np.ones(3))
            yield compiled


def _warm(x: Any) -> Any:
    return x * 2.0 + 1.0


@contextlib.contextmanager
def _numba() -> Iterator[Callable[[FunctionType], Any]]:
    import numba

    made: dict[FunctionType, Any] = {}
    yield lambda function: _with_helpers(function, numba.njit, made)


@contextlib.contextmanager
def _dace() -> Iterator[Callable[[FunctionType], Any]]:
    import dace

    with tempfile.TemporaryDirectory() as folder:
        dace.Config.set("default_build_folder", value=folder)
        made: dict[FunctionType, Any] = {}
        yield lambda function: _with_helpers(function, dace.program(auto_optimize=True), made)


def _with_helpers(function: FunctionType, compiled: Callable[[Any], Any], made: dict[FunctionType, Any]) -> Any:
    if function not in made:
        names = dict(function.__globals__)
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        made[function] = compiled(copy)
        for name in function.__code__.co_names:
            helper = names.get(name)
            if isinstance(helper, FunctionType) and helper.__module__ == function.__module__:
                names[name] = _with_helpers(helper, compiled, made)
    return made[function]


_COMPILERS = {"numba": _numba, "dace": _dace}
