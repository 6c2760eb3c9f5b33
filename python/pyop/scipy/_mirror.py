"""How a function of SciPy becomes one that takes Tensors and Values: the same name, and a protocol in front."""

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
    """A function that does what `function` does, and asks Tensors and Values first.

    It is found in `module`, by the path `name` if that is not the name of `function`. `specs` tells what it returns, of
    the arguments with a Spec in the place of each Value. `example` is an expression and what it shows.
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
    """What an elementwise function returns: everything broadcast, in the dtype that SciPy gives it."""

    def specs(*args: Any, **kwargs: Any) -> Spec:
        parts, named = [operand(x) for x in args], {key: operand(x) for key, x in kwargs.items()}
        dtype = probe(function, *map(one, parts), **{key: one(part) for key, part in named.items()})
        return Spec(dtype, broadcast(*parts, *named.values()))

    return specs


def by_factors(public: Callable[..., Any], names: Sequence[str], factors: Sequence[Any]) -> None:
    """The gradient rule of an elementwise function of real numbers, by its derivatives by each parameter.

    They are functions of ``(ans, *args, **kwargs)``; None where nobody knows it.
    """

    def rule_of(factor: Any) -> Any:
        if factor is None:
            return unknown
        return lambda t, ans, *args, **kwargs: t * factor(ans, *args, **kwargs)

    rules = tuple(map(rule_of, factors))
    table.add(PerArgument(public, rules, rules, names, unbroadcast))


def rest_of(module: Any) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module for what SciPy's has besides."""

    def attribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(module, name)

    return attribute
