"""Write down how the state of an instance or a closure is read as inputs, for all others like it.

A step says where an object is (a part of one that an earlier step has reached) and what it must be there:
csrc/plan/state_inputs.h takes them. Arrays, numbers, texts and None are inputs. Instances of the user's classes,
closures, methods, cells, lists, tuples and dicts are gone through. Functions and classes must be the very same.
`copy` makes the same objects once more with other inputs, for a trace.
"""

from __future__ import annotations

from enum import Enum
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..tracing.libraries import is_library, reads_itself
from ..tracing.places import members

__all__ = ["LEAVES", "Known", "NotInputs", "Steps"]

# Kind, number of the parent, key, place, what must be there, how many parts, names that the code may read.
Row = tuple[bytes, int, Any, int, Any, int, Any]

LEAVES: tuple[type, ...] = (np.ndarray, float, int, bool, complex, str, bytes, type(None))
_MOST_STEPS = 200
_SAME: tuple[type, ...] = (ModuleType, type, np.ufunc, np.dtype, Enum, type(np.sum), type(Ellipsis))
_ATTRIBUTES = object.__getattribute__


class NotInputs(Exception):
    """Signal something that is no input, and is not gone through."""


class Known:
    """Keep what is known of the state of a function, or of all closures of one code."""

    def __init__(self) -> None:
        self.plans: list[Any] = []  # of StateInputs
        self.refused: set[Any] = set()  # the classes of those that do not become inputs
        self.last: Any = None  # a weak reference to the one that was traced last, and what that held

    def refuse(self, kind: Any) -> None:
        """Note that there are no such plans for objects of a class."""
        self.refused.add(kind)


