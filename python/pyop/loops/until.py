"""Define `while_loop`, a loop that runs as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from .._tree import flatten
from .recording import Recording, add_loop
from .state import PEELED, apart, check_writes, checked, graph_of, has_tensors, own, refuse_change, same_specs, value_of

__all__ = ["while_loop"]


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, *, checkpoint: bool = False) -> Any:
    """Run ``state = body(state)`` as long as ``cond(state)`` is true, as one node of a graph.

    Parameters
    ----------
    cond : callable
        Takes the state and returns a truth.
    body : callable
        Takes the state, and returns the next one.
    init : tree of array
        The first state. It is not written.
    checkpoint : bool
        In a graph: the derivative in reverse mode stores about 2 √n states of `n` iterations instead of `n`, and runs
        the body once more. The derivative runs it once for the number of iterations, too.

    Returns
    -------
    tree of array
        The last state, in memory of its own.

    See Also
    --------
    fori_loop, scan, cond

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def root(x):
    ...     start = (x, np.float64(np.inf))
    ...     def halve(state):
    ...         y, before = state
    ...         return 0.5 * (y + x / y), y
    ...     return pyop.while_loop(lambda s: np.abs(s[0] - s[1]) > 1e-12, halve, start)[0]
    >>> root(np.float64(2.0))
    np.float64(1.414213562373095)
    """
    graph = graph_of(init)
    leaves, tree = flatten(init)
    if graph is None or has_tensors(leaves):
        state = tree.unflatten([own(leaf) for leaf in leaves])
        while cond(state):
            state = checked(tree, body(state), "while_loop")[1]
        return apart(state)
    for _ in range(PEELED):
        values = [value_of(graph, leaf) for leaf in leaves]
        weak = any(value is None for value in values)
        found = None if weak else _record_while(graph, cond, body, values, tree, checkpoint)
        if type(found) is list:
            return tree.unflatten(found)
        truth = cond(tree.unflatten(leaves))
        if type(truth) is Value:
            break
        if not truth:
            return apart(tree.unflatten(leaves))
        leaves = checked(tree, body(tree.unflatten(leaves)), "while_loop")[0]
    else:
        # What decides is known now, as often as it is asked.
        state = tree.unflatten(leaves)
        while cond(state):
            state = checked(tree, body(state), "while_loop")[1]
        return apart(state)
    return refuse_change("while_loop", values, found, tree)


def _record_while(graph: Any, cond: Any, body: Any, values: list[Any], tree: Any, checkpoint: bool) -> Any:
    with Recording(graph) as recording:
        _, number = recording.counter(lambda: None)
        given = [recording.stand_in(value.spec, value._is_scalar) for value in values]
        truth = cond(tree.unflatten([value._apart() for value in given]))
        if type(truth) is not Value:
            return None
        results, _ = checked(tree, body(tree.unflatten([value._apart() for value in given])), "while_loop")
        after = [value_of(graph, leaf) for leaf in results]
        check_writes(recording, "while_loop")
        if not same_specs(values, after):
            return tuple(after)
        if truth.shape != ():
            raise TypeError(f"the condition of while_loop must be one truth, not {truth.spec}: reduce it with .all()")
        bounds = 0, np.iinfo(np.int64).max, 1
        return add_loop(recording, bounds, [number, *given], values, [*after, truth], True, checkpoint)
