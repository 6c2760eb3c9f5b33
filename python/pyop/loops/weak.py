"""Follow scalars that may be Python numbers: ``s = 0.0`` before a loop that adds float64 numbers to it.

In the first iteration `s` is a Python float, later NumPy's float64; so it is behind a loop that may have no iteration.
A Loop carries a float64. Whether that is the same is known by what is done with it: beside an array of float64 it is;
beside one of float32 NumPy would convert a Python float to that. Where the function returns it, the loop is told to
carry a flag, too, that says whether it still is what it was: that decides what is returned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core import Value
from .._tree import map_leaves
from ..graph.counter import is_counter
from ..graph.graph import Graph
from ..graph.node_call import call_of
from ..graph.symbolic_number import Number, OnNumbers, is_number
from ..tracing.type_checks import asks_kind
from .node import Branch, Loop
from .recording import is_stand_in

__all__ = ["BY_NAME", "Flags", "Weak"]

_PLAIN = frozenset((np.add, np.subtract, np.multiply, np.negative, np.positive, np.absolute))
_COMPARISONS = frozenset((np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal))
_OPERATORS = _PLAIN | {np.divide, np.floor_divide, np.remainder, np.power, np.divmod, np.invert, np.bitwise_and}
_OPERATORS |= {np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.matmul}
BY_NAME = frozenset(("add", "subtract", "multiply", "negative", "positive", "absolute", "divide", "true_divide"))
BY_NAME |= {function.__name__ for function in _COMPARISONS}
"""Operators of Python by the names of NumPy's functions that do the same to arrays."""
_LOGIC = frozenset((np.logical_and, np.logical_or, np.logical_not))
_BESIDE = {"f": "dD", "i": "?lqdD", "c": "dD"}
_STORED = {"f": "dDgG", "i": "lqdD", "c": "DG"}
_KINDS = (float, int, bool)
_Key = tuple[int, int]


def key_of(value: Value) -> _Key:
    return value.node.index, value.output_index


