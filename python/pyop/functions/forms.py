"""Define forms of rules beside the plain one: one rule for several functions, and rules of shapes alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..declare.spec import Spec
from . import register
from .operand import one, operand, probe

__all__ = ["each", "mapped", "shaped"]

R = TypeVar("R", bound=Callable[..., Any])


def each(*functions: Any) -> Callable[[R], R]:
    """Register one rule for several functions; it is called with the function in front of its arguments."""

    def of(rule: R) -> R:
        register(functions, rule, with_function=True)
        return rule

    return of


def shaped(*functions: Any) -> Callable[[R], R]:
    """Register how functions change the shape of their first argument, and nothing else of it.

    What is decorated takes that shape, which is known, in the place of the argument, and returns the new one.
    """

    def of(change: R) -> R:
        name = change.__code__.co_varnames[0]

        @wraps(change)
        def rule(*args: Any, **kwargs: Any) -> Spec:
            part = operand(args[0] if args else kwargs.pop(name))
            return Spec(part.dtype, None if part.shape is None else change(part.shape, *args[1:], **kwargs))

        register(functions, rule)
        return change

    return of


def mapped(func: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Spec:
    """Return what an elementwise function gives for its first argument, the others being numbers."""
    part = operand(x)
    return Spec(probe(func, one(part), *args, **kwargs), part.shape)
