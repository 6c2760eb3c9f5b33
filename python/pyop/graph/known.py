"""Find what is known of a Value before its graph runs: everything, if it is computed of constants alone.

A traced function may make arrays from no argument and branch on their numbers: these are the same in every call.
"""

from __future__ import annotations

from typing import Any

from .._core import Value

__all__ = ["is_known", "key_of_numbers", "numbers_asked", "numbers_of"]


def is_known(value: Value) -> bool:
    """Return whether a Value depends on nothing that a run is given.

    >>> import numpy as np, pyop
    >>> from pyop.graph.known import is_known
    >>> with pyop.Graph() as g:
    ...     x = g.input("float64[3]")
    ...     c = g.constant(np.arange(3.0))
    >>> is_known(np.sin(c)), is_known(c + x)
    (True, False)
    """
    graph: Any = value.graph
    known: dict[int, bool] = graph._known
    pending = [value.node.index]
    while pending:
        at = pending[-1]
        if at in known:
            pending.pop()
            continue
        node = graph[at]
        if node.kind != "py":
            known[at] = node.kind == "constant"
            continue
        inputs = [x.node.index for x in node.inputs]
        unseen = [k for k in inputs if k not in known]
        if unseen and not any(known.get(k) is False for k in inputs):
            pending += unseen
        else:
            opens = getattr(node.function, "_pyop_opens", False)  # a derivative by it is asked for
            known[at] = not (node.stateful or opens) and all(known[k] for k in inputs if k in known)
    return known[value.node.index]


def numbers_of(value: Value) -> Any:
    """Return the array of a Value, if it is known; else None.

    >>> import numpy as np, pyop
    >>> from pyop.graph.known import numbers_of
    >>> with pyop.Graph() as g:
    ...     c = g.constant(np.arange(3.0))
    >>> numbers_of(c * 2), numbers_of(g.input("float64[3]"))
    (array([0., 2., 4.]), None)
    """
    graph: Any = value.graph
    if not is_known(value):
        return None
    decisions = getattr(graph, "_deciding", None)  # keeps what it has computed: what comes next is computed of that
    return graph.run(value) if decisions is None else decisions.computed(value.node.index, value.output_index)


def numbers_asked(value: Value) -> Any:
    """Return what NumPy would have where the function under trace asks a Value for its numbers, or None.

    It is None if they are not known, or if the function was not traced as twins: these alone have Values for arrays
    that the function makes.
    """
    if getattr(value.graph, "_twins", None) is None or value.dtype is None or not is_known(value):
        return None
    numbers = numbers_of(value)
    return numbers[()] if value._is_scalar else numbers


def key_of_numbers(graph: Any, key: Any) -> Any:
    """Return an index with integers and arrays for the known Values in it.

    Then the number of elements that it picks is known too.
    """
    if getattr(graph, "_twins", None) is None:
        return key
    if type(key) is tuple:
        return tuple([_number(item) for item in key])
    return _number(key)


def _number(item: Any, *, bound: bool = False) -> Any:
    if type(item) is slice:
        return slice(*[_number(part, bound=True) for part in (item.start, item.stop, item.step)])
    if type(item) is not Value or item.dtype is None or item.dtype.kind not in "iub" or not is_known(item):
        return item
    numbers = numbers_of(item)
    # An array of no dimension picks an element, which is a copy, where an integer gives a view.
    is_integer = numbers.ndim == 0 and numbers.dtype.kind != "b" and (bound or item._is_scalar is not False)
    return int(numbers) if is_integer else numbers
