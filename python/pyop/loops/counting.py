"""Define `fori_loop`, a loop with a given number of iterations.

On arrays it is a Python loop, with NumPy's bits. Where a function is traced it becomes one node, whose body is written
down once and runs in C++.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core import Tensor, Value
from .._tree import flatten
from ..declare.dim import Dim
from ..graph.counter import is_counter, size_of
from ..graph.deciding import Specialise
from ..graph.symbolic_number import counted, is_number
from ..refusals import refusal
from .recording import Recording, add_loop
from .state import PEELED, apart, check_writes, checked, graph_of, has_tensors, own, refuse_change, same_specs, value_of

__all__ = ["fori_loop", "loop"]


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any, *, checkpoint: bool = False) -> Any:
    """Run ``state = body(i, state)`` for each `i` from `lower` to `upper` (not included), as one node of a graph.

    Parameters
    ----------
    lower, upper : int
        In a graph also Values, integers of no dimension.
    body : callable
        Takes the number of the iteration and the state, and returns the next state. What it does beside that happens
        when it is traced.
    init : tree of array
        The first state: arrays in tuples, lists, dicts, named tuples or dataclasses. It is not written.
    checkpoint : bool
        In a graph: the derivative in reverse mode stores about 2 √n states of `n` iterations instead of `n`, and runs
        the body once more.

    Returns
    -------
    tree of array
        The last state, in memory of its own.

    Raises
    ------
    TypeError
        In a graph: dtype or shape of what is carried changes from iteration to iteration, the body needs the number of
        the iteration, or it writes into an array that it was not given.

    See Also
    --------
    while_loop, scan, cond

    Examples
    --------
    >>> import numpy as np, pyop
    >>> def power(x, n):
    ...     return pyop.fori_loop(0, n, lambda i, y: y * x, np.ones_like(x))
    >>> power(np.array([2.0, 3.0]), 3)
    array([ 8., 27.])
    >>> pyop.compile(power)(np.array([2.0, 3.0]), 3)
    array([ 8., 27.])
    """
    return loop("fori_loop", lower, upper, body, init, checkpoint=checkpoint)


def loop(name: str, lower: Any, upper: Any, body: Any, init: Any, step: int = 1, checkpoint: bool = False) -> Any:
    lower, upper = _bound(lower), _bound(upper)
    leaves, tree = flatten(init)
    graph = graph_of((lower, upper, init))
    known = type(lower) is int and type(upper) is int
    if graph is None or has_tensors(leaves):
        if not known:
            lower, upper = operator.index(lower), operator.index(upper)
        state = tree.unflatten([own(leaf) for leaf in leaves])
        for i in range(lower, upper, step):
            state = checked(tree, body(i, state), name)[1]
        return apart(state)
    lower, upper = (_settled(graph, x) for x in (lower, upper))
    values: list[Any] = []
    after: Any = None
    for _ in range(PEELED + 1):
        if known and not range(lower, upper, step):
            return apart(tree.unflatten(leaves))
        values = [value_of(graph, leaf) for leaf in leaves]
        after = None
        if all(value is not None for value in values):
            found = _record(graph, name, (lower, upper, step), body, values, tree, checkpoint)
            if type(found) is list:
                return tree.unflatten(found)
            after = found
        if not known:
            break
        leaves = checked(tree, body(lower, tree.unflatten(leaves)), name)[0]
        lower += step
    return refuse_change(name, values, after, tree)


def _record(
    graph: Any, name: str, bounds: tuple[Any, Any, int], body: Any, values: list[Any], tree: Any, checkpoint: bool
) -> Any:
    """Return what the loop leaves behind, a list; where an iteration changes its kind, what that leaves, a tuple."""

    asked: Any  # the same, among the places of a Number

    def needed() -> NoReturn:
        raise refusal(
            f"the body of {name} at {Value._here()} needs the number of the iteration, which a loop in a graph counts "
            "when it runs: index and compute with it, decide with np.where, or write a Python loop, which is unrolled"
        )

    asked = needed
    with Recording(graph) as recording:
        counter, number = recording.counter(needed)
        given = [recording.stand_in(value.spec, value._is_scalar) for value in values]
        try:
            result = body(counter, tree.unflatten([value._apart() for value in given]))
        except Specialise as error:
            if any(place is asked for place in error.places):
                needed()
            raise
        results, _ = checked(tree, result, name)
        after = [value_of(graph, leaf) for leaf in results]
        check_writes(recording, name)
        if not same_specs(values, after):
            return tuple(after)
        return add_loop(recording, bounds, [number, *given], values, after, checkpoint=checkpoint)


def _bound(x: Any) -> Any:
    if type(x) in (Value, Dim) or is_number(x) or is_counter(x):
        return x
    return operator.index(x) if not issubclass(type(x), Tensor) else x


def _settled(graph: Any, bound: Any) -> Any:
    """Return a bound as a Python int or a Value of int64."""
    if is_counter(bound) or type(bound) is Dim:
        return counted(size_of(bound), graph)
    if is_number(bound):
        bound = bound._value
    if type(bound) is not Value:
        return bound
    if bound.shape != () or bound.dtype is None or bound.dtype.kind not in "iu":
        raise TypeError(f"the bounds of a loop are integers, not {bound.spec}")
    return bound if bound.dtype == np.int64 else bound.astype(np.int64)
