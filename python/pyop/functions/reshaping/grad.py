"""Differentiate functions that return the same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import Tensor
from ...gradients import table
from ...gradients.adjoints import movement, reshape_like
from ...gradients.rule import linear, nondifferentiable, structural
from ...gradients.table import NoRule, Pullback, Rule
from ...gradients.unbroadcast import fit_dtype, unbroadcast


def _in_order(a: Any, order: Any, what: str) -> Any:
    """Return the order in which elements were read: "A" and "K" mean that in which the argument lies in memory."""
    if order in ("C", "F"):
        return order
    array = a.numpy() if type(a) is Tensor else a
    if type(array) is np.ndarray:
        if array.flags.c_contiguous or (order == "A" and not array.flags.f_contiguous):
            return "C"
        if array.flags.f_contiguous:
            return "F"
    raise NoRule(
        f'{what}(order={order!r}) has no gradient rule where the order of memory is not known: use order="C" or "F"'
    )


def _reshape_tangent(t: Any, ans: Any, a: Any, shape: Any = None, order: Any = "C", **kw: Any) -> Any:
    shape = kw.get("newshape") if shape is None else shape
    return np.reshape(t, shape, order=_in_order(a, order, "np.reshape"))


def _roll(ct: Any, ans: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    back = tuple(-k for k in shift) if isinstance(shift, (tuple, list)) else -shift
    return np.roll(ct, back, axis)


# fmt: off
structural(np.reshape, (lambda ct, ans, a, shape=None, order="C", **kw:
                        reshape_like(ct, a, _in_order(a, order, "np.reshape")),), (_reshape_tangent,), ("a",))
structural(np.ravel, (lambda ct, ans, a, order="C": reshape_like(ct, a, _in_order(a, order, "np.ravel")),),
           (lambda t, ans, a, order="C": np.ravel(t, _in_order(a, order, "np.ravel")),), ("a",))
# fmt: on
linear(np.broadcast_to, lambda ct, ans, array, shape, subok=False: unbroadcast(ct, array, ans), ("array",))
linear(np.flip, lambda ct, ans, m, axis=None: np.flip(ct, axis), ("m",))
linear(np.fliplr, lambda ct, ans, m: np.fliplr(ct), ("m",))
linear(np.flipud, lambda ct, ans, m: np.flipud(ct), ("m",))
linear(np.rot90, lambda ct, ans, m, k=1, axes=(0, 1): np.rot90(ct, -k, axes), ("m",))
linear(np.roll, _roll)
movement(np.resize, names=("a",))
movement(np.lib.stride_tricks.sliding_window_view, names=("x",))
nondifferentiable(np.shape, np.ndim, np.size)


class Each(Rule):
    """Differentiate a function that returns one array for each argument, made of this argument alone."""

    def __init__(self, func: Any, back: Callable[..., Any]) -> None:
        super().__init__(func)
        self.back = back

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return "array" if isinstance(parameter, int) else ""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        def pullback(ct: Any) -> tuple[Any, ...]:
            cts, parts = (ct, ans) if isinstance(ans, (tuple, list)) else ((ct,), (ans,))
            return tuple([None if cts[k] is None else self.back(cts[k], parts[k], k, args, **kwargs) for k in argnums])

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = dict(zip(argnums, tangents, strict=True))
        moved = self.func(*[given[k] if k in given else np.zeros_like(a) for k, a in enumerate(args)], **kwargs)
        return tuple(moved) if isinstance(ans, (tuple, list)) else moved[0]


table.add(Each(np.broadcast_arrays, lambda ct, part, k, args, subok=False: unbroadcast(ct, args[k], part)))


class Atleast(Each):
    """Differentiate as `Each`; with one argument the result is a bare array."""

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.func(tangents[0]) if len(args) == 1 else super().jvp(argnums, tangents, ans, args, kwargs)


for _atleast in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    table.add(Atleast(_atleast, lambda ct, part, k, args: fit_dtype(reshape_like(ct, args[k]), args[k])))
