"""Define linear operations on gradients that are recorded when a backward pass is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import Function

__all__ = ["Alias", "Cast", "Copy", "Spread", "Sum", "SumTo", "cast", "sum_to"]


def sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Return the sum over the elements that broadcasting from `shape` repeated."""
    lead = x.ndim - len(shape)
    axes = (*range(lead), *[lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1])
    return np.asarray(x.sum(axis=axes)).reshape(shape)


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return `x` in another dtype; the real part of complex numbers where that dtype is real."""
    if x.dtype.kind == "c" and dtype.kind == "f":
        x = x.real
    return x.astype(dtype)


class Sum(Function):
    """Add two arrays: a + b."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return np.asarray(a + b)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, g

    @staticmethod
    def jvp(ctx: Any, a: Any, b: Any) -> Any:
        return a + b


class Alias(Function):
    """Return the same numbers in the same memory, as a result of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g

    @staticmethod
    def jvp(ctx: Any, x: Any) -> Any:
        return x


class Copy(Function):
    """Return the same numbers in memory of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.copy(order="K")

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g

    @staticmethod
    def jvp(ctx: Any, x: Any) -> Any:
        return x


class SumTo(Function):
    """Sum over the axes that were broadcast."""

    @staticmethod
    def forward(ctx: Any, x: Any, shape: tuple[int, ...]) -> Any:
        ctx.shape, ctx.target = x.shape, shape
        return sum_to(x, shape)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return Spread.apply(g, ctx.shape), None

    @staticmethod
    def jvp(ctx: Any, x: Any, shape: Any) -> Any:
        return SumTo.apply(x, ctx.target)


class Spread(Function):
    """Broadcast to a shape."""

    @staticmethod
    def forward(ctx: Any, x: Any, shape: tuple[int, ...]) -> Any:
        ctx.shape, ctx.target = x.shape, shape
        return np.broadcast_to(x, shape).copy()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return SumTo.apply(g, ctx.shape), None

    @staticmethod
    def jvp(ctx: Any, x: Any, shape: Any) -> Any:
        return Spread.apply(x, ctx.target)


class Cast(Function):
    """Convert to another dtype."""

    @staticmethod
    def forward(ctx: Any, x: Any, dtype: np.dtype[Any]) -> Any:
        ctx.dtype, ctx.target = x.dtype, dtype
        return cast(x, dtype)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return Cast.apply(g, ctx.dtype), None

    @staticmethod
    def jvp(ctx: Any, x: Any, dtype: Any) -> Any:
        return Cast.apply(x, ctx.target) if ctx.target.kind in "fc" else None
