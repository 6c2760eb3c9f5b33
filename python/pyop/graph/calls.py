"""Add a node for a call of any function with Values among its arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from .._core import GraphError, Value
from .._tree import flatten
from ..declare.parameters import default_name
from ..declare.rebuild import CallForOne, CallOnTree, call_on_tree

__all__ = ["CALLED_BACK", "apply"]

CALLED_BACK = frozenset((FunctionType, MethodType, partial))
"""Types of functions of the user's that NumPy's call (`np.piecewise`)."""


def apply(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    specs: Any,
    *,
    name: str | None = None,
    stateful: bool = False,
    scalar: bool | None = None,
) -> Any:
    """Add ``func(*args, **kwargs)`` to the graph of its Values, and return Values in the form of `specs`.

    For functions that are known not to write into their arguments: they get the arrays as they are. Values may stand at
    top level or inside tuples, lists and dicts; arrays become constants of the graph, anything else is static.
    `stateful`: the function has side effects or hidden inputs. `scalar`: whether NumPy has scalars where results have
    no dimension, else arrays; None if that is not known.

    >>> import numpy as np, pyop
    >>> from pyop.graph import calls
    >>> g = pyop.Graph()
    >>> x = g.input("float64[3]")
    >>> y = calls.apply(np.flip, (x,), {"axis": 0}, pyop.Spec.parse("float64[3]"))
    >>> g.run(y, {x: [1.0, 2.0, 3.0]})
    array([3., 2., 1.])
    """
    spec_leaves, structure = flatten(specs)
    graph: Any = None
    nested = False
    called_back = []
    for argument in (*args, *kwargs.values()):
        if isinstance(argument, Value):
            graph = graph or argument.graph
        elif isinstance(argument, tuple | list | dict):
            nested = True
            called_back += [x for x in argument if type(x) in CALLED_BACK]
        elif type(argument) in CALLED_BACK:
            called_back.append(argument)
    call: dict[str, Any] | None = None
    if nested:
        leaves, tree = flatten((args, kwargs))
        inner = [leaf for leaf in leaves if isinstance(leaf, Value)]
        if len(inner) > sum(isinstance(a, Value) for a in (*args, *kwargs.values())) or _has_arrays(
            args, kwargs, leaves
        ):
            graph = graph or inner[0].graph
            call = _nested_call(func, leaves, tree)
    call = call or _flat_call(func, args, kwargs)
    if graph is None:
        raise GraphError(f"no Value among the arguments of {default_name(func)}: there is no graph to add a node to")
    if len(spec_leaves) == 1 and not structure.is_leaf:
        call["fn"] = CallForOne(call["fn"])  # one result is the result, whatever container it comes in
    for function in called_back:  # what they read is looked at when the graph is complete
        graph._keep(function)
    node = graph._add_call(
        name=name or default_name(func), specs=spec_leaves, stateful=stateful, lends=False, scalar=scalar, **call
    )
    return structure.unflatten(node._results)


def _flat_call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    inputs: list[Any] = []
    order: list[int] = []
    statics: list[Any] = []
    for argument in (*args, *kwargs.values()):
        if issubclass(type(argument), Value | np.ndarray):
            order.append(len(inputs))
            inputs.append(argument)
        else:
            order.append(~len(statics))
            statics.append(argument)
    call: dict[str, Any] = {"fn": func, "inputs": tuple(inputs)}
    if statics or kwargs:
        call |= {"order": order, "statics": tuple(statics), "kwnames": tuple(kwargs) or None}
    return call


def _has_arrays(args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> bool:
    """Return whether an array stands inside a container, beside Values."""
    flat = sum(issubclass(type(a), np.ndarray) for a in (*args, *kwargs.values()))
    values = any(isinstance(leaf, Value) for leaf in leaves)
    return values and sum(issubclass(type(leaf), np.ndarray) for leaf in leaves) > flat


def _nested_call(func: Callable[..., Any], leaves: list[Any], tree: Any) -> dict[str, Any]:
    is_array = [isinstance(leaf, Value | np.ndarray) for leaf in leaves]
    inputs = tuple(leaf for leaf, array in zip(leaves, is_array, strict=True) if array)
    pattern = tuple(CallOnTree.ARRAY if array else leaf for leaf, array in zip(leaves, is_array, strict=True))
    return {"fn": call_on_tree(func, tree, pattern), "inputs": inputs}
