"""Join two arms of a condition: a `Branch` of what differs, and what is the same in both beside it.

Nodes that are the same in both arms are computed in any case; those that differ become the parts of a `Branch`; and
what is the same but for scalars that the arms make is computed behind it. So a table that both arms write at the same
place by different numbers stays outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._core import CallOnTree, Value
from ..graph.graph import Graph
from ..graph.node_call import declared_spec
from ..tracing.same import same
from .node import Branch, Loop
from .recording import copied, is_stand_in
from .weak import Weak, key_of

__all__ = ["join"]

_Key = tuple[int, int]
_Pair = tuple[Any, Any]  # Values, or truths that are known


def join(
    graph: Graph,
    truth: Value,
    yes: Iterable[int],
    no: Iterable[int],
    pairs: Sequence[_Pair],
    conversions: Iterable[int] = (),
) -> list[Any]:
    """Return what each pair is by `truth`.

    The first is made by the nodes `yes`, the second by the nodes `no`, and both by what was there before. The nodes
    `conversions` make of either what can be chosen from.
    """
    first, second = ([k for k in nodes if not is_stand_in(graph[k])] for nodes in (yes, no))
    return _Junction(graph, truth, first, second, list(pairs), frozenset(conversions)).results()


class _Junction:
    def __init__(
        self,
        graph: Graph,
        truth: Value,
        yes: list[int],
        no: list[int],
        pairs: list[_Pair],
        conversions: frozenset[int],
    ) -> None:
        self.graph = graph
        self.truth = truth if truth.dtype == np.bool_ else truth != 0
        self.pairs_of_results = pairs
        self.conversions = conversions
        self.yes = self._needed([*yes, *conversions], [x for x, _ in pairs])
        self.no = self._needed([*no, *conversions], [y for _, y in pairs])
        self.equal: dict[_Key, _Key] = {}  # of Values of the second arm: what they are in the first
        self.hoisted: set[int] = set()
        self.pairs: dict[int, int] = {}  # nodes of the second that are one of the first but for numbers
        self._match()
        self._unpair()

    def _needed(self, nodes: list[int], wanted: Sequence[Any]) -> list[int]:
        own, found = set(nodes), set[int]()
        waiting = [value.node.index for value in wanted if type(value) is not bool]
        while waiting:
            at = waiting.pop()
            if at in own and at not in found:
                found.add(at)
                waiting += [value.node.index for value in self.graph[at].inputs]
        return [at for at in nodes if at in found]

    def _match(self) -> None:
        alike: dict[Any, list[int]] = {}
        for at in self.yes:
            if at not in self.conversions:  # what is known of these (`weak`) is known of them alone
                alike.setdefault(_kind(self.graph[at]), []).append(at)
        last = -1
        for at in self.no:
            if at in self.conversions:
                continue
            node = self.graph[at]
            others = alike.get(_kind(node), [])
            found = next((k for k in others if self._is_same(self.graph[k], node)), None)
            if found is not None:
                others.remove(found)
                self._hoist(found, node)
                continue
            found = next((k for k in others if k > last and self._is_alike(self.graph[k], node)), None)
            if found is not None:
                others.remove(found)
                self.pairs[at] = found
                last = found

    def _hoist(self, at: int, node: Any) -> None:
        self.hoisted.add(at)
        for a, b in zip(self.graph[at].outputs, node.outputs, strict=True):
            self.equal[key_of(b)] = key_of(a)

    def _on_first(self, value: Value) -> _Key:
        key = key_of(value)
        return self.equal.get(key, key)

    def _is_same(self, a: Any, b: Any) -> bool:
        return [key_of(x) for x in a.inputs] == [self._on_first(x) for x in b.inputs] and _is_one_call(a, b)

    def _is_alike(self, a: Any, b: Any) -> bool:
        """Return whether two nodes are the same but for scalars that they are given."""
        if a.kind != "py" or type(a.function) in (Branch, Loop):
            return False
        given: dict[_Key, _Key] = {}
        for x, y in zip(a.inputs, b.inputs, strict=True):
            if given.setdefault(key_of(x), key_of(y)) != key_of(y):
                return False
            if (
                key_of(x) != self._on_first(y)
                and self.pairs.get(y.node.index) != x.node.index
                and not _are_scalars(x, y)
            ):
                return False
        return _is_one_call(a, b)

    def _unpair(self) -> None:
        """Drop pairs until nothing that only one arm computes needs what comes behind the `Branch`."""
        while True:
            behind = set(self.pairs.values())
            back = {y: x for x, y in self.pairs.items()}
            drop: set[int] = set()
            for at in self.yes:
                if at not in behind and at not in self.hoisted:
                    drop |= {back[v.node.index] for v in self.graph[at].inputs if v.node.index in behind}
            for at in self.no:
                if at not in self.pairs and (at, 0) not in self.equal:
                    drop |= {v.node.index for v in self.graph[at].inputs if v.node.index in self.pairs}
            if not drop:
                return
            for at in drop:
                del self.pairs[at]

    def results(self) -> list[Any]:
        """Add the `Branch` and what is computed behind it."""
        graph = self.graph
        behind = sorted(self.pairs.items(), key=lambda pair: pair[1])
        chosen: dict[tuple[_Key, _Key], tuple[Value, Value]] = {}
        asked = [(x, y) for no, yes in behind for x, y in zip(graph[yes].inputs, graph[no].inputs, strict=True)]
        results = [(x, y) if type(x) is type(y) else (self._value(x), self._value(y)) for x, y in self.pairs_of_results]
        truths = {
            x: self.truth if x else np.logical_not(self.truth) for x, y in results if type(x) is bool and x is not y
        }
        for x, y in (*asked, *results):
            if type(x) is not bool and key_of(x) != self._on_first(y) and not self._is_pair(x, y):
                chosen.setdefault((key_of(x), key_of(y)), (x, y))
        new: dict[tuple[_Key, _Key], Value] = dict(zip(chosen, self._branch([*chosen.values()]), strict=True))

        def choice(x: Any, y: Any) -> Any:
            if type(x) is bool:
                return x if x is y else truths[x]
            if key_of(x) == self._on_first(y):
                return x
            return new[key_of(x), key_of(y)]

        for no, yes in behind:
            a, b = graph[yes], graph[no]
            given = {x._key: choice(x, y) for x, y in zip(a.inputs, b.inputs, strict=True)}
            outputs = copied(graph, a, given)
            self._note(outputs, a.outputs, b.outputs)
            for x, y, value in zip(a.outputs, b.outputs, outputs, strict=True):
                new[key_of(x), key_of(y)] = value
        return [choice(x, y) for x, y in results]

    def _value(self, x: Any) -> Value:
        made: Value = self.graph.constant(np.asarray(x))[()] if type(x) is bool else x
        return made

    def _note(self, made: Sequence[Value], yes: Sequence[Value], no: Sequence[Value]) -> None:
        self.graph._weak = self.graph._weak or Weak()
        self.graph._weak.note_branch(made[0].node.index, yes, no)

    def _is_pair(self, x: Value, y: Value) -> bool:
        return self.pairs.get(y.node.index) == x.node.index and x.output_index == y.output_index

    def _branch(self, chosen: list[tuple[Value, Value]]) -> list[Value]:
        """Return what is chosen of each pair."""
        if not chosen:
            return []
        graph = self.graph
        yes = _part(graph, {at for at in self.yes if at not in self.hoisted}, [a for a, _ in chosen], {})
        no = _part(graph, {at for at in self.no if (at, 0) not in self.equal}, [b for _, b in chosen], self.equal)
        node = graph._add_call(
            Branch(yes[0], no[0]),
            (self.truth, *yes[1], *no[1]),
            "branch",
            specs=[a.spec for a, _ in chosen],
            lends=False,
            scalar=all(a._is_scalar for a, _ in chosen),
        )
        self._note(node._results, [a for a, _ in chosen], [b for _, b in chosen])
        return [
            value[()] if a._is_scalar and not value._is_scalar else value
            for value, (a, _) in zip(node._results, chosen, strict=True)
        ]


def _kind(node: Any) -> Any:
    """Return a key that is equal for nodes that may be the same."""
    called = node.function if node.kind == "py" else None
    specs = tuple([(str(value.spec), value._is_scalar) for value in node.outputs])
    return node.kind, type(called), getattr(called, "__name__", ""), len(node.inputs), specs


def _is_one_call(a: Any, b: Any) -> bool:
    if a.kind == "constant":
        return same(a.graph.run(a.outputs[0]), b.graph.run(b.outputs[0]))
    if a.kind != "py" or a.stateful or b.stateful:
        return False
    x, y = a.function, b.function
    if type(x) is CallOnTree and type(y) is CallOnTree:
        alike = x.fn is y.fn and x.tree == y.tree and len(x.leaves) == len(y.leaves)
        return alike and all(map(same, x.leaves, y.leaves)) and same(a._form, b._form)
    return (x is y or same(x, y)) and same(a._form, b._form)


def _are_scalars(a: Value, b: Value) -> bool:
    return a.spec == b.spec and a._is_scalar is b._is_scalar and a.shape == () and a.dtype is not None


def _part(graph: Graph, inside: set[int], results: list[Value], known: Any) -> tuple[Graph, list[Value]]:
    """Return a graph that makes `results` by the nodes `inside`, and the Values that it reads, as they are `known`."""
    made = Graph(name="part")
    for owner in graph._kept:
        made._keep(owner)
    waiting, found = list(results), set[int]()
    read: dict[int, Value] = {}
    while waiting:
        value = waiting.pop()
        at = value.node.index
        if at not in inside:
            read.setdefault(value._key, value)
        elif at not in found:
            found.add(at)
            waiting += value.node.inputs
    copies: dict[int, Value] = {}
    inputs: list[Value] = []
    for key, value in read.items():
        if value.node.kind == "constant":
            copies[key] = copied(made, value.node, copies)[0]
        else:
            copies[key] = made._add_input(
                declared_spec(value), value.node.name.partition("_")[0], bool(value._is_scalar)
            )
            there = known.get(key_of(value))
            inputs.append(value if there is None else graph._value(*there))
    for index in sorted(found):
        node = graph[index]
        for old, new in zip(node.outputs, copied(made, node, copies), strict=True):
            copies.setdefault(old._key, new)
    made.output([copies[value._key] for value in results])
    return made, inputs
