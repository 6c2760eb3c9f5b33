"""The kernels by name, each with the arguments of a small and of a medium call."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

FAMILIES = (
    "stencils",
    "flows",
    "solvers",
    "factorisations",
    "blas",
    "dynamic",
    "motion",
    "images",
    "networks",
    "series",
    "chance",
    "signals",
    "discrete",
)
_kernels: dict[str, Kernel] = {}


@dataclass(frozen=True)
class Kernel:
    """A function, and what makes its arguments of a size."""

    name: str
    family: str
    function: Callable[..., Any]
    inputs: Callable[..., tuple[Any, ...]]
    sizes: dict[str, tuple[int, ...]]

    def make(self, size: str, seed: int = 0) -> list[Any]:
        """New arguments: the same numbers for the same seed."""
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        return list(self.inputs(generator, *self.sizes[size]))


def kernel(
    inputs: Callable[..., tuple[Any, ...]], small: tuple[int, ...] | int, medium: tuple[int, ...] | int
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function, which stays what it is; ``inputs(generator, *size)`` makes its arguments."""
    sizes = {
        name: size if isinstance(size, tuple) else (size,) for name, size in (("small", small), ("medium", medium))
    }

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        family = function.__module__.rpartition(".")[2]
        assert function.__name__ not in _kernels
        assert function.__doc__
        _kernels[function.__name__] = Kernel(function.__name__, family, function, inputs, sizes)
        return function

    return register


def kernels() -> dict[str, Kernel]:
    """All of them, by name."""
    return _of(FAMILIES)


def traps() -> dict[str, Kernel]:
    """Small programs that are easily followed wrongly, by name."""
    return _of(("traps", "turns"))


def _of(families: tuple[str, ...]) -> dict[str, Kernel]:
    for family in families:
        importlib.import_module(f"{__package__}.{family}")
    return {name: one for name, one in _kernels.items() if one.family in families}
