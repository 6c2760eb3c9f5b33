"""Pickles and copies of graphs and of what they are made of.

The types of the core have no pickling of their own: `install` gives it to them, by `copyreg`, where copy looks too.
Functions go by reference as pickle always has them; of an op, whose name leads to the op and not to its function, the
op is written.
"""

from __future__ import annotations

import copyreg
import dataclasses
from types import FunctionType
from typing import Any

from .. import _core
from .._core import CallOnTree, Contract, FunctionClass, Node, Op, Plan, Value
from ..declare.rebuild import CallForOne, CallOnTrees, call_on_tree
from ..declare.references import by_path, declared_by_op, found_at, op_of_function, op_of_gradient
from ..graph.graph import Graph
from . import moved

__all__ = ["contract_of_parts", "install"]


class _Function:
    """A function, written as the op it belongs to."""

    __slots__ = ("fn",)

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __reduce__(self) -> Any:
        fn = self.fn
        op = by_path(op_of_function(fn)) if isinstance(fn, FunctionType) else None
        return (_wrapped, (op,)) if op is not None else (_same, (fn,))


class _Declared:
    """The contract of a node: that of its op, where the op has rules."""

    __slots__ = ("record",)

    def __init__(self, record: Any) -> None:
        self.record = record

    def __reduce__(self) -> Any:
        op = by_path(declared_by_op(self.record.fn, self.record.contract))
        return (_same, (self.record.contract,)) if op is None else (_contract_of_op, (op,))


def _wrapped(op: Op) -> Any:
    return op.__wrapped__


def _same(x: Any) -> Any:
    return x


class _Mark:
    """Stands for CallOnTree.ARRAY, which is known by identity."""


def _reduce_graph(graph: Graph) -> Any:
    from ..graph.node_call import Record
    from .parts import parts_of

    _install_gradients()
    parts = parts_of(graph)
    instead = ((r, {"fn": _Function(r.fn), "contract": _Declared(r)}) for r in parts.records)
    names = [field.name for field in dataclasses.fields(Record)]
    records = tuple(tuple(new.get(name, getattr(r, name)) for name in names) for r, new in instead)
    return _graph, (parts.name, records, parts.outputs)


def _graph(name: str, records: Any, outputs: Any) -> Graph:
    from ..graph.node_call import Record
    from .parts import Parts, put_together

    return put_together(Parts(name, tuple(Record(*record) for record in records), outputs))


def _deepcopy_graph(graph: Graph, memo: dict[int, Any]) -> Graph:
    from .parts import parts_of, put_together

    made = put_together(parts_of(graph))
    memo[id(graph)] = made
    return made


def _reduce_contract(contract: Contract) -> Any:
    form, mutates, out_mode, text, abstract = contract._parts
    gradient = contract.gradient
    if gradient is not None:
        _install_gradients()
        if gradient.saving and contract is gradient.saving[1]:
            return _contract_of_saving, (gradient,)
        op = by_path(op_of_gradient(gradient))
        if op is not None and op.contract is contract:
            return _contract_of_op, (op,)
    return contract_of_parts, (contract.signature, form, mutates, out_mode, text, abstract, gradient)


def _contract_of_op(op: Op) -> Contract:
    return op.contract


def _contract_of_saving(gradient: Any) -> Any:
    return gradient.saving[1]


def contract_of_parts(
    signature: Any, form: int, mutates: int, out_mode: int, text: bool, abstract: Any, gradient: Any
) -> Contract:
    """Return the contract of these parts; equal ones without rules are one."""
    from ..declare.contracts import OutMode, ResultForm, make_contract, new_contract

    if abstract is not None or gradient is not None:
        return new_contract(signature, abstract, ResultForm(form), mutates, OutMode(out_mode), text, gradient)
    return make_contract(
        signature, form=ResultForm(form), mutates=mutates, out_mode=OutMode(out_mode), text_as_utf8=text
    )


_contract = contract_of_parts  # in pickles of earlier versions


def _reduce_tree_call(call: CallOnTree) -> Any:
    marked = tuple(_Mark if leaf is CallOnTree.ARRAY else leaf for leaf in call.leaves)
    return _tree_call, (_Function(call.fn), call.tree, marked)


def _tree_call(fn: Any, tree: Any, leaves: tuple[Any, ...]) -> CallOnTree:
    return call_on_tree(fn, tree, tuple(CallOnTree.ARRAY if leaf is _Mark else leaf for leaf in leaves))


def _reduce_plan(plan: Plan) -> Any:
    graph, fetches, feeds, *rest = plan._made_of
    return _plan, (graph, tuple(map(_place, fetches)), tuple(map(_place, feeds)), rest)


def _place(fetch: Value | Node) -> tuple[int, int | None]:
    return (fetch.node.index, fetch.output_index) if isinstance(fetch, Value) else (fetch.index, None)


def _plan(graph: Graph, fetches: Any, feeds: Any, rest: Any) -> Plan:
    def at(place: tuple[int, int | None]) -> Any:
        node, output = place
        return graph[node] if output is None else graph._value(node, output)

    return _core.compile(graph, tuple(map(at, fetches)), tuple(map(at, feeds)), *rest)


def _itself(x: Any) -> Any:
    return x


def _itself_deep(x: Any, memo: dict[int, Any]) -> Any:
    return x


def _reduce_function(function: FunctionClass) -> Any:
    made = getattr, (function.cls, "apply")
    if by_path(function.cls) is function.cls and found_at(f"{function.cls.__module__}.{function.cls.__qualname__}") is (
        function.cls
    ):
        return made
    # A class that goes by value is made without its methods, and its apply with it.
    from ..autograd.function import complete, methods_of

    return *made, methods_of(function.cls), None, None, complete


def _reduce_gradient(gradient: Any) -> Any:
    op = by_path(op_of_gradient(gradient))
    return object.__reduce_ex__(gradient, 2) if op is None else (_gradient, (op,))


def _gradient(op: Op) -> Any:
    return op.contract.gradient


def _reduce_made(made: Any) -> Any:
    """By what it was made with: its key has addresses in it."""
    from .rules import ARGUMENTS

    parts = [getattr(made, name) for name in ARGUMENTS[type(made)]]
    return type(made), tuple(_Function(part) if isinstance(part, FunctionType) else part for part in parts)


def _install_gradients() -> None:
    """The same for gradient rules, which are not imported before somebody uses them."""
    from ..transforms.op_rule import OpGradient
    from .rules import ARGUMENTS

    copyreg.pickle(OpGradient, _reduce_gradient)
    for kind in ARGUMENTS:
        copyreg.pickle(kind, _reduce_made)


def install() -> None:
    """Teach pickle and copy what pyop's types are."""
    moved.install()
    graph_type: Any = Graph
    graph_type.__reduce__ = _reduce_graph
    graph_type.__deepcopy__ = _deepcopy_graph
    plan_type: Any = Plan
    plan_type.__reduce__ = _reduce_plan
    # A plan never changes; its copy is itself.
    plan_type.__copy__ = _itself
    plan_type.__deepcopy__ = _itself_deep
    reducers: dict[Any, Any] = {
        CallForOne: lambda call: (CallForOne, (_Function(call.fn),)),
        CallOnTree: _reduce_tree_call,
        CallOnTrees: lambda call: (CallOnTrees, (_Function(call.fn), call.trees)),
        Contract: _reduce_contract,
        FunctionClass: _reduce_function,
    }
    for kind, reducer in reducers.items():
        copyreg.pickle(kind, reducer)
