"""What is known of a Value before its graph runs: all, where it is computed of constants alone.

A function that is traced may make arrays of no argument, and go by the numbers in them, for they are the same in every
call.
"""

from __future__ import annotations

from typing import Any

from .._core import Value

__all__ = ["is_known", "numbers_of"]


def is_known(value: Value) -> bool:
    """Whether a Value depends on nothing that a run is given.

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
            known[at] = not node.stateful and all(known[k] for k in inputs if k in known)
    return known[value.node.index]


def numbers_of(value: Value) -> Any:
    """The array that a Value is, if that is known; else None.

    >>> import numpy as np, pyop
    >>> from pyop.graph.known import numbers_of
    >>> with pyop.Graph() as g:
    ...     c = g.constant(np.arange(3.0))
    >>> numbers_of(c * 2), numbers_of(g.input("float64[3]"))
    (array([0., 2., 4.]), None)
    """
    graph: Any = value.graph
    return graph.run(value) if is_known(value) else None