class Steps:
    """Hold the steps of one object, and what they reach.

    `names` are those of attributes that the code may read; others are neither read nor copied. With `changes`, or of an
    instance, ints and NumPy's scalars are inputs, too; else they must be the very same: of a closure that is only read
    they decide what is computed (``x ** 2``), as constants do.

    >>> import numpy as np
    >>> from pyop.compiling.state_steps import Steps
    >>> def scaled(k):
    ...     return lambda x: x * k
    >>> doubled = scaled(2.0)
    >>> doubled.__module__ = "mine"
    >>> steps = Steps(doubled, frozenset())
    >>> [row[0] for row in steps.rows], steps.leaves, steps.paths
    ([b'f', b'c', b'a'], [2.0], ['k'])
    >>> steps.copy([3.0])[0](5.0)
    15.0
    """

    def __init__(self, root: Any, names: frozenset[str], path: str = "", changes: bool = False) -> None:
        self.names = names
        self._same: tuple[type, ...] = () if changes or type(root) is not FunctionType else (int, np.generic)
        self.kind = type(root)
        self.rows: list[Row] = []
        self.leaves: list[Any] = []
        self.paths: list[str] = []
        self.nodes: list[Any] = []
        self.same: list[Any] = []  # functions, classes and modules that it holds
        self._kinds: list[bytes] = []
        self._number: dict[int, int] = {}
        self._add(-1, None, 0, root, path)
        if not self.nodes:
            raise NotInputs("nothing of its own")

    def _row(self, kind: bytes, parent: int, key: Any, index: int, what: Any = None, count: int = 0) -> None:
        if len(self.rows) >= _MOST_STEPS:
            raise NotInputs("many objects")
        self.rows.append((kind, parent, key, index, what, count, self.names if kind == b"i" else None))

    def _add(self, parent: int, key: Any, index: int, x: Any, path: str) -> None:
        kind = type(x)
        if kind is not bool and isinstance(x, self._same):
            self.same.append(x)
            self._row(b"=", parent, key, index, x)
        elif kind in LEAVES or isinstance(x, np.generic):
            if kind is np.ndarray and x.dtype.hasobject:
                raise NotInputs("an array of objects")
            self.leaves.append(x)
            self.paths.append(path)
            self._row(b"a", parent, key, index)
        elif id(x) in self._number and kind is not tuple:
            self._row(b"s", parent, key, index, None, self._number[id(x)])
        elif isinstance(x, _SAME) or kind is BuiltinFunctionType or _is_plain(x):
            if kind is BuiltinFunctionType and not isinstance(x.__self__, ModuleType | type(None)):
                raise NotInputs("a method of an object")
            self.same.append(x)
            self._row(b"=", parent, key, index, x)
        else:
            self._node(parent, key, index, x, path)

    def _node(self, parent: int, key: Any, index: int, x: Any, path: str) -> None:
        kind, number = type(x), len(self.nodes)
        parts: list[tuple[Any, int, Any, str]] = []  # key, place, the part, its path
        what: Any = None
        if kind is FunctionType:
            if x.__dict__:
                raise NotInputs("a function with attributes")
            letter, what = b"f", (x.__code__, x.__globals__, x.__defaults__, x.__kwdefaults__)
            named = zip(x.__code__.co_freevars, x.__closure__ or (), strict=True)
            parts = [(None, k, cell, name) for k, (name, cell) in enumerate(named)]
        elif kind is MethodType:
            letter, parts = b"m", [(None, 0, x.__self__, path or "self"), (None, 1, x.__func__, path)]
        elif kind is CellType:
            letter, parts = b"c", [(None, 0, _content(x), path)]
        elif kind is list or kind is tuple:
            letter = b"l" if kind is list else b"t"
            parts = [(None, k, item, f"{path}[{k}]") for k, item in enumerate(x)]
        elif kind is dict:
            if not all(type(name) is str for name in x):
                raise NotInputs("a dict whose keys are no texts")
            letter, what = b"d", tuple(x)
            parts = [(name, 0, item, f"{path}[{name!r}]") for name, item in x.items()]
        elif _is_instance(kind):
            letter, what = b"i", kind
            parts = [(key, 0, item, f"{path}.{name}") for key, name, item in self._attributes(x)]
        else:
            raise NotInputs(f"a {kind.__name__}")
        count = sum(type(key) is str for key, *_ in parts) if letter == b"i" else len(parts)
        self._row(letter, parent, key, index, what, count)
        self.nodes.append(x)
        self._kinds.append(letter)
        self._number[id(x)] = number
        for key, place, part, at in parts:
            self._add(number, key, place, part, at)
        for member in self._empty_slots(x) if letter == b"i" else ():
            self._row(b"-", number, member, 0)

    def _attributes(self, x: Any) -> list[tuple[Any, str, Any]]:
        held = _attributes_of(x)
        found: list[tuple[Any, str, Any]] = [(name, name, item) for name, item in held.items() if name in self.names]
        for name, member in members(type(x)).items():
            if name in self.names and (item := _slot(x, member)) is not Ellipsis:
                found.append((member, name, item))
        return found

    def _empty_slots(self, x: Any) -> list[Any]:
        slots = members(type(x)).items()
        return [member for name, member in slots if name in self.names and _slot(x, member) is Ellipsis]

    def copy(self, leaves: list[Any] | None) -> list[Any]:
        """Return the objects of the nodes once more, with these inputs; with None, without any."""
        made: list[Any] = [None] * len(self.nodes)
        makers = {b"c": CellType, b"l": list, b"d": dict}
        for node, kind in enumerate(self._kinds):
            if kind == b"i":
                made[node] = object.__new__(type(self.nodes[node]))
            elif kind in makers:
                made[node] = makers[kind]()
        parts = self._parts_of_copy(leaves)
        for node in reversed(range(len(made))):  # parts have higher numbers than what holds them
            if made[node] is None:
                made[node] = self._immutable(node, [_part(part, made) for part in parts[node]])
        for node, kind in enumerate(self._kinds):
            _fill(kind, made[node], [(part[0], _part(part, made)) for part in parts[node]])
        return made

    def _parts_of_copy(self, leaves: list[Any] | None) -> list[list[tuple[Any, Any, int]]]:
        """Return the parts of each node: a key, and a thing or the node that it is."""
        parts: list[list[tuple[Any, Any, int]]] = [[] for _ in self.nodes]
        given = iter(leaves or ())
        nodes = 0
        for kind, parent, key, _, what, count, _ in self.rows:
            value, node = what, -1
            if kind == b"a":
                value = Ellipsis if leaves is None else next(given)
                if leaves is None and self._kinds[parent] not in (b"t", b"l"):
                    continue
            elif kind == b"s":
                node = count
            elif kind not in b"=-":
                node, nodes = nodes, nodes + 1
            if parent >= 0 and kind != b"-":
                parts[parent].append((key, value, node))
        return parts

    def _immutable(self, node: int, items: list[Any]) -> Any:
        kind = self._kinds[node]
        if kind == b"t":
            return tuple(items)
        if kind == b"m":
            return MethodType(items[1], items[0])
        fn = self.nodes[node]
        made = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, tuple(items) or None)
        made.__kwdefaults__, made.__module__, made.__qualname__ = fn.__kwdefaults__, fn.__module__, fn.__qualname__
        return made

    def forget(self) -> None:
        """Keep nothing of the objects that it was made of, but copies without inputs."""
        self.nodes, self.leaves, self._number = self.copy(None), [], {}

    def changes(self, before: list[Any], held: list[list[tuple[Any, Any]]]) -> list[tuple[int, Any, Any]]:
        """Return what was bound anew in a copy since `held`: its node, its key and what it is now."""
        found: list[tuple[int, Any, Any]] = []
        for node, (x, parts) in enumerate(zip(before, held, strict=True)):
            now = self.parts(node, x)
            first = dict(parts)
            if not first.keys() <= dict(now).keys() or (self._kinds[node] in b"ld" and len(now) != len(parts)):
                raise NotInputs("what is taken out of an object or added to a container")
            found += [(node, key, item) for key, item in now if key not in first or first[key] is not item]
        return found

    def parts(self, node: int, x: Any) -> list[tuple[Any, Any]]:
        """Return what an object of a copy holds that may be bound anew, by keys."""
        kind = self._kinds[node]
        if kind == b"i":
            slots = [(member, _slot(x, member)) for member in members(type(x)).values()]
            return [*_attributes_of(x).items(), *((key, item) for key, item in slots if item is not Ellipsis)]
        if kind == b"c":
            return [(0, _content(x))]
        if kind == b"l":
            return [*enumerate(x)]
        return [*x.items()] if kind == b"d" else []


