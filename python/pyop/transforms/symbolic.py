"""Differentiate in a graph: the function adds its nodes to it, and its derivatives are further nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value, graph_being_built
from .._tree import flatten
from ..gradients.unbroadcast import broadcast_like, shape_of
from ..refusals import call_watched
from ..tracing.again import called
from .forward import forward
from .marker import open_value
from .opened import Argnums, Opened, check_like
from .reverse import backward, ones_like

__all__ = ["Symbolic"]


class Symbolic(Opened):
    """Call ``f(*args, **kwargs)`` in a graph, with Values of their own for the leaves of its chosen arguments.

    `also` may have the Value that tells the graph, where no argument has.
    """

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums, also: Any = ()
    ) -> None:
        given = (leaf.graph for leaf in flatten((args, kwargs, also))[0] if isinstance(leaf, Value))
        self.graph = next(given, None) or graph_being_built()
        super().__init__(f, args, kwargs, argnums)

    def open(self, leaf: Any, k: int) -> Value:
        """Return a Value that stands for a leaf of argument `k` and for nothing else."""
        return open_value(self.graph, leaf, k)

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function and return its result; its refusals are raised, even if it catches them."""
        self.inputs = self.lent(self.inputs)  # as they are at entry, whatever the function writes there
        return called(lambda f: call_watched(f, args, kwargs), f, (args, kwargs))

    def seed(self, value: Any) -> Any:
        """Return the cotangent one."""
        return ones_like(value) if isinstance(value, Value) else None

    def lent(self, leaves: list[Any]) -> list[Any]:
        """Return Values whose other handles stay unchanged."""
        return [leaf._lent() if type(leaf) is Value else leaf for leaf in leaves]

    def pull(self, outputs: list[Any], cts: list[Any]) -> list[Any]:
        """Return one cotangent for each input."""
        pairs = [(y, c) for y, c in zip(outputs, cts, strict=True) if isinstance(y, Value)]
        found = backward([y for y, _ in pairs], [c for _, c in pairs], self.inputs)
        # A cotangent that comes through as it is stays the caller's: a write to the one is not seen by the other.
        parts = [part._apart() if type(part) is Value else part for part in found]
        return [np.zeros_like(x) if part is None else part for part, x in zip(parts, self.inputs, strict=True)]

    def run_once(self, gradients: Any) -> Any:
        """Have loops whose derivatives run them again run but once: return the gradients, computed of the second runs,
        as are the numbers of the result from then on.
        """
        graph: Any = self.graph
        if not graph._reruns:
            return gradients
        from .reruns import without_first_runs  # on first use

        leaves, structure = flatten(gradients)
        found = [x for x in leaves if type(x) is Value]
        results = [y for y in self.leaves if type(y) is Value]
        weak = graph._weak  # of what may be a Python number it is known in the loop that makes it
        numbers = [y for y in results if y.shape == () and y._is_scalar and (weak is None or not weak.flag_of(y)[0])]
        others = [y for y in results if not any(y is number for number in numbers)]
        made = iter(without_first_runs(graph, [*found, *numbers], others))
        leaves = [next(made) if type(x) is Value else x for x in leaves]
        again = {id(y): next(made) for y in numbers}
        self.leaves = [again.get(id(y), y) for y in self.leaves]
        self.result = self.structure.unflatten(self.leaves)
        return structure.unflatten(leaves)

    def push(self, tangents: list[Any]) -> Any:
        """Return the tangent of the result, for one tangent for each input."""
        values = [y for y in self.leaves if isinstance(y, Value)]
        found = iter(forward(values, self.inputs, tangents))
        parts = [_full(next(found) if isinstance(y, Value) else None, y) for y in self.leaves]
        return self.structure.unflatten(parts)

    @staticmethod
    def jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the value and its derivative along a direction, as `pyop.jvp`."""
        which = tuple(k for k, t in enumerate(tangents) if t is not None)
        call = Symbolic(f, primals, {}, which, also=tangents)
        given: list[Any] = []
        for k, tree in zip(which, call.trees, strict=True):
            given += tree.flatten_up_to(tangents[k])
        given = [t for k, t in enumerate(given) if k not in call.kept]
        for x, t in zip(call.inputs, given, strict=True):
            check_like("a tangent", t, x, "its argument")
        return call.result, call.push(given)

    @staticmethod
    def jacobian_forward(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> Any:
        """Return the Jacobian, as ``pyop.jacobian(f, argnums, mode="forward")``."""
        call = Symbolic(f, args, kwargs, argnums)
        return call.forward_jacobian(call.inputs, call.push, lambda: call.result)


def _full(part: Any, like: Any) -> Any:
    """Return a tangent in the shape of its array, zeros for None."""
    if part is None:
        return np.zeros_like(like)
    return part if shape_of(part) == shape_of(like) else broadcast_like(part, like)
