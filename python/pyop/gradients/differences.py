"""Differentiate a function by calling it: central differences, and the complex step.

The complex step ``imag(f(x + 1j * h)) / h`` subtracts nothing, so `h` can be tiny and the derivative is exact to the
last bits. But the function has to be analytic and to compute with complex arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tree import TreeDef, flatten
from ..declare.rebuild import MergedByValue, unflatten_each
from .table import NoRule, Rule

__all__ = ["PullBack", "PushForward"]

COMPLEX_STEP = 1e-30


class _Differences(MergedByValue):
    """Compute a function of flat arrays, and its slope along a direction."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str,
        in_trees: tuple[TreeDef, ...] | None,
        how: str,
        statics: dict[str, Any],
        *key: Any,
    ) -> None:
        self.fn = fn
        self.name = name
        self.in_trees = in_trees
        self.how = how
        self.statics = statics
        self.__name__ = f"{name}_{how}"
        self._key = (type(self), fn, how, *key, *((k, id(v)) for k, v in statics.items()))

    @property
    def _pyop_gradient_rule(self) -> Rule:
        raise NoRule(
            f"the second derivative of op {self.name!r}: its gradient is taken by differences (grad={self.how!r}), "
            "which are not differentiated again; give the op a vjp rule"
        )

    def call(self, arrays: Any) -> list[np.ndarray[Any, Any]]:
        """Call the function and return its flat results."""
        args = arrays if self.in_trees is None else unflatten_each(self.in_trees, arrays)
        return [np.asarray(y) for y in flatten(self.fn(*args, **self.statics))[0]]

    def slope(self, arrays: Any, directions: Any) -> list[np.ndarray[Any, Any]]:
        """Return the change of the results along a direction: one array, or None, for each of the arrays."""
        if self.how == "cs":
            return self._complex_step(arrays, directions)
        largest = max((float(np.max(np.abs(d), initial=0.0)) for d in directions if d is not None), default=0.0)
        if largest == 0.0:
            return [np.zeros_like(y) for y in self.call(arrays)]
        moving = [x for x, d in zip(arrays, directions, strict=True) if d is not None]
        size = max(1.0, *(float(np.max(np.abs(x), initial=0.0)) for x in moving))
        eps = max(float(np.finfo(x.dtype).eps) for x in moving)
        h = eps ** (1 / 3) * size / largest
        ends = []
        for step in (h, -h):
            moved = [
                x if d is None else (x + step * d).astype(x.dtype) for x, d in zip(arrays, directions, strict=True)
            ]
            ends.append(self.call(moved))
        return [(high - low) / (2 * h) for high, low in zip(*ends, strict=True)]

    def _complex_step(self, arrays: Any, directions: Any) -> list[np.ndarray[Any, Any]]:
        h = COMPLEX_STEP
        moved = [x if d is None else x + 1j * h * d for x, d in zip(arrays, directions, strict=True)]
        if any(np.asarray(x).dtype.kind == "c" for x in arrays):
            raise TypeError(f'op {self.name!r}: grad="cs" is for functions of real arrays; use grad="fd"')
        results = self.call(moved)
        if not any(y.dtype.kind == "c" for y in results):
            raise TypeError(
                f'op {self.name!r}: grad="cs" calls the function with complex arrays, and it returned real ones: it '
                'drops imaginary parts somewhere; use grad="fd"'
            )
        return [np.imag(y) / h for y in results]


class PullBack(_Differences):
    """Compute cotangents of arguments from those of results: one slope for each element of an argument."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str,
        in_trees: tuple[TreeDef, ...] | None,
        how: str,
        argnums: tuple[int, ...],
        n_out: int,
        statics: dict[str, Any],
    ) -> None:
        super().__init__(fn, name, in_trees, how, statics, argnums, n_out)
        self.argnums = argnums
        self.n_out = n_out

    def __call__(self, *given: Any) -> Any:
        cts, arrays = given[: self.n_out], list(given[self.n_out :])
        gradients = tuple([self._one(cts, arrays, k) for k in self.argnums])
        return gradients[0] if len(gradients) == 1 else gradients

    def _one(self, cts: Any, arrays: list[Any], k: int) -> Any:
        x = np.asarray(arrays[k])
        result = np.zeros(x.shape, x.dtype)
        for index in np.ndindex(x.shape):
            for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
                direction = np.zeros(x.shape, x.dtype)
                direction[index] = unit
                slopes = self.slope(arrays, [direction if j == k else None for j in range(len(arrays))])
                result[index] += unit * sum(np.vdot(y, ct).real for y, ct in zip(slopes, cts, strict=True))
        return result


class PushForward(_Differences):
    """Compute tangents of results from those of arguments: a single slope."""

    def __call__(self, *given: Any) -> Any:
        count = len(given) // 2
        tangents = [t if np.asarray(t).dtype.kind in "fc" and np.any(t) else None for t in given[:count]]
        arrays = list(given[count:])
        if all(t is None for t in tangents):
            output_tangents = tuple([np.zeros_like(y) for y in self.call(arrays)])
        else:
            output_tangents = tuple(self.slope(arrays, tangents))
        return output_tangents[0] if len(output_tangents) == 1 else output_tangents
