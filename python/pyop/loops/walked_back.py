"""Differentiate a loop in reverse mode, by two loops.

One runs it again and stores what the derivatives of its iterations need, one entry an iteration. The other one walks
back over these.

With checkpoints the loop is first written as a loop of loops, about the square root of its length each. Of the outer
one the states are stored, and the inner ones are run again on the way back.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Value
from ..gradients.room import room
from ..gradients.store import store
from ..gradients.table import NoRule
from ..gradients.unbroadcast import fit_dtype
from ..graph.graph import Graph
from ..graph.node_call import call_of, declared_spec
from ..graph.sizes import apply
from ..transforms.reruns import note_rerun, without_first_runs
from ..transforms.reverse import backward
from .activity import Activity, check_no_effects
from .bodies import called, copied, input_like, is_fixed, needed, new_counter, place, shapes_read, trip_count
from .positions import by_position, in_segments, run_for_count
from .restored import Versions, copied_back, size_of_all, versions_of

if TYPE_CHECKING:
    from .node import Loop

__all__ = ["walk_back"]

_FEW = 4  # iterations of which each is a checkpoint
_CHEAP = (operator.getitem, np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive)


def walk_back(
    loop: Loop, args: Sequence[Value], cts: Sequence[Any], wanted: set[int], sums: dict[int, Value], ans: Sequence[Any]
) -> list[Any]:
    """Return one cotangent for each argument of a loop's node; None for zero, and for those that are not `wanted`.

    `sums` has what those of some arguments that stay in the loop are added to; `ans` are the results.
    """
    check_no_effects(loop.body)
    lower, upper, *arrays = args
    carried, constant = arrays[: loop.carried], arrays[loop.carried :]
    graph: Any = arrays[0].graph
    count = run_for_count(graph, loop, args) if loop.conditional else trip_count(lower, upper, loop.step)
    body, more = by_position(loop, lower)
    constant += more
    only_state = loop.checkpoint and not (isinstance(count, int) and count < _FEW)
    if only_state:
        body, count, more = in_segments(type(loop), body, loop.carried, count)
        constant += more
    back = _Back(type(loop), graph, body, count, carried, constant, only_state)
    found = back.run(cts, {k - 1 for k in wanted}, {k - 1: x for k, x in sums.items()})
    if back.ends and type(ans[0]) is Value:
        note_rerun(ans, back.ends)
    return [None, None, *found[: len(arrays)]]


class _Back:
    """Walk back through a loop whose body is given by position and runs `count` times."""

    def __init__(
        self, kind: type[Loop], graph: Any, body: Graph, count: Any,
        carried: list[Value], constant: list[Value], only_state: bool,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.graph = graph
        self.body = body
        self.count = count
        self.carried = carried
        self.constant = constant
        self.only_state = only_state
        # Of which the derivative of an iteration reads nothing but the shape: by the node that does, and the key.
        self.shapes: dict[tuple[int, int], Value] = {}
        self.behind: dict[int, Value] = {}  # by what is stored, with what it becomes: one more is stored of it
        self.ends: list[Value] = []  # what is carried behind the last iteration, where the loop was run again
        self.arrays: dict[int, Versions] = {}  # which are not stored, but restored; by their inputs

    def run(self, cts: Sequence[Any], wanted: set[int], before: dict[int, Value]) -> list[Any]:
        """Return the cotangents of what is carried and what stays. `wanted` are inputs of the body; `before` has what
        those of some of them are added to.
        """
        n = len(self.carried)
        inputs = [None, *self.carried, *self.constant]
        activity = Activity(self.body, n)
        ends = [j for j, ct in enumerate(cts) if ct is not None]
        active = activity.varied(wanted) & activity.useful(ends)
        kept = sorted(k for k in active if k <= n)
        if not kept:
            return [None] * (len(inputs) - 1)
        read = sorted(k for k in active & wanted if k > n)
        # One iteration and its derivative.
        one = self.one = Graph(name="body")
        position = new_counter(one, [self.body])
        self.inputs = [position, *(input_like(one, value) for value in self.body.inputs[1:])]
        known = {old._key: new for old, new in zip(self.body.inputs, self.inputs, strict=True)}
        self.after = copied(self.body, one, self.body._output_leaves()[0][:n], known)
        self.mark = len(one)
        given = [input_like(one, self.after[k - 1], "ct") for k in kept]
        sums = {k: input_like(one, self.inputs[k], "sum") for k in read}
        added_to = [*[None] * len(kept), *sums.values()]
        parts = backward([self.after[k - 1] for k in kept], given, [self.inputs[k] for k in (*kept, *read)], added_to)
        results: list[Any] = [
            np.zeros_like(self.inputs[k]) if part is None else part
            for k, part in zip((*kept, *read), parts, strict=True)
        ]
        if one._reruns:
            results = without_first_runs(one, results)
        stored = self._stored(results)
        self.ends, rooms = self._forth(stored)
        starts = [
            np.zeros_like(self.carried[k - 1]) if cts[k - 1] is None else fit_dtype(cts[k - 1], self.carried[k - 1])
            for k in kept
        ]
        starts += [before[k] if k in before else np.zeros_like(inputs[k]) for k in read]
        made = self._back([*given, *sums.values()], results, stored, rooms, starts)
        found = dict(zip((*kept, *read), made, strict=True))
        return [found.get(k) if k in wanted else None for k in range(1, len(inputs))]

    # --- what is stored

    def _stored(self, results: Sequence[Value]) -> list[Value]:
        """Return the Values of an iteration that its derivative needs."""
        one, n = self.one, len(self.carried)
        varies = {value._key for value in self.inputs[1 : n + 1]}
        for index in range(self.mark):
            node = one[index]
            if any(value._key in varies for value in node.inputs):
                varies.update(value._key for value in node.outputs)
        front = {}
        self.shapes = {}
        for index in needed(one, results, ()):
            if index < self.mark:
                continue
            shown = shapes_read(one[index])
            for value in one[index].inputs:
                if value.node.index < self.mark and value._key in shown and is_fixed(value, one, n):
                    self.shapes[index, value._key] = value
                elif value.node.index < self.mark:
                    front[value._key] = value
        front |= {value._key: value for value in results if value.node.index < self.mark}
        whole = self._states_for(front, varies)
        if self.only_state:
            chosen = whole
        else:
            few = self._few(front, varies, set())
            self._find_pairs(few)
            apart = [value for key, value in few.items() if key not in {x._key for x in self.behind.values()}]
            if size_of_all([*whole.values()]) < size_of_all(apart):
                self.behind.clear()
                chosen = whole
            else:
                chosen = few
            self._find_arrays(chosen)
            if self.arrays:
                for node in (value.node for array in self.arrays.values() for value in (*array.old, *array.before)):
                    front |= {value._key: value for value in node.inputs if value.node.index < self.mark}
                chosen = self._few(front, varies, {x._key for array in self.arrays.values() for x in array.versions})
                self._find_pairs(chosen)
        for value in chosen.values():
            if not is_fixed(value, one, n):
                raise NoRule(
                    f"the derivative of a loop stores what it carries, and of that dtype or shape is not known "
                    f"({value.spec}): give its start a dtype and a shape"
                )
        twice = {value._key for value in self.behind.values()}
        return [value for key, value in chosen.items() if key not in twice]

    def _find_pairs(self, chosen: dict[int, Value]) -> None:
        """Find what is to be stored both before and behind an iteration: what is behind one is before the next."""
        self.behind.clear()
        for start, end in zip(self.inputs[1:], self.after, strict=False):
            if {start._key, end._key} <= chosen.keys() and start._key != end._key and start.spec == end.spec:
                self.behind[start._key] = end

    def _states_for(self, front: dict[int, Value], varies: set[int]) -> dict[int, Value]:
        """Return what is carried of which these are computed."""
        one, n = self.one, len(self.carried)
        reached = needed(one, [value for key, value in front.items() if key in varies], ())
        states = self.inputs[1 : n + 1]
        return {value._key: value for value in states if value.node.index in reached or value._key in front}

    def _few(self, front: dict[int, Value], varies: set[int], free: set[int]) -> dict[int, Value]:
        """Return what these are computed of, as near to them as dtype and shape are known. What is `free` is there
        anyway, and so is what is read of it, and sums and products of that.
        """
        one, n = self.one, len(self.carried)
        states = {value._key for value in self.inputs[1 : n + 1]}
        there = set(free)
        for index in range(self.mark if free else 0):
            node = one[index]
            cheap = node.kind == "py" and call_of(node).function in _CHEAP
            if cheap and all(x._key in there or x._key not in varies for x in node.inputs):
                there.update(value._key for value in node.outputs)
        waiting = [value for key, value in front.items() if key in varies]
        few: dict[int, Value] = {}
        seen = set()
        while waiting:
            value = waiting.pop()
            if value._key in seen or value._key not in varies or value._key in there:
                continue
            seen.add(value._key)
            if value._key in states or is_fixed(value, one, n):
                few[value._key] = value
            else:
                waiting += value.node.inputs
        return few

    def _find_arrays(self, chosen: dict[int, Value]) -> None:
        """Find what is chosen to be stored and need not be: parts of it that are written over will do."""
        for k in range(1, len(self.carried) + 1):
            start, end = self.inputs[k], self.after[k - 1]
            found = versions_of(self.one, start, end, len(self.carried))
            if found is not None and any(value._key in chosen for value in found.versions):
                found.link(self.one)
                self.arrays[k] = found

    # --- the two loops

    def _forth(self, stored: list[Value]) -> tuple[list[Value], list[Value]]:
        """Run the loop again, and return what is carried in the end, and what it has stored."""
        stored, n_stored = [*stored, *(x for array in self.arrays.values() for x in array.old)], len(stored)
        if not stored:
            return [], []
        n, body = len(self.carried), Graph(name="body")
        number = new_counter(body, [self.one])
        states = [input_like(body, value) for value in self.inputs[1 : n + 1]]
        known_size = self.count if isinstance(self.count, int) else None
        rooms = []
        for value in stored:
            more = int(value._key in self.behind)
            size = None if known_size is None else known_size + more
            count = self.count + more if size is None else self.graph.constant(np.asarray(size, np.int64))
            given, spec = (count, value.dtype, tuple(value.shape or ()), size), _room_spec(value, size)
            made = apply(room, given, {}, spec, name="room", scalar=False, graph=self.graph)
            if more:
                k = next(k for k, x in enumerate(self.inputs) if x._key == value._key)
                made = _with_item(made, self.carried[k - 1], 0)
            rooms.append(made)
        held = [input_like(body, value, "room") for value in rooms]
        rest = [input_like(body, value) for value in self.inputs[n + 1 :]]
        known = {old._key: new for old, new in zip(self.inputs, (number, *states, *rest), strict=True)}
        where = place(number)
        after: list[Any] = [None] * len(rooms)

        def keep(k: int) -> None:
            if after[k] is None:
                end = self.behind.get(stored[k]._key)
                (item,) = copied(self.one, body, [stored[k] if end is None else end], known)
                after[k] = _with_item(held[k], item, where if end is None else where + 1)

        # What a write overwrites is stored before it, and so is all that was read before it.
        writes = [pair for array in self.arrays.values() for pair in zip(array.old, array.versions[1:], strict=True)]
        for old, later in sorted(writes, key=lambda pair: pair[1].node.index):
            for k, x in enumerate(stored):
                early = k < n_stored and x._key not in self.behind and x.node.index < later.node.index
                if x is old or early:
                    keep(k)
        made = copied(self.one, body, self.after, known)
        for k in range(len(rooms)):
            keep(k)
        body.output([*made, *after])
        loop = self.kind(body, n + len(rooms))
        starts = [*self.carried, *rooms]
        found = called(self.graph, loop, [_count(0), _count(self.count), *starts, *self.constant], starts)
        return found[:n], found[n:]

    def _back(
        self, given: list[Value], results: list[Value], stored: list[Value], rooms: list[Value], starts: list[Any]
    ) -> list[Value]:
        n, body = len(self.carried), Graph(name="body")
        number = new_counter(body, [self.one])
        now = [input_like(body, value) for value in given]
        lasts = {k: input_like(body, array.versions[-1]) for k, array in self.arrays.items()}
        held = [input_like(body, value, "room") for value in rooms]
        rest = [input_like(body, value) for value in self.inputs[n + 1 :]]
        known = {old._key: new for old, new in zip(given, now, strict=True)}
        known |= {array.versions[-1]._key: lasts[k] for k, array in self.arrays.items()}
        known |= {old._key: new for old, new in zip(self.inputs[n + 1 :], rest, strict=True)}
        known[self.inputs[0]._key] = number
        where = place(number)
        of_arrays = [x for array in self.arrays.values() for x in array.given]
        for value, whole in zip([*stored, *of_arrays], held, strict=True):
            scalar = value.shape == ()
            for x, at in ((value, where), (self.behind.get(value._key), where + 1)):
                if x is not None:
                    item = apply(operator.getitem, (whole, at), {}, declared_spec(x), name="item", scalar=scalar)
                    known[x._key] = item
        blanks = {value.spec: value for value in (*rest, *now)}
        blanks |= {spec: self._blank(body, spec) for spec in {x.spec for x in self.shapes.values()} - blanks.keys()}
        instead = {where: blanks[value.spec] for where, value in self.shapes.items()}
        arrays = [*self.arrays.values()]
        made = copied_back(self.one, body, results, known, instead, self.mark, arrays)
        body.output([*made, *[known[array.versions[0]._key] for array in arrays]])
        loop = self.kind(body, len(given) + len(arrays), -1)
        last = self.count - 1
        starts = [*starts, *[self.ends[k - 1] for k in self.arrays]]
        inputs = [_count(last), _count(-1), *starts, *rooms, *self.constant]
        return called(self.graph, loop, inputs, starts)[: len(given)]

    def _blank(self, body: Graph, spec: Any) -> Value:
        """Return zeros of this spec, in the place of a Value of which only the shape is read."""
        if all(isinstance(size, int) for size in spec.shape):
            return body.constant(np.zeros(spec.shape, spec.dtype))
        made: Value = apply(np.zeros, (spec.shape, spec.dtype), {}, spec, name="zeros", graph=body)
        return made


def _with_item(whole: Value, item: Value, where: Any) -> Value:
    """Return a room in which an entry is stored."""
    given = whole, item, where, (), bool(item._is_scalar)
    made: Value = apply(store, given, {}, whole.spec, name="store", scalar=False)
    return made


def _count(number: Any) -> Any:
    return number if type(number) is Value else np.asarray(number, np.int64)


def _room_spec(value: Value, count: Any) -> Any:
    spec = declared_spec(value)
    return type(spec)(spec.dtype, (count, *(spec.shape or ())))
