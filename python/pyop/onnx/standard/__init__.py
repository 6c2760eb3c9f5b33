"""Express NumPy's functions in operators of ONNX: one rule for each function, for the calls that can be expressed.

A rule is called with an `Emitter` and the arguments of the NumPy function, in which an `Operand` stands for every array
of the graph. It returns the Operands of the results, or raises `NotStandard` with the reason; the call then becomes a
PythonOp.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from ...functions import families
from .emitter import OPSET, Emitter, NotStandard, Operand

__all__ = ["OPSET", "Emitter", "NotStandard", "Operand", "emit", "has_rule", "standard"]

R = TypeVar("R", bound=Callable[..., Any])

_rules: dict[Any, tuple[Callable[..., Any], inspect.Signature]] = {}


def standard(*functions: Any) -> Callable[[R], R]:
    """Register a rule for functions."""

    def register(rule: R) -> R:
        for function in functions:
            if function is not None:
                _rules[function] = (rule, inspect.signature(rule))
        return rule

    return register


@cache
def _load() -> None:
    families.load("onnx")
    if importlib.util.find_spec("scipy") is not None:
        families.load("onnx", families.OF_SCIPY)


def has_rule(function: Any) -> bool:
    """Return whether there is a rule for a function."""
    _load()
    try:
        return function in _rules
    except TypeError:
        return False


def _is_default(key: str, value: Any) -> bool:
    """Return whether an argument of a NumPy function has the same meaning as its absence."""
    return (key == "where" and value is True) or (key == "out" and value is None)


def emit(emitter: Emitter, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Operand]:
    """Return the results of ``function(*args, **kwargs)`` by operators of ONNX; NotStandard if none does that."""
    if not has_rule(function):
        raise NotStandard("no operator of ONNX does this")
    rule, signature = _rules[function]
    kwargs = {key: value for key, value in kwargs.items() if value is not np._NoValue and not _is_default(key, value)}
    try:
        signature.bind(emitter, *args, **kwargs)
    except TypeError as error:
        raise NotStandard(f"no operator of ONNX has these arguments ({error})") from None
    try:
        results = rule(emitter, *args, **kwargs)
    except (IndexError, TypeError, ValueError) as error:
        # Arguments of a kind that the rule has not thought of.
        raise NotStandard(f"no operator of ONNX has these arguments ({error})") from error
    return list(results) if isinstance(results, list | tuple) else [results]
