"""Calls of functions that have gradient rules, for comparing the rules with differences and with another library:
how the modules beside this one write them down.

An array of real or complex numbers that is given as an argument, at top level or in a list, is differentiated by;
everything else stays as it is. `fixed` cases need sizes that are numbers when a graph is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

rng = np.random.default_rng(11)


@dataclass(frozen=True)
class Case:
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    fixed: bool = False
    second: bool = True  # whether second derivatives are compared as well
    oracle: bool = True  # whether the other library computes the same
    label: str = ""

    @property
    def id(self) -> str:
        def show(x: Any) -> str:
            if isinstance(x, np.ndarray):
                return f"{x.dtype.str[1:]}{list(x.shape)}".replace(" ", "")
            if isinstance(x, (list, tuple)):
                return "(" + ",".join(map(show, x)) + ")"
            return getattr(x, "__name__", None) or repr(x)

        name = self.label or getattr(self.func, "__name__", None) or repr(self.func)
        texts = [show(arg) for arg in self.args] + [f"{key}={show(arg)}" for key, arg in self.kwargs.items()]
        return f"{name}({','.join(texts)})"


cases: list[Case] = []
_group = ""


def group(name: str) -> None:
    global _group
    _group = name


def case(func: Any, *args: Any, **kwargs: Any) -> None:
    cases.append(Case(func, args, kwargs, _group))


def only(func: Any, *args: Any, **kwargs: Any) -> None:
    """A call that the other library does not know, or sees in another way."""
    cases.append(Case(func, args, kwargs, _group, oracle=False))


def fixed(func: Any, *args: Any, **kwargs: Any) -> None:
    cases.append(Case(func, args, kwargs, _group, fixed=True, oracle=False))


def named(label: str, func: Any, *args: Any, fixed: bool = False, second: bool = True) -> None:
    cases.append(Case(func, args, {}, _group, fixed=fixed, second=second, oracle=False, label=label))


def f(*shape: int, low: float = 0.5, high: float = 2.0, dtype: Any = np.float64) -> np.ndarray:
    return np.asarray(low + (high - low) * rng.random(shape), dtype)


def s(*shape: int) -> np.ndarray:
    """Of both signs, and away from zero."""
    return np.asarray(f(*shape) * np.where(rng.random(shape) < 0.5, -1.0, 1.0))


def u(*shape: int) -> np.ndarray:
    """Between -1 and 1."""
    return s(*shape) * 0.45


def c(*shape: int) -> np.ndarray:
    return s(*shape) + 1j * s(*shape)


def i(*shape: int, high: int = 5) -> np.ndarray:
    return rng.integers(0, high, shape)


def b(*shape: int) -> np.ndarray:
    return rng.random(shape) < 0.5


def spd(n: int, *front: int, kind: Any = s) -> np.ndarray:
    a = kind(*front, n, n)
    return a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)


def well(*shape: int, kind: Any = s) -> np.ndarray:
    """Matrices far from singular."""
    return kind(*shape) + 4 * np.eye(*shape[-2:])


A, C = s(5, 7), c(5, 7)