class Weak:
    """Hold the scalars of a trace that may be Python numbers, each with the loop that makes them so."""

    def __init__(self) -> None:
        self.loops: dict[_Key, Any] = {}
        self.carried: dict[int, tuple[Any, list[Value], list[_Key], bool]] = {}
        self.names: dict[_Key, list[str]] = {}  # of the variables that hold what a Loop leaves behind
        self.chosen: dict[int, list[tuple[_Key, _Key]]] = {}
        self.ones: list[tuple[Value, int, Value, int, Any]] = []
        self.by_name = False  # np.add and the like may be called, which return no Python number
        self.flags: dict[_Key, tuple[Any, type]] = {}  # whether it still is a Python number, and of which kind
        self.needed: set[_Key] = set()  # what must be a scalar of NumPy
        self.kept: set[_Key] = set()  # those whose flags are kept in lists
        self.strong: set[_Key] = set()  # what a flag says of that it is none
        self.raising: set[_Key] = set()  # where Python raises if it is one, and NumPy does not
        self.dropped: list[range] = []  # nodes that are written down once more

    def add(self, value: Value, loop: Any) -> None:
        """Note that a scalar may be a Python number."""
        self.loops.setdefault(key_of(value), loop)

    def needs_scalar(self, value: Value) -> None:
        """Note that a Value must be a scalar of NumPy."""
        self.needed.add(key_of(value))

    def keep_flag(self, value: Value) -> None:
        """Note that the flag of a scalar is kept."""
        self.kept.add(key_of(value))

    def forget(self, first: int, end: int) -> None:
        """Forget what was said of nodes from `first` to `end`, the last ones, which are written down once more."""
        self.dropped.append(range(first, end))
        self.loops = {key: loop for key, loop in self.loops.items() if key[0] < first}
        self.flags = {key: flag for key, flag in self.flags.items() if key[0] < first}
        for keys in (self.needed, self.kept, self.strong, self.raising):
            keys.difference_update([key for key in keys if key[0] >= first])
        self.carried = {node: x for node, x in self.carried.items() if node < first}
        self.names = {key: of for key, of in self.names.items() if key[0] < first}
        self.chosen = {node: x for node, x in self.chosen.items() if node < first}

    def note_loop(
        self, node: int, loop: Any, stand_ins: list[Value], results: list[Value], empty: bool, names: list[list[str]]
    ) -> None:
        """Note what a Loop carries."""
        self.names.update({(node, j): of for j, of in enumerate(names)})
        self.carried[node] = loop, stand_ins, [key_of(value) for value in results], empty

    def note_branch(self, node: int, yes: Iterable[Value], no: Iterable[Value]) -> None:
        """Note what the results of a Branch, or of a node behind it, are chosen from."""
        self.chosen[node] = [(key_of(a), key_of(b)) for a, b in zip(yes, no, strict=True)]

    def flag_of(self, value: Value) -> tuple[Any, Any]:
        """Return whether a scalar still is a Python number, and of which kind it was.

        The first is a truth, or a Number where a loop carries it. A scalar that is computed of such numbers and of
        constants is one, too.
        """
        key = key_of(value)
        if key not in self.flags:
            found = self._computed(value) if value.node.kind == "py" and value.shape == () else None
            if found is None:
                self.strong.add(key)
                return False, None
            self.flags[key] = found
        return self.flags[key]

    def _computed(self, value: Value) -> tuple[Any, Any] | None:
        node = value.node
        if len(node.inputs) == 1 and node.name.startswith("getitem") and node.inputs[0].shape == ():
            flag, kind = self.flag_of(node.inputs[0])
            return None if flag is False else (flag, kind)
        divides = node.function is np.divide or (node.function is np.power and _is_real_power(node))
        compares = node.function in _COMPARISONS
        if self.by_name or not (node.function in _PLAIN or divides or compares):
            return None
        flags: list[Any] = []
        for x in call_of(node).args:
            if type(x) is Value:
                graph: Any = x.graph
                number = key_of(x) not in self.flags and key_of(_unwrapped(graph, x)) in graph._numbers
                flag, kind = (True, float) if number else self.flag_of(x)
                if flag is False or kind is not float:
                    return None
                flags += [] if flag is True else [flag]
            elif type(x) not in (int, float):
                return None
        if divides and not _is_divided(node, key_of(node.inputs[0])):
            self.raising.add(key_of(value))
        made = bool if compares else float
        if not flags:
            return True, made
        both = flags[0]
        for flag in flags[1:]:
            if flag is not both:
                both = Number(bool, np.logical_and(both._value, flag._value), both._places)
        return both, made

    def flags_of_choices(self, pairs: list[tuple[Value, Value]], asked: list[bool]) -> dict[int, tuple[Any, Any, Any]]:
        """Return which flags are chosen from, and the kind, for each pair of scalars that has flags.

        The keys are the numbers of the pairs; `asked` has the pairs that are looked at.
        """
        found: dict[int, tuple[Any, Any, Any]] = {}
        for k, pair in enumerate(pairs):
            if asked[k] and pair[0].shape == ():
                (a, of_a), (b, of_b) = map(self.flag_of, pair)
                if a is not False or b is not False:
                    kinds = {of_a, of_b} - {None}
                    kind = kinds.pop() if len(kinds) == 1 else type(None)
                    yes, no = (x if type(x) is bool else x._value for x in (a, b))
                    found[k] = yes, no, kind
        return found

    def wrong(self, graph: Graph, outputs: list[Any]) -> set[Any]:
        """Return the loops for which it matters within the function whether a scalar is a Python number."""
        ones = self._wrong_ones(outputs)
        if not self.loops:
            return ones
        first = min(at for at, _ in self.loops)
        dropped = {at for nodes in self.dropped for at in nodes}
        readers: dict[_Key, list[int]] = {}
        for at in range(first, len(graph)):
            for value in graph[at].inputs if at not in dropped else ():
                readers.setdefault(key_of(value), []).append(at)
        made_of: dict[_Key, list[tuple[int, int]]] = {}
        for node, (_, _, results, _) in self.carried.items():
            for j, key in enumerate(results):
                made_of.setdefault(key, []).append((node, j))
        for node, pairs in self.chosen.items():
            for j, pair in enumerate(pairs):
                for key in pair:
                    made_of.setdefault(key, []).append((node, j))
        waiting, bad = list(self.loops), ones
        while waiting:
            key = waiting.pop()
            loop = self.loops[key]

            def also(other: _Key, loop: Any = loop) -> None:
                if other not in self.loops:
                    self.loops[other] = loop
                    waiting.append(other)

            for node, j in made_of.get(key, ()):
                also((node, j))
                if node in self.carried:
                    also(key_of(self.carried[node][1][j]))
            for at in readers.get(key, ()):
                if not self._may_read(graph, at, key, also):
                    bad.add(loop)
        for key in self.loops.keys() & self.names.keys():
            loop = self.carried[key[0]][0]
            if asks_kind(loop[0], self.names[key]):
                bad.add(loop)
        for leaf in outputs:
            if type(leaf) is Value and key_of(leaf) in self.loops:
                self.flag_of(leaf)
        told = self._told_by_flags(graph, outputs)
        bad.update(self.loops[key] for key in (self.needed | (self.strong & told)) & self.loops.keys())
        if not told.isdisjoint(self.raising):
            graph._overflows = True
        return bad

    def _told_by_flags(self, graph: Graph, outputs: list[Any]) -> set[_Key]:
        """Return the scalars whose flags, or what is told instead, make those of what is returned."""
        loops = [(node, values) for node, (_, values, _, _) in self.carried.items()]
        stand_ins = {key_of(value): (node, j) for node, values in loops for j, value in enumerate(values)}
        waiting = [*self.kept, *({key_of(x) for x in outputs if type(x) is Value} & self.flags.keys())]
        found: set[_Key] = set()
        while waiting:
            key = waiting.pop()
            if key in found:
                continue
            found.add(key)
            at, j = stand_ins.get(key, key)
            if at in self.carried:
                waiting += [self.carried[at][2][j], key_of(graph[at].inputs[2 + j])]
            elif at in self.chosen:
                waiting += self.chosen[at][j]
            else:
                waiting += [key_of(value) for value in graph[at].inputs if value.shape == ()]
        return found

    def note_one(self, a: Value, b: Value, loop: Any) -> None:
        """Note that two arrays behind a loop may be one array: neither may be written, nor both be handed out."""
        self.ones.append((a, a._root()._key, b, b._root()._key, loop))

    def _wrong_ones(self, outputs: list[Any]) -> set[Any]:
        leaves = [leaf for leaf in outputs if type(leaf) is Value]

        def out(value: Value) -> bool:
            return any(leaf is value or leaf._shares_memory(value) for leaf in leaves)

        return {
            loop
            for a, of_a, b, of_b, loop in self.ones
            if a._root()._key != of_a or b._root()._key != of_b or (out(a) and out(b))
        }

    def returned(self, outputs: list[Any]) -> set[Any]:
        """Return the loops of which a scalar is returned that may be a Python number and has no flag."""
        keys = {key_of(leaf) for leaf in outputs if type(leaf) is Value}
        return {self.loops[key] for key in keys & (self.loops.keys() - self.flags.keys())}

    def unflagged(self) -> set[Any]:
        """Return the loops that leave scalars behind that may be Python numbers and have no flag."""
        keys = self.loops.keys() - self.flags.keys()
        return {self.carried[node][0] for node, _ in keys if node in self.carried}

    def settled(self, result: Any) -> Any:
        """Return the result, where flags decide which of it are Python numbers."""
        return map_leaves(self._settle, result) if self.flags else result

    def _settle(self, leaf: Any) -> Any:
        flag, kind = self.flags.get(key_of(leaf), (False, float)) if type(leaf) is Value else (False, float)
        if not flag:
            return leaf
        value = leaf.real if leaf.dtype is not None and leaf.dtype.kind == "c" else leaf
        return Number(kind, value.astype(np.int64) if kind is int and value.dtype.kind != "i" else value, frozenset())

    def _may_read(self, graph: Graph, at: int, key: _Key, also: Any) -> bool:
        """Return whether a node makes the same of the Python number as of the scalar."""
        node = graph[at]
        function, inputs = node.function, node.inputs
        dtype = graph._value(*key).dtype
        if dtype is None or dtype.char not in "dlqD?":
            return False
        if type(function) is Loop:
            if at not in self.carried:
                return False
            _, stand_ins, _, empty = self.carried[at]
            for k, value in enumerate(inputs):
                if key_of(value) == key and 2 <= k < 2 + len(stand_ins):
                    also(key_of(stand_ins[k - 2]))
                    if empty:
                        also((at, k - 2))
            return True
        if type(function) is Branch:
            if at in self.chosen:
                return True  # what its arms compute was written down in this graph, too
            for j, value in enumerate(node.outputs):
                if value.spec == graph._value(*key).spec:
                    also((at, j))
            return True
        if isinstance(function, np.ufunc):
            if dtype.char == "?":
                return function in _LOGIC
            others = [value for value in inputs if key_of(value) not in self.loops]
            strong = [value for value in others if not _is_number(graph, value)]
            if strong:
                return all(value.dtype is not None and value.dtype.char in _BESIDE[dtype.kind] for value in strong)
            if function not in _OPERATORS and function not in _COMPARISONS:
                return True  # NumPy's functions make a scalar of a Python number
            if function in _COMPARISONS:  # of Python numbers it is Python's
                also((at, 0))
                return True
            if function in _PLAIN or _is_divided(node, key):
                also((at, 0))
                return True
            if function is np.divide or (function is np.power and _is_real_power(node)):
                graph._overflows = True  # a division by zero, or a power that is too large: Python raises
                also((at, 0))
                return True
            return False
        word = node.name.rstrip("_0123456789")
        if word == "getitem" and key_of(inputs[0]) == key and not inputs[0].shape:
            also((at, 0))
            return True
        if word == "where" and [k for k, value in enumerate(inputs) if key_of(value) == key] == [0]:
            return True  # it is chosen by
        if word in ("where", "select"):
            also((at, 0))
            return all(value.dtype == dtype or (value.dtype == np.bool_ and k == 0) for k, value in enumerate(inputs))
        if word == "store":
            target = inputs[0].dtype
            return key_of(inputs[0]) != key and target is not None and target.char in _STORED.get(dtype.kind, "?")
        return False


