"""Compute output specs by a function of the user: ``@op.abstract``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Contract
from .._tree import TreeDef, flatten, map_leaves
from .contracts import make_contract
from .infer import what_is_known
from .signature import Signature
from .spec import Spec

__all__ = ["AbstractRule", "AndContext"]

_REMEMBERED = 256


class AbstractRule:
    """Compute the specs of an op with an abstract function: ``rule(*specs, **statics)`` returns a tree of specs.

    `name` is the op's, for error texts.
    """

    def __init__(self, rule: Callable[..., Any], name: str) -> None:
        if not callable(rule):
            raise TypeError(f"the abstract rule of op {name!r} must be callable, got {type(rule).__name__}")
        self.rule = rule
        self._name = name
        self._statics = _keywords(rule)
        self._known: dict[Any, Contract] = {}

    def __reduce__(self) -> Any:
        return AbstractRule, (self.rule, self._name)

    def __call__(self, kinds: tuple[tuple[Any, tuple[int, ...]], ...], statics: dict[str, Any]) -> Contract:
        """Return the contract for arrays of these dtypes and shapes."""
        wanted = self._wanted(statics)
        try:
            key = (kinds, tuple([(name, _distinct(value)) for name, value in wanted.items()]))
            known = self._known.get(key)
        except TypeError:  # an unhashable static argument
            return make_contract(self._ask([Spec(d, s) for d, s in kinds], wanted))
        if known is None:
            known = make_contract(self._ask([Spec(d, s) for d, s in kinds], wanted))
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = known
        return known

    def infer(self, specs: list[Spec], statics: dict[str, Any]) -> tuple[list[Spec], Contract]:
        """Return output leaves for Values with these specs, and the contract that tells their form."""
        signature = self._ask(specs, self._wanted(statics))
        return [Spec(*what_is_known(leaf)) for leaf in flatten(signature.outputs)[0]], make_contract(signature)

    def structure(self, specs: list[Spec], statics: dict[str, Any]) -> TreeDef:
        """Return the structure of the results for these specs."""
        kinds: list[Any] = [(spec.dtype, spec.shape) for spec in specs]
        if all(isinstance(dtype, np.dtype) and _is_numbers(shape) for dtype, shape in kinds):
            signature = self(tuple(kinds), statics).signature
        else:
            signature = self._ask(specs, self._wanted(statics))
        return flatten(signature.outputs)[1]

    def _wanted(self, statics: dict[str, Any]) -> dict[str, Any]:
        if self._statics is None:
            return statics
        return {name: value for name, value in statics.items() if name in self._statics}

    def _ask(self, specs: list[Spec], statics: dict[str, Any]) -> Signature:
        answer = self.rule(*specs, **statics)
        try:
            contained = isinstance(answer, tuple | list | dict) or hasattr(type(answer), "__dataclass_fields__")
            outputs = map_leaves(Spec.make, answer) if contained else Spec.make(answer)
            return Signature.make(outputs=outputs)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"the abstract rule of op {self._name!r} must return specs, but returned {answer!r:.200}: {error}"
            ) from error


class AndContext:
    """Append one result to those of an abstract rule, flat: what a call saves for its gradient."""

    def __init__(self, rule: AbstractRule, context: Spec) -> None:
        self._rule = rule
        self._context = context

    def __reduce__(self) -> Any:
        return AndContext, (self._rule, self._context)

    def __call__(self, kinds: tuple[tuple[Any, tuple[int, ...]], ...], statics: dict[str, Any]) -> Contract:
        """Return the contract for arrays of these dtypes and shapes, with the saved result last."""
        outputs = flatten(self._rule(kinds, statics).signature.outputs)[0]
        return make_contract(Signature.make(outputs=(*outputs, self._context)))

    def infer(self, specs: list[Spec], statics: dict[str, Any]) -> tuple[list[Spec], Contract]:
        """Return output leaves for Values with these specs, and their contract, with the saved result last."""
        leaves, contract = self._rule.infer(specs, statics)
        outputs = flatten(contract.signature.outputs)[0]
        return [*leaves, self._context], make_contract(Signature.make(outputs=(*outputs, self._context)))


def _is_numbers(shape: Any) -> bool:
    return shape is not None and all(type(size) is int for size in shape)


def _distinct(value: Any) -> Any:
    """Return a key for a static argument. 1, 1.0 and True are equal, but no function need treat them alike."""
    if type(value) in (tuple, frozenset):
        return type(value), tuple([_distinct(part) for part in value])
    return type(value), repr(value) if isinstance(value, float | complex) else value


def _keywords(rule: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of the keyword-only parameters; None if the function takes any keyword."""
    try:
        entries = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(p.kind is p.VAR_KEYWORD for p in entries):
        return None
    return frozenset(p.name for p in entries if p.kind is p.KEYWORD_ONLY)
