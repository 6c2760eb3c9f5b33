"""The programs by name, each with what makes its arguments."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

FAMILIES = (
    "control",
    "signals",
    "images",
    "finance",
    "epidemics",
    "hydrology",
    "robotics",
    "bioinformatics",
    "plasma",
    "chemistry",
    "text",
    "astronomy",
    "ecology",
    "statistics",
    "numerics",
)
_programs: dict[str, Program] = {}


@dataclass(frozen=True)
class Program:
    """A function, and what makes its arguments."""

    name: str
    family: str
    function: Callable[..., Any]
    inputs: Callable[[np.random.Generator, int], tuple[Any, ...]]
    size: int

    def make(self, seed: int = 0) -> list[Any]:
        """New arguments: the same numbers for the same seed."""
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        return list(self.inputs(generator, self.size))


def program(
    inputs: Callable[[np.random.Generator, int], tuple[Any, ...]], size: int
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function, which stays what it is; ``inputs(generator, size)`` makes its arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        family = function.__module__.rpartition(".")[2]
        assert function.__name__ not in _programs
        assert function.__doc__
        _programs[function.__name__] = Program(function.__name__, family, function, inputs, size)
        return function

    return register


def programs() -> dict[str, Program]:
    """All of them, by name."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
    return dict(_programs)
