"""Turn a function of SciPy into one that takes Tensors and Values: the same name, with a protocol in front."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..declare.spec import Spec
from ..functions import rule as spec_rule
from ..functions.operand import one, operand, probe
from ..functions.shape import broadcast
from ..gradients import table
from ..gradients.rule import PerArgument, unknown
from ..gradients.unbroadcast import protocol_of, unbroadcast

__all__ = ["by_factors", "elementwise_spec", "mirrored", "rest_of"]


def mirrored(
    function: Callable[..., Any], module: str, specs: Callable[..., Any], name: str | None = None, example: str = ""
) -> Callable[..., Any]:
    """Return a function that calls `function`, and dispatches to Tensors and Values first.

    Its import path is `module` and `name`, or the name of `function`. `specs` returns the specs of the result, for the
    arguments with a Spec in place of each Value. `example` is an expression and its printed result.
    """

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        asked = protocol_of((*args, *kwargs.values()))
        return function(*args, **kwargs) if asked is None else asked[1](public, asked[:1], args, kwargs)

    public.__module__ = module
    public.__qualname__ = name or function.__name__
    public.__name__ = public.__qualname__.rpartition(".")[2]
    shown = f"\n\n>>> import numpy as np, pyop\n>>> from {module} import {public.__name__}\n>>> {example}"
    said = f"``{module.removeprefix('pyop.')}.{public.__qualname__}``, for Tensors and Values too."
    public.__doc__ = said + shown if example else said
    spec_rule(public)(specs)
    return public


def elementwise_spec(function: Callable[..., Any]) -> Callable[..., Spec]:
    """Return the spec function of an elementwise function: everything broadcast, in the dtype that SciPy gives it."""

    def specs(*args: Any, **kwargs: Any) -> Spec:
        parts, named = [operand(x) for x in args], {key: operand(x) for key, x in kwargs.items()}
        dtype = probe(function, *map(one, parts), **{key: one(part) for key, part in named.items()})
        return Spec(dtype, broadcast(*parts, *named.values()))

    return specs


def by_factors(public: Callable[..., Any], names: Sequence[str], factors: Sequence[Any]) -> None:
    """Register the gradient rule of an elementwise function of real numbers, by its derivative for each parameter.

    A derivative is a function of ``(ans, *args, **kwargs)``; None where it is unknown.
    """

    def rule_of(factor: Any) -> Any:
        if factor is None:
            return unknown
        return lambda t, ans, *args, **kwargs: t * factor(ans, *args, **kwargs)

    rules = tuple(map(rule_of, factors))
    table.add(PerArgument(public, rules, rules, names, unbroadcast))


def rest_of(module: Any) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module that takes all other names from SciPy's."""

    def attribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(module, name)

    return attribute
