"""Read the call that a node of a graph makes, keep it as data, and make it again in another graph.

The core may call wrappers (`pyop.declare.rebuild`) that put arrays into containers, sizes into arguments, or take one
result out of its container. `call_of` takes them off. `record_of` and `add` copy a node with its wrappers.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import numpy as np

from .._core import CallOnTree, Contract, GraphBase, Node, Value
from .._tree import flatten
from ..declare.rebuild import CallForOne, CallOnTrees, call_with_sizes, layers, unflatten_each, unwrapped
from ..declare.spec import Spec

__all__ = ["NodeCall", "Record", "add", "call_of", "declared_spec", "kept_nodes", "layers", "record_of", "row_of"]
__all__ += ["unwrapped"]


@dataclass(frozen=True, slots=True)
class NodeCall:
    """Describe ``function(*args, **kwargs)``, with one object for each input of the node among the arguments.

    `inputs` are those objects.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: Sequence[Any] = field(repr=False)
    of_one: bool = False  # the function returns a container of one array
    # Where symbolic sizes among the arguments find their numbers: an input and its axis.
    carriers: dict[str, tuple[Any, int]] | None = None

    @property
    def nested(self) -> bool:
        """Return whether inputs stand inside containers among the arguments, or sizes have to be put in."""
        return self.carriers is not None or _any_inside((*self.args, *self.kwargs.values()), self.inputs)

    def packed(self, results: tuple[Any, ...]) -> Any:
        """Return results, or what belongs to them, as the function returns them."""
        return results if len(results) != 1 or self.of_one else results[0]


def call_of(node: Node, inputs: Sequence[Any] | None = None, function: Any = None) -> NodeCall:
    """Return the call that a node makes.

    `inputs` is what stands for its inputs, the Values by default; `function` is taken instead of what the node calls,
    with the arguments as the node has them.

    >>> import numpy as np, pyop
    >>> g = pyop.trace(lambda x: np.concatenate([x, x], axis=0), "float64[n]")
    >>> call = call_of(g[1], ["a", "b"])
    >>> call.function is np.concatenate, call.args, call.kwargs, call.nested
    (True, (['a', 'b'],), {'axis': 0}, True)
    """
    inputs = node.inputs if inputs is None else inputs
    args, kwargs = _arguments(node, inputs)
    carriers = None
    of_one = False
    for fn in layers(function or node.function):
        if isinstance(fn, CallForOne):
            of_one = True
        elif isinstance(fn, CallOnTree):
            given = iter(args)
            args, inner = fn.tree.unflatten([next(given) if x is CallOnTree.ARRAY else x for x in fn.leaves])
            kwargs = {**inner, **kwargs}
        elif isinstance(fn, CallOnTrees):
            args = tuple(unflatten_each(fn.trees, args))
    if fn is call_with_sizes:
        fn, args, kwargs, carriers = args
    return NodeCall(fn, tuple(args), dict(kwargs), inputs, of_one, carriers)


def _arguments(node: Node, inputs: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if node._form is None:
        return tuple(inputs), {}
    order, statics, names = node._form
    items = [inputs[code] if code >= 0 else statics[~code] for code in order]
    cut = len(items) - len(names or ())
    return tuple(items[:cut]), dict(zip(names or (), items[cut:], strict=True))


def _any_inside(arguments: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Return whether an argument is a container with arrays in it."""
    known = set(map(id, arrays))
    waiting = [x for x in arguments if id(x) not in known]
    seen: dict[int, Any] = {}  # a container may hold itself
    while waiting:
        part = waiting.pop()
        if id(part) in known:
            return True
        if id(part) in seen:
            continue
        seen[id(part)] = part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
        elif is_dataclass(part) and not isinstance(part, type):
            waiting += flatten(part, functools.partial(operator.is_not, part))[0]
    return False


def kept_nodes(graph: Any) -> list[int]:
    """Return the nodes that are not of bodies of loops alone, in order."""
    absorbed = {k for first, end in graph._absorbed for k in range(first, end)}
    waiting = [k for k in range(len(graph)) if k not in absorbed]
    waiting += [node for node, _ in graph._outputs[0]] if graph._outputs is not None else []
    needed: set[int] = set()
    while waiting:
        index = waiting.pop()
        if index not in needed:
            needed.add(index)
            waiting += [value.node.index for value in graph[index].inputs]
    return sorted(needed)


# --- nodes as data


@dataclass(frozen=True)
class Record:
    """Record one node as it was created. Every copy of a graph loses what a record leaves out."""

    kind: str
    name: str
    specs: tuple[Spec, ...]
    array: Any = None
    fn: Any = None
    inputs: tuple[tuple[int, int], ...] = ()
    contract: Contract | None = None
    form: tuple[tuple[int, ...], tuple[Any, ...], tuple[str, ...] | None] | None = None
    stateful: bool = False
    lends: bool = True
    of_scalars: bool = False
    scalar: bool | None = None  # whether its results of no dimension are scalars
    origin: str | None = None  # where it was created; None: here


def record_of(node: Node) -> Record:
    """Return the record of a node."""
    return Record(*row_of(node))


def row_of(node: Node) -> tuple[Any, ...]:
    """Return the fields of a node's record: of many nodes that takes half the time."""
    outputs = node.outputs
    specs = tuple([declared_spec(value) for value in outputs])
    if node.kind == "constant":
        graph: Any = outputs[0].graph
        array = graph.run(outputs[0])
        return ("constant", node.name, specs, array, None, (), None, None, False, True, False, None, node.origin)
    scalar = None
    for value in outputs:
        if not value.shape:
            scalar = value._is_scalar
            break
    if node.kind == "input":
        return ("input", node.name, specs, None, None, (), None, None, False, True, False, scalar, node.origin)
    return (
        "py",
        node.name,
        specs,
        None,
        node.function,
        tuple([(value.node.index, value.output_index) for value in node.inputs]),
        node.contract,
        node._form,
        node.stateful,
        node._lends,
        node._of_scalars,
        scalar,
        node.origin,
    )


def declared_spec(value: Value) -> Spec:
    """Return the spec of a Value; of text of any length, which is no dtype, that it is text."""
    spec = value.spec
    return spec if value._text is None else Spec(np.dtype(value._text), spec.shape)


def add(graph: GraphBase, record: Record, value_at: Callable[[int, int], Any]) -> Node:
    """Create the node of a record in a graph.

    `value_at` returns the Value of this graph for a node and output of the record's.
    """
    if record.kind == "input":
        made = graph._add_input(record.specs[0], record.name, bool(record.scalar)).node
    elif record.kind == "constant":
        made = graph._add_constant(record.array, record.name).node
    else:
        order, statics, kwnames = record.form or (None, None, None)
        made = graph._add_call(
            record.fn,
            tuple(value_at(node, output) for node, output in record.inputs),
            record.name,
            specs=record.specs,
            contract=record.contract,
            order=order,
            statics=statics,
            kwnames=kwnames,
            stateful=record.stateful,
            lends=record.lends,
            of_scalars=record.of_scalars,
            scalar=record.scalar,
        )
    if record.origin is not None:
        graph._set_origin(made.index, record.origin)
    return made