def _is_real_power(node: Any) -> bool:
    """Return True for a power of which the base is a positive Python number, or the exponent a whole one."""
    a, b = call_of(node).args
    return type(b) is int if type(b) in (int, float) else type(a) in (int, float) and a > 0


def _is_divided(node: Any, key: _Key) -> bool:
    """Return True where a scalar is divided by a Python number that is not zero."""
    a, b = call_of(node).args
    return node.function is np.divide and type(a) is Value and key_of(a) == key and type(b) in (int, float) and b != 0


def _unwrapped(graph: Graph, value: Value) -> Value:
    """Return what a scalar was before it was converted."""
    while (
        key_of(value) not in graph._numbers
        and value.node.kind == "py"
        and value.node.name.startswith(("astype", "getitem"))
        and value.node.inputs[0].shape == ()
    ):
        value = value.node.inputs[0]
    return value


def _is_number(graph: Graph, value: Value) -> bool:
    """Return whether a value is, or may be, a Python number of the caller's or of the function's."""
    if value.shape != ():
        return False
    value = _unwrapped(graph, value)
    if value.node.name.startswith("counter") or key_of(value) in graph._numbers:
        return True
    if value.node.kind == "py":
        return type(value.node.function) in (OnNumbers, Loop, Branch) or is_stand_in(value.node)
    return bool(value._is_scalar)


