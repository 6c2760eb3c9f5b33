"""Functions of NumPy that plans compute as a few simpler ones: what csrc/plan/steps/composed_step.cpp asks.

A node keeps its function. When it is compiled a part is written for it: a graph of the functions that it is made of,
which all run natively. Each part does what NumPy's function does with arrays, rounding for rounding. What it does not
know how to do gives `NotImplemented`; what is told only by the numbers is a `Checked`: where a check does not hold when
the plan runs, or where anything would warn or raise, the function itself is called.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Plan, Value
from .._core import compile as compile_graph
from .._tree import flatten
from .graph import Graph
from .node_call import call_of

__all__ = ["Checked", "composed_part", "in_any_layout", "part_of"]

_TUPLE = 1
_KEPT = 256

_PARTS: dict[Any, Callable[..., Any]] = {}
_IN_ANY_LAYOUT: set[Any] = set()
_plans: OrderedDict[Any, tuple[Any, ...]] = OrderedDict()


class Checked:
    """The result of a part, if all these Values of one truth are true."""

    def __init__(self, result: Any, *checks: Any) -> None:
        self.result = result
        self.checks = checks


def part_of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register how some functions are composed: the decorated one is called with the arguments of a node, Values in
    place of arrays.
    """

    def register(composed: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            _PARTS[function] = composed
        return composed

    return register


def in_any_layout(*functions: Any) -> None:
    """The results of these parts lie as NumPy's do whatever the arguments' order in memory is."""
    _IN_ANY_LAYOUT.update(functions)


def composed_part(graph: Any, index: int, disable: tuple[str, ...], fast: bool) -> tuple[Any, ...]:
    """The plan of a node's part, and whether its arguments have to lie in C order; an empty tuple if there is none.

    >>> import numpy as np, pyop
    >>> graph = pyop.trace(lambda x: np.median(x), "float64[5]")
    >>> plan, _ = composed_part(graph, 1, (), False)
    >>> float(plan(np.array([3.0, 1.0, 2.0, 5.0, 4.0]))[0])
    3.0
    """
    from . import parts_of_arrays, parts_of_linalg, parts_of_statistics  # noqa: F401  they register

    node = graph[index]
    call = call_of(node)
    composed = _PARTS.get(call.function)
    if composed is None or call.carriers is not None:
        return ()
    shapes = [value.shape for value in node.inputs]
    if any(shape is None or not all(type(n) is int for n in shape) for shape in shapes):
        return ()
    key = _key_of(node, call, disable, fast)
    found = _plans.get(key) if key is not None else None
    if found is None:
        found = _compiled(node, composed, disable, fast)
        if key is not None:
            _plans[key] = found
            if len(_plans) > _KEPT:
                _plans.pop(next(iter(_plans)), None)
    return found


def _key_of(node: Any, call: Any, disable: tuple[str, ...], fast: bool) -> Any:
    """Equal for nodes whose parts are the same; None where that is not to be told."""
    names = [f"<{k}>" for k in range(len(node.inputs))]
    named = call_of(node, names)
    text = repr((named.args, named.kwargs))
    if "array" in text or " object" in text or " at 0x" in text:
        return None
    return call.function, text, tuple(str(value.spec) for value in node.inputs), disable, fast


def _compiled(node: Any, composed: Callable[..., Any], disable: tuple[str, ...], fast: bool) -> tuple[Any, ...]:
    part = Graph()
    with part:
        inputs = [part.input(value.spec) for value in node.inputs]
        call = call_of(node, inputs)
        try:
            result = composed(*call.args, **call.kwargs)
        except Exception:  # the function says it when it runs
            return ()
    if result is NotImplemented:
        return ()
    checks = result.checks if isinstance(result, Checked) else ()
    made = result.result if isinstance(result, Checked) else result
    leaves = list(flatten(made)[0])
    if len(leaves) != len(node.outputs) or not all(type(leaf) is Value for leaf in (*leaves, *checks)):
        return ()
    for leaf, output in zip(leaves, node.outputs, strict=True):
        if leaf.dtype is None or (output.dtype is not None and output.dtype != leaf.dtype):
            return ()
    plan: Plan = compile_graph(part, (*leaves, *checks), tuple(inputs), _TUPLE, None, False, disable, 1, fast)
    return plan, call.function not in _IN_ANY_LAYOUT


def is_value(x: Any) -> bool:
    """Whether it is a Value, and no array or number."""
    return type(x) is Value


def is_float(*values: Any) -> bool:
    """Whether all are Values of float64 or of float32, of one dtype."""
    return all(type(x) is Value and x.dtype is not None and x.dtype.char in "df" for x in values) and (
        len({x.dtype for x in values}) <= 1
    )


def is_double(*values: Any) -> bool:
    """Whether all are Values of float64."""
    return all(type(x) is Value and x.dtype == np.float64 for x in values)


def axis_in(axis: Any, ndim: int) -> int | None:
    """An axis counted from the front, or None if it is none."""
    return axis % ndim if type(axis) is int and -ndim <= axis < ndim else None


def along(x: Any, axis: int, part: Any) -> Any:
    """``x[part]`` along an axis."""
    return x[(slice(None),) * axis + (part,)]


def all_of(truths: Any) -> Any:
    """Whether all of them are true."""
    return np.all(truths) if truths.ndim else truths


def is_number(x: Any) -> bool:
    """Whether it is a number of Python that is no subclass."""
    return type(x) in (int, float, bool)