def _part(part: tuple[Any, Any, int], made: list[Any]) -> Any:
    _, value, node = part
    if node < 0:
        return value
    if made[node] is None:
        raise NotInputs("a tuple or function that holds itself")
    return made[node]


def _fill(kind: bytes, x: Any, parts: list[tuple[Any, Any]]) -> None:
    if kind == b"l":
        x.extend([item for _, item in parts])
    elif kind == b"d":
        x.update(parts)
    elif kind == b"c" and parts:
        x.cell_contents = parts[0][1]
    elif kind == b"i":
        for key, item in parts:
            if type(key) is str:
                _attributes_of(x)[key] = item
            else:
                key.__set__(x, item)


def _attributes_of(x: Any) -> dict[str, Any]:
    try:
        held = _ATTRIBUTES(x, "__dict__")
    except AttributeError:
        return {}
    if type(held) is not dict:
        raise NotInputs("an object with attributes of its own kind")
    return held


def _slot(x: Any, member: Any) -> Any:
    try:
        return member.__get__(x)
    except AttributeError:
        return Ellipsis


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise NotInputs("a variable without a value") from None


def _is_plain(x: Any) -> bool:
    """Return whether it is a function that holds nothing of its own."""
    return type(x) is FunctionType and (is_library(x) or (x.__closure__ is None and not x.__dict__))


def _is_instance(kind: Any) -> bool:
    """Return whether instances of a class hold what their attributes say and nothing else, and come and go unseen."""
    if is_library(kind) or reads_itself(kind) or kind.__getattribute__ is not object.__getattribute__:
        return False
    return not hasattr(kind, "__del__") and _is_made_bare(kind)


def _is_made_bare(kind: type) -> bool:
    try:
        object.__new__(kind)
    except TypeError:  # of a class that is derived from one written in C
        return False
    return True