class Flags:
    """Hold whether a loop's variables still are the Python numbers that they were, as variables of the loop."""

    __slots__ = ("_first", "kinds", "known", "lost", "new", "others")

    def __init__(
        self, names: Iterable[str], now: dict[str, Any], weak: Weak | None, others: frozenset[str] = frozenset()
    ) -> None:
        self.kinds: dict[str, type] = {}
        self.lost: set[str] = set()  # of which an iteration leaves a number of another kind
        # Those that may become Python numbers in an iteration.
        self.others = frozenset(name for name in others if not is_counter(now.get(name)))
        self.new: dict[str, type] = {}  # those of them that have
        self.known = {} if weak is None else weak.flags
        self._first = {name: kind for name in others if (kind := self._before(now.get(name))[1]) is not None}
        for name in names:
            flag, kind = self._before(now.get(name))
            if flag is not False:
                now[f"{name}?"], self.kinds[name] = flag, kind

    def _before(self, x: Any) -> tuple[Any, Any]:
        """Return what is known of a variable before the loop, and of which kind it is."""
        if type(x) is Value:
            return self.known.get(key_of(x), (False, None))
        kind = x._kind if is_number(x) else type(x)
        return (True, kind) if kind in _KINDS else (False, None)

    def names(self, names: frozenset[str]) -> frozenset[str]:
        """Return these names, with those of their flags."""
        return names | {f"{name}?" for name in names & self.kinds.keys()}

    def behind(self, now: dict[str, Any], handed: dict[str, Any], weak: Weak) -> None:
        """Add the flags to what the variables are behind an iteration."""
        for name, kind in self.kinds.items():
            x = now.get(name)
            if x is handed.get(name):
                now[f"{name}?"] = handed[f"{name}?"]
            elif type(x) is Value:
                now[f"{name}?"], of = weak.flag_of(x)
                if of is not kind and of is not None:
                    self.lost.add(name)
            elif type(x) is kind or (kind is int and is_counter(x)) or getattr(x, "_kind", None) is kind:
                now[f"{name}?"] = True
            else:
                self.lost.add(name)
        for name in self.others - self.kinds.keys() - self.lost:
            x = now.get(name)
            if type(x) is Value and x is not handed.get(name) and x.shape == ():
                flag, kind = weak.flag_of(x)
                if flag is not False and kind in _KINDS and self._first.get(name, kind) is kind:
                    self.new[name] = kind
                elif flag is not False:
                    self.others -= {name}
        self.others -= self.new.keys() | self.lost

    def drop(self, now: dict[str, Any]) -> None:
        """Drop the flags of variables that an iteration leaves as numbers of another kind, and follow the new ones."""
        for name in self.lost:
            del self.kinds[name]
            now.pop(f"{name}?", None)
        for name in self.new:
            if name in now:
                now[f"{name}?"] = self._before(now[name])[0]
        self.kinds |= self.new
        self.lost, self.new = set(), {}

    def note(self, held: dict[str, Any], weak: Weak) -> None:
        """Note which Values have which flags."""
        for name, kind in self.kinds.items():
            if type(held.get(name)) is Value and f"{name}?" in held:
                weak.flags[key_of(held[name])] = held[f"{name}?"], kind
