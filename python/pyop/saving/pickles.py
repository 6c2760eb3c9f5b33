"""Pickle and copy graphs and their objects.

The types of the core have no pickling of their own. `install` of the package registers it, by `copyreg`, where copy
looks too, and this module is imported when something is pickled or copied. Functions are pickled by reference as
always. The name of an op's function leads to the op, so the op is written in its place.
"""

from __future__ import annotations

import dataclasses
from types import FunctionType, MappingProxyType
from typing import Any

from .. import _core
from .._core import FunctionClass, Node, Op, Plan, Value
from ..declare.references import by_path, declared_by_op, found_at, op_of_function
from ..graph.cells import shown_place
from ..graph.graph import Graph
from ..graph.node_call import Record, row_of
from ..transforms.op_rule import op_gradient_of
from .kinds import BY_NAME, PICKLED, Leaf, contract_of_parts, forms_of
from .kinds import itself as _same
from .moved import load_hidden
from .parts import Parts, outputs_of, parts_of, put_together, set_origins


class _Function:
    """Hold a function, written as the op it belongs to."""

    __slots__ = ("given",)

    def __init__(self, given: Any) -> None:
        self.given = given

    def __reduce__(self) -> Any:
        op = by_path(op_of_function(self.given)) if isinstance(self.given, FunctionType) else None
        return (_same, (self.given,)) if op is None else (_wrapped, (op,))


class _Declared:
    """Hold the contract of a node: that of its op, where the op has rules."""

    __slots__ = ("fn", "given")

    def __init__(self, fn: Any, given: Any) -> None:
        self.fn = fn
        self.given = given

    def __reduce__(self) -> Any:
        op = by_path(declared_by_op(self.fn, self.given))
        return (_same, (self.given,)) if op is None else (_made, ("contract_of", op))


load_hidden()


def _wrapped(op: Op) -> Any:
    return op.__wrapped__


_FIELDS = [field.name for field in dataclasses.fields(Record)]
_FN, _CONTRACT, _ORIGIN = (_FIELDS.index(name) for name in ("fn", "contract", "origin"))


def _reduce_graph(graph: Graph) -> Any:
    # One object for all nodes of a function: pickle writes it once and refers to it.
    functions: dict[int, _Function] = {}
    contracts: dict[tuple[int, int], _Declared] = {}
    records = []
    origins: dict[str, list[int]] = {}  # where the nodes were created, once a place: errors name it elsewhere too
    for index, row in enumerate(map(list, map(row_of, graph.nodes))):
        row[_ORIGIN] = shown_place(row[_ORIGIN])
        origins.setdefault(row[_ORIGIN], []).append(index)
        fn, contract = row[_FN], row[_CONTRACT]
        row[_FN] = functions.get(id(fn)) or functions.setdefault(id(fn), _Function(fn))
        both = id(fn), id(contract)
        row[_CONTRACT] = contracts.get(both) or contracts.setdefault(both, _Declared(fn, contract))
        records.append(tuple(row))
    return _graph, (graph.name, tuple(records), outputs_of(graph), graph._writes, graph._absorbed, origins)


def _graph(
    name: str, records: Any, outputs: Any, writes: Any = (), absorbed: Any = (), origins: Any = MappingProxyType({})
) -> Graph:
    graph = put_together(Parts(name, tuple(Record(*record) for record in records), outputs, writes, absorbed))
    return set_origins(graph, origins)


def _copied(graph: Graph) -> Graph:
    return put_together(parts_of(graph))


def _reduce(x: Any) -> Any:
    """Reduce by the table of types, passing over ops that the pickler must not name by a path."""
    form = next(form for form in forms_of(x) if form.at is not Op or by_path(form.parts(x)) is not None)
    return _made, (form.name, _with_ops(form.parts(x)))


def _reduce_call(x: Any, protocol: Any) -> Any:
    """Reduce the callable of a node."""
    return _reduce(x) if type(x) in PICKLED else object.__reduce_ex__(x, protocol)


def _with_ops(parts: Any) -> Any:
    if isinstance(parts, list):
        return list(map(_with_ops, parts))
    return _Function(parts) if isinstance(parts, FunctionType) else parts


def _made(name: str, parts: Any) -> Any:
    return BY_NAME[name].made(_without_ops(parts))


def _without_ops(parts: Any) -> Any:
    """Return the parts as pickle would leave them, for copy.copy."""
    if isinstance(parts, list):
        return list(map(_without_ops, parts))
    return parts.given if isinstance(parts, _Function) else parts


def _reduce_plan(plan: Plan) -> Any:
    graph, fetches, feeds, *rest, writes = plan._made_of
    places = [tuple(map(_place, values)) for values in (fetches, feeds, *writes)]
    return _plan, (graph, *places[:2], rest, *([places[2:]] if writes else []))


def _place(fetch: Value | Node) -> tuple[int, int | None]:
    return (fetch.node.index, fetch.output_index) if isinstance(fetch, Value) else (fetch.index, None)


def _plan(graph: Graph, fetches: Any, feeds: Any, rest: Any, writes: Any = ()) -> Plan:
    def at(place: tuple[int, int | None]) -> Any:
        node, output = place
        return graph[node] if output is None else graph._value(node, output)

    pairs = tuple([(at(before), at(after)) for before, after in writes])
    values: tuple[Any, ...] = (tuple(map(at, fetches)), tuple(map(at, feeds)))
    options: tuple[Any, ...] = (*values, *rest, pairs)
    return _core.compile(graph, *options)


def _reduce_function(function: FunctionClass) -> Any:
    made = getattr, (function.cls, "apply")
    if by_path(function.cls) is function.cls and found_at(f"{function.cls.__module__}.{function.cls.__qualname__}") is (
        function.cls
    ):
        return made
    # A class that goes by value is made without its methods, and its apply with it.
    from ..autograd.function import complete, methods_of

    return *made, methods_of(function.cls), None, None, complete


# In pickles of earlier versions.
_Mark, _contract, _gradient = Leaf, contract_of_parts, op_gradient_of
_tree_call = BY_NAME["call_on_tree"].make
_contract_of_op, _contract_of_saving = BY_NAME["contract_of"].make, BY_NAME["contract_of_saving"].make
