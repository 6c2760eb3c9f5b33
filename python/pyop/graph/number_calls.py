"""Nodes that call functions of Python numbers: each number that the graph computes is made one again for the call."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..declare.rebuild import MergedByValue
from ..functions.surface import OPERATORS, SIGNS

__all__ = ["OnNumbers", "quotient", "real_power"]


class OnNumbers(MergedByValue):
    """Call a function on arrays, some of which are made Python numbers again (1 in `numbers`), or scalars of NumPy
    (2).
    """

    __slots__ = ("fn", "numbers")

    def __init__(self, fn: Callable[..., Any], numbers: tuple[int, ...]) -> None:
        self.fn = fn
        self.numbers = numbers

    def __call__(self, *args: Any) -> Any:
        return self.fn(
            *[
                x.item() if number == 1 else x[()] if number == 2 and isinstance(x, np.ndarray) else x
                for x, number in zip(args, self.numbers, strict=True)
            ]
        )

    @property
    def _pyop_like(self) -> Any:
        """The function whose derivative it has."""
        return _LIKE.get(self.fn, self.fn)

    def __repr__(self) -> str:
        return f"OnNumbers({self.fn!r})"


def real_power(a: Any, b: Any) -> Any:
    """Return a power of floats that is a float, as the graph was made for; TypeError if it is complex."""
    result = a**b
    if type(result) is complex:
        raise TypeError(
            f"{a!r} ** {b!r} is complex, and was a float for the numbers that the graph was built with: compute it "
            "with complex numbers"
        )
    return result


real_power._pyop_checks_results = True  # type: ignore[attr-defined]


def quotient(a: Any, b: Any) -> Any:
    """Return the whole part of ``divmod(a, b)``."""
    return divmod(a, b)[0]


_LIKE: dict[Any, Any] = {
    real_power: np.power,
    quotient: np.floor_divide,
    round: np.round,
    **{getattr(operator, f"__{name}__", None): ufunc for name, (_, ufunc) in OPERATORS.items()},
    **{getattr(operator, f"__{name}__"): ufunc for name, ufunc in SIGNS.items()},
}
