"""Define `cond`, which calls one of two functions, by a truth that is known when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from .._tree import flatten
from ..graph.symbolic_number import is_number
from .node import Branch
from .recording import Recording
from .state import apart, check_writes, value_of

__all__ = ["cond"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Return ``true_fn(*operands) if pred else false_fn(*operands)``: one node of a graph where `pred` is symbolic.

    Parameters
    ----------
    pred : bool
        In a graph also a Value of one truth.
    true_fn, false_fn : callable
        Return trees of the same form, of the same dtypes and shapes. Neither writes into arrays that it is given.
    *operands : tree of array

    Returns
    -------
    tree of array
        In memory of its own.

    Raises
    ------
    TypeError
        In a graph: the two functions return trees of another form, dtype or shape.

    See Also
    --------
    fori_loop, while_loop, scan

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def shrink(x):
    ...     return pyop.cond(np.sum(x) > 3.0, lambda x: x / np.sum(x), lambda x: x * 1.0, x)
    >>> shrink(np.ones(2)), shrink(np.ones(4))
    (array([1., 1.]), array([0.25, 0.25, 0.25, 0.25]))
    """
    truth = pred._value if is_number(pred) else pred
    if type(truth) is not Value:
        return apart(true_fn(*operands) if pred else false_fn(*operands))
    graph = truth.graph
    if truth.shape != ():
        raise TypeError(f"the condition of cond must be one truth, and is {truth.spec}: reduce it with .all()")
    leaves, tree = flatten(operands)
    parts: list[Any] = []
    for function in (true_fn, false_fn):
        with Recording(graph) as recording:
            given = [leaf._lent() if type(leaf) is Value else leaf for leaf in leaves]
            results, form = flatten(function(*tree.unflatten(given)))
            values = [_value(graph, leaf) for leaf in results]
            check_writes(recording, "cond")
            parts.append((form, values, *recording.body((), values)))
    (form, values, yes, of_yes, effects), (other_form, others, no, of_no, other_effects) = parts
    if form != other_form:
        raise TypeError(f"cond: true_fn returned {form}, and false_fn {other_form}: return trees of one form")
    for a, b in zip(values, others, strict=True):
        if a.spec != b.spec or a._is_scalar != b._is_scalar:
            raise TypeError(
                f"cond: true_fn returned {a.spec}, and false_fn {b.spec}: convert one (.astype, np.broadcast_to), or "
                "choose between results with np.where"
            )
    if truth.dtype != np.bool_:
        truth = truth != 0
    node = graph._add_call(
        Branch(yes, no),
        (truth, *of_yes, *of_no),
        "cond",
        specs=[value.spec for value in values],
        stateful=effects or other_effects,
        lends=False,
        scalar=bool(values) and all(value._is_scalar for value in values),
    )
    made = zip(node._results, values, strict=True)
    return form.unflatten([new[()] if old._is_scalar and not new._is_scalar else new for new, old in made])


def _value(graph: Any, leaf: Any) -> Value:
    found = value_of(graph, leaf)
    if found is None:  # a Python number
        found = (leaf._value if is_number(leaf) else graph.constant(leaf))[()]
    value: Value = found
    return value
