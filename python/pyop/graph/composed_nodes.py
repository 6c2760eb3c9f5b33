"""Build the plans of nodes whose function is a few simpler ones, for csrc/plan/steps/composed_step.cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Plan, Value
from .._core import compile as compile_graph
from .._tree import flatten
from . import parts_of_arrays, parts_of_linalg, parts_of_statistics  # noqa: F401  they register
from .graph import Graph
from .node_call import call_of
from .parts import IN_ANY_LAYOUT, PARTS, Checked

__all__ = ["composed_part"]

_TUPLE = 1
_KEPT = 256

_plans: dict[Any, tuple[Any, ...]] = {}


def composed_part(graph: Any, index: int, disable: tuple[str, ...], fast: bool) -> tuple[Any, ...]:
    """Return the plan of a node's part, and whether its arguments have to lie in C order.

    The tuple is empty if there is none.

    >>> import numpy as np, pyop
    >>> graph = pyop.trace(lambda x: np.median(x), "float64[5]")
    >>> plan, _ = composed_part(graph, 1, (), False)
    >>> float(plan(np.array([3.0, 1.0, 2.0, 5.0, 4.0]))[0])
    3.0
    """
    node = graph[index]
    call = call_of(node)
    composed = PARTS.get(call.function)
    if composed is None or call.carriers is not None:
        return ()
    shapes = [value.shape for value in node.inputs]
    if any(shape is None or not all(type(n) is int for n in shape) for shape in shapes):
        return ()
    key = _key_of(node, call, disable, fast)
    plan = _plans.get(key) if key is not None else None
    if plan is None:
        plan = _compiled(node, composed, disable, fast)
        if key is not None:
            _plans[key] = plan
            for oldest in [*_plans][:-_KEPT]:  # a copy, since other threads add some, or take the same one, meanwhile
                _plans.pop(oldest, None)
    return plan


def _key_of(node: Any, call: Any, disable: tuple[str, ...], fast: bool) -> Any:
    """Return a key that is equal for nodes with the same part; None where that cannot be told."""
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
    return plan, call.function not in IN_ANY_LAYOUT
