"""Record the pullback of an eager `pyop.vjp`, called while a graph is built, as a node.

A pullback is a linear map, so its own derivatives are the map itself, and its adjoint: the push forward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..declare.spec import Spec
from ..gradients.table import Pullback, Rule
from ..graph import calls

if TYPE_CHECKING:
    from .eager import Eager

__all__ = ["pull_in_graph"]


def pull_in_graph(run: Eager, outputs: list[Any], cts: list[Any]) -> list[Any]:
    """Return one gradient for each input of `run`, for cotangents of `outputs` with Values among them."""
    if run.nested:
        raise TypeError(
            "the pullback of a pyop.vjp at Tensors was called with Values: call pyop.vjp inside of the function that "
            "is compiled or traced, with what it is to be differentiated at as an argument"
        )
    given = [np.zeros(y.shape, y.dtype) if ct is None else ct for ct, y in zip(cts, outputs, strict=True)]
    return _applied(_Linear(run, outputs, run.inputs, back=True), given)


def _applied(function: _Linear, arrays: Any) -> list[Any]:
    specs = tuple([Spec(x.dtype, x.shape) for x in function.codomain])
    results = calls.apply(function, tuple(arrays), {}, specs[0] if len(specs) == 1 else specs, name=function.__name__)
    return [results] if len(specs) == 1 else list(results)


class _Linear:
    """Map cotangents of results to those of arguments (`back`).

    Otherwise map tangents of arguments to those of results.
    """

    def __init__(self, run: Eager, outputs: list[Any], inputs: list[Any], back: bool) -> None:
        self.run = run
        self.outputs = outputs
        self.inputs = inputs
        self.back = back
        self.codomain = inputs if back else outputs
        self.__name__ = "pullback" if back else "push_forward"

    def __call__(self, *arrays: Any) -> Any:
        results = self.run.pull(self.outputs, list(arrays)) if self.back else self._pushed(arrays)
        return results[0] if len(results) == 1 else tuple(results)

    def _pushed(self, tangents: Any) -> list[Any]:
        """Return the pullback of the pullback, which maps tangents."""
        return [t.numpy() for t in self.run.push(self.outputs, list(tangents), self.inputs)]

    @property
    def _pyop_gradient_rule(self) -> Rule:
        return _LinearRule(self)


class _LinearRule(Rule):
    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        f: _Linear = self.func
        other = _Linear(f.run, f.outputs, f.inputs, not f.back)

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts = ct if isinstance(ct, (tuple, list)) else (ct,)
            full = [np.zeros(y.shape, y.dtype) if c is None else c for c, y in zip(cts, f.codomain, strict=True)]
            gradients = _applied(other, full)
            return tuple([gradients[k] for k in argnums])

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = dict(zip(argnums, tangents, strict=True))
        full = [given[k] if k in given else np.zeros(np.shape(x), x.dtype) for k, x in enumerate(args)]
        moved = _applied(self.func, full)
        return tuple(moved) if isinstance(ans, (tuple, list)) else moved[0]
