"""Handle symbolic sizes among the arguments: ``x.reshape(x.shape[0], -1)``, ``np.broadcast_to(y, x.shape)``.

A `Dim` has no number when the graph is built. A call that is given one becomes a node with one more input: an array
whose shape has the size in it. The node puts the number in the `Dim`'s place when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import GraphBase, Value, graph_being_built
from ..declare.dims import Dim
from ..declare.rebuild import call_with_sizes, holds, replaced, walk
from . import calls
from .counter import Counter, size_of

__all__ = ["apply"]


def apply(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    specs: Any,
    *,
    name: str,
    scalar: bool | None = None,
    graph: GraphBase | None = None,
) -> Any:
    """Add a node as `pyop.graph.calls.apply` does, with Dims among the arguments.

    `graph` is used where no Value is among them.

    >>> import numpy as np, pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("float64[n, 3]")
    >>> y = np.broadcast_to(x[0], (2, *x.shape))
    >>> str(y.spec), g.run(y, {x: np.ones((4, 3))}).shape
    ('float64[2,n,3]', (2, 4, 3))
    """
    if holds((args, kwargs), Counter):
        args, kwargs = replaced(args, size_of), replaced(kwargs, size_of)
    if not holds((args, kwargs), Dim):
        return calls.apply(func, args, kwargs, specs, name=name, scalar=scalar)
    dims = [leaf for leaf in walk((args, kwargs)) if isinstance(leaf, Dim)]
    names = sorted({name for dim in dims for name in dim.names})
    carriers = {size: _carrier(size, args, kwargs, name, graph) for size in names}
    return calls.apply(call_with_sizes, (func, args, kwargs, carriers), {}, specs, name=name, scalar=scalar)


def _carrier(size: str, args: Any, kwargs: Any, name: str, graph: Any) -> tuple[Any, int]:
    """Return a Value and the axis of it that has this size."""
    graph = graph or graph_being_built()
    for value in walk((args, kwargs)):
        if not isinstance(value, Value):
            continue
        graph = value.graph
        axis = _axis(value, size)
        if axis is not None:
            return value, axis
    if graph is not None and size in graph._counters:
        return graph._value(graph._counters[size], 0), -1
    for value in () if graph is None else graph.inputs:
        axis = _axis(value, size)
        if axis is not None:
            return value, axis
    raise TypeError(
        f"{name} was given the size {size}, but no input of the graph has an axis of just this size to take the number "
        f"from: give an input the shape [{size}], or compute in a pyop.op, which is called with arrays"
    )


def _axis(value: Any, size: str) -> int | None:
    for axis, extent in enumerate(value.shape or ()):
        if isinstance(extent, Dim) and extent.name == size:
            return axis
    return None
