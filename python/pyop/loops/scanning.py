"""Define `scan`, a loop along the first axis of arrays that stacks what each iteration makes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from .._tree import flatten
from .counting import loop
from .state import apart, checked, graph_of, has_tensors, own, value_of

__all__ = ["scan"]


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    checkpoint: bool = False,
) -> Any:
    """Run ``state, y = f(state, x)`` for each `x` along the first axis of `xs`, and stack the `y`: one node of a graph.

    Parameters
    ----------
    f : callable
        Takes the state and a part of `xs`, and returns the next state and what is stacked.
    init : tree of array
        The first state. It is not written.
    xs : tree of array, optional
        All have the same first size. None: there is only the state, and `length` says how often.
    length : int, optional
        How many iterations; by default the first size of `xs`.
    reverse : bool
        From the last to the first; the `y` stand where their `x` stood.
    checkpoint : bool
        In a graph: the derivative in reverse mode stores about 2 √n states of `n` iterations instead of `n`, and runs
        the body once more.

    Returns
    -------
    state, ys : tree of array
        The last state, and what was stacked; None where `f` returns None for that.

    See Also
    --------
    fori_loop, while_loop, cond

    Examples
    --------
    >>> import numpy as np, pyop
    >>> def decay(x):
    ...     def step(y, part):
    ...         y = 0.5 * y + part
    ...         return y, y
    ...     return pyop.scan(step, np.float64(0.0), x)[1]
    >>> decay(np.ones(3))
    array([1.  , 1.5 , 1.75])
    >>> pyop.compile(decay)(np.ones(3))
    array([1.  , 1.5 , 1.75])
    """
    parts, xs_tree = flatten(xs) if xs is not None else ([], None)
    n = _length(parts, length)
    if n == 0:
        raise ValueError("scan over nothing: what it would stack is not known; give at least one iteration")
    order = range(n - 1, -1, -1) if reverse else range(n)
    graph = graph_of((init, xs))
    if graph is None or has_tensors((*flatten(init)[0], *parts)):
        return _scan_plainly(f, init, parts, xs_tree, order)
    # The first iteration tells what is stacked.
    tree = flatten(init)[1]
    first = order[0]
    state, y = _pair(f(init, _part(parts, xs_tree, first)))
    before, _ = checked(tree, state, "scan")
    ys, ys_tree = _stackable(y)
    stacked = [_stacked(graph, leaf, n, first) for leaf in ys]

    def body(i: Any, both: Any) -> Any:
        now, made = both
        now, new = _pair(f(now, _part(parts, xs_tree, i)))
        fresh, fresh_tree = _stackable(new)
        if fresh_tree != ys_tree:
            raise TypeError(f"scan: f returned {ys_tree} to stack in one iteration, and {fresh_tree} in the next")
        for whole, item in zip(made, fresh, strict=True):
            whole[i] = item
        return now, made

    rest = order[1:]
    state, made = loop("scan", rest.start, rest.stop, body, (tree.unflatten(before), stacked), rest.step, checkpoint)
    return state, None if ys_tree is None else ys_tree.unflatten(made)


def _scan_plainly(f: Any, init: Any, parts: list[Any], xs_tree: Any, order: range) -> Any:
    leaves, tree = flatten(init)
    state = tree.unflatten([own(leaf) for leaf in leaves])
    columns: list[Any] = [None] * len(order)
    ys_tree: Any = None
    for k, i in enumerate(order):
        state, y = _pair(f(state, _part(parts, xs_tree, i)))
        checked(tree, state, "scan")
        columns[i], found = _stackable(y)
        if k and found != ys_tree:
            raise TypeError(f"scan: f returned {ys_tree} to stack in one iteration, and {found} in the next")
        ys_tree = found
    stacked = [np.stack(column) for column in zip(*columns, strict=True)]
    return apart(state), None if ys_tree is None else ys_tree.unflatten(stacked)


def _stackable(y: Any) -> tuple[list[Any], Any]:
    """Return what is stacked, and its tree; nothing, and no tree, for None."""
    return ([], None) if y is None else flatten(y)


def _pair(result: Any) -> tuple[Any, Any]:
    if type(result) is not tuple or len(result) != 2:
        raise TypeError(f"scan: f returns the next state and what is stacked, a pair, not {type(result).__name__}")
    return result


def _part(parts: list[Any], tree: Any, i: Any) -> Any:
    if tree is None:
        return None
    found = []
    for whole in parts:
        part = whole[i]
        if type(part) is np.ndarray:
            part.flags.writeable = False
        elif type(part) is Value:
            part = part._lent()
        found.append(part)
    return tree.unflatten(found)


def _length(parts: list[Any], length: Any) -> int:
    sizes = {np.shape(part)[0] if np.ndim(part) else None for part in parts}
    if None in sizes:
        raise ValueError("scan goes along the first axis of xs, and a part of it has no dimension")
    if length is not None:
        sizes.add(operator.index(length))
    if len(sizes) != 1:
        raise ValueError(f"scan needs one length, and got {sorted(map(str, sizes)) or 'neither xs nor length'}")
    (n,) = sizes
    if type(n) is not int:
        raise TypeError(f"scan needs a length that is known when the graph is built, not {n}: trace with sizes")
    return n


def _stacked(graph: Any, leaf: Any, n: int, first: int) -> Any:
    value = value_of(graph, leaf, weak=True)
    if value is None or value.dtype is None or value.shape is None or not all(type(m) is int for m in value.shape):
        raise TypeError(f"scan: dtype and shape of what is stacked must be known, and it is {leaf!r:.80}")
    made = np.zeros_like(value, shape=(n, *value.shape))
    made[first] = value
    return made
