"""Output specs that a function computes: ``@op.abstract``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ._core import Contract
from ._tree import flatten, map_leaves
from .contracts import make_contract
from .infer import what_is_known
from .signature import Signature
from .spec import Spec

__all__ = ["AbstractRule"]

_REMEMBERED = 256


class AbstractRule:
    """What the core asks about an op with an abstract function.

    Parameters
    ----------
    rule : callable
        ``rule(*specs, **statics) -> tree of specs``.
    name : str
        Of the op, for error texts.
    """

    def __init__(self, rule: Callable[..., Any], name: str) -> None:
        if not callable(rule):
            raise TypeError(f"the abstract rule of op {name!r} must be callable, got {type(rule).__name__}")
        self._rule = rule
        self._name = name
        self._statics = _keywords(rule)
        self._known: dict[Any, Contract] = {}

    def __reduce__(self) -> Any:
        return AbstractRule, (self._rule, self._name)

    def __call__(self, kinds: tuple[tuple[Any, tuple[int, ...]], ...], statics: dict[str, Any]) -> Contract:
        """The contract for arrays of these dtypes and shapes."""
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
        """Output leaves for Values of which these specs are known, and the contract that tells their form."""
        signature = self._ask(specs, self._wanted(statics))
        return [Spec(*what_is_known(leaf)) for leaf in flatten(signature.outputs)[0]], make_contract(signature)

    def _wanted(self, statics: dict[str, Any]) -> dict[str, Any]:
        if self._statics is None:
            return statics
        return {name: value for name, value in statics.items() if name in self._statics}

    def _ask(self, specs: list[Spec], statics: dict[str, Any]) -> Signature:
        answer = self._rule(*specs, **statics)
        try:
            outputs = (
                Spec.make(answer) if not isinstance(answer, tuple | list | dict) else map_leaves(Spec.make, answer)
            )
            return Signature.make(outputs=outputs)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"the abstract rule of op {self._name!r} must return specs, but returned {answer!r:.200}: {error}"
            ) from error


def _distinct(value: Any) -> Any:
    """A key for a static argument: 1, 1.0 and True are equal, but no function need treat them alike."""
    if type(value) in (tuple, frozenset):
        return type(value), tuple([_distinct(part) for part in value])
    return type(value), repr(value) if isinstance(value, float | complex) else value


def _keywords(rule: Callable[..., Any]) -> frozenset[str] | None:
    """Names of the keyword-only parameters; None if it takes any keyword."""
    try:
        entries = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(p.kind is p.VAR_KEYWORD for p in entries):
        return None
    return frozenset(p.name for p in entries if p.kind is p.KEYWORD_ONLY)
