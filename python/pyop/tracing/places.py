"""Stand for places of a function's state: a variable, the items of a container, the attributes of an object, memory.

Each says what it holds now, whether that is another state, how to put it back, and what csrc/plan/captured.h is to
compare at every call of a plan.
"""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from types import FunctionType
from typing import Any

import numpy as np

from .._core import elements, same_elements
from .names import imported

__all__ = ["MISSING", "Array", "Attributes", "Cell", "Class", "Code", "Context", "Items", "Memory", "Place", "Reading"]
__all__ += ["Referent", "Slots", "TypeOf", "members", "storage"]

# Kind, owner, key and value, as csrc/plan/captured.h says of each kind, and the label for warnings.
Reading = tuple[bytes, Any, Any, Any, str]

MISSING = object()
_WALKED: tuple[type, ...] = (OrderedDict, deque, set, frozenset)
_PLAIN_KEYS = frozenset((str, int, float, bool, bytes, type(None)))  # whose hash runs no code of the user's
_MEMBER = type(FunctionType.__globals__)
_OFFSETS = ("__dictoffset__", "__weaklistoffset__", "__vectorcalloffset__")  # of classes written in C
_METHODS = (FunctionType, staticmethod, classmethod)
_BEHIND = (FunctionType, property)  # what an object has of its class that is no attribute of its own
_MOST_KEPT = 256  # results that are compared one by one


class Place:
    """Stand for a name of an object: ``owner[name]``. The label is for errors and warnings."""

    def __init__(self, label: str, owner: Any, name: str = "") -> None:
        self.label, self.owner, self.name = label, owner, name
        self.before = self.now()

    @property
    def key(self) -> tuple[type, int, str]:
        """Return which place it is, whoever has found it."""
        return type(self), id(self.owner), self.name

    def now(self) -> Any:
        """Return what it holds."""
        return imported(self.owner.get(self.name, MISSING))

    def changed(self) -> bool:
        """Return whether it holds something else than it did when it was found."""
        return self.differs(self.before)

    def differs(self, state: Any) -> bool:
        """Return whether it holds something else than it did when it held `state`."""
        return self.now() is not state

    def put(self, value: Any) -> None:
        """Make it hold what it did."""
        if value is not MISSING:
            self.owner[self.name] = value
        else:
            self.owner.pop(self.name, None)

    def found(self) -> list[Any]:
        """Return the objects in it."""
        return [self.now()]

    def gained(self) -> bool:
        """Return whether it has keys that it had not, and all that it had."""
        return False

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        """Yield what to compare at each call; of attributes those in `names`, or all if that is None."""
        yield from ()  # a global, which Watch compares by the names in the code


class Cell(Place):
    """Stand for a variable of a closure."""

    def now(self) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:
            return MISSING

    def put(self, value: Any) -> None:
        if value is not MISSING:
            self.owner.cell_contents = value
        else:
            del self.owner.cell_contents

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        value = self.now()
        yield b"c", self.owner, None, Ellipsis if value is MISSING else value, repr(self.name)


def storage(x: Any) -> list[Any]:
    """Return what a container holds, as C code reads it, whatever the methods of its class say."""
    if isinstance(x, dict):
        return list(OrderedDict.items(x) if isinstance(x, OrderedDict) else dict.items(x))
    kind: Any = next(kind for kind in (list, deque, set, frozenset) if isinstance(x, kind))
    return list(kind.__iter__(x))


class Items(Place):
    """Stand for what a list, dict, set or deque holds."""

    def now(self) -> Any:
        return storage(self.owner)

    def differs(self, state: Any) -> bool:
        now = self.now()
        if len(now) != len(state):
            return True
        if not state:  # as are the attributes of most functions
            return False
        if isinstance(self.owner, dict):
            return any(a is not c or b is not d for (a, b), (c, d) in zip(now, state, strict=True))
        return any(a is not b for a, b in zip(now, state, strict=True))

    def put(self, value: Any) -> None:
        self.owner.clear()
        if isinstance(self.owner, dict):
            for key, x in value:  # a Counter's update adds
                self.owner[key] = x
        elif isinstance(self.owner, set):
            self.owner.update(value)
        else:
            self.owner.extend(value)

    def found(self) -> list[Any]:
        return [x for pair in self.now() for x in pair] if isinstance(self.owner, dict) else self.now()

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        owner = self.owner
        if isinstance(owner, dict):
            pairs = list(dict.items(owner))
            yield b"i", owner, None, tuple(x for pair in pairs for x in pair), self.label
        elif isinstance(owner, list):
            yield b"i", owner, None, tuple(storage(owner)), self.label
        kind = next((kind for kind in _WALKED if isinstance(owner, kind)), None)
        if kind is OrderedDict and not all(type(key) in _PLAIN_KEYS for key in owner):
            return
        if kind is not None:
            yield b"o", owner, kind, tuple(kind.__iter__(owner)), self.label  # type: ignore[attr-defined]

    def gained(self) -> bool:
        return isinstance(self.owner, dict) and {key for key, _ in self.before} < self.owner.keys()

    def memos(self, logs: frozenset[Any] = frozenset()) -> Iterator[Reading]:
        """Yield what to compare where the function itself adds items: others may come. Not compared are `logs`."""
        pairs = list(dict.items(self.owner)) if isinstance(self.owner, dict) else []
        if logs or (pairs and all(type(key) is str for key, _ in pairs)):
            for key, value in pairs:
                if key not in logs and _is_plain_key(key):
                    yield b"n" if type(key) is str else b"h", self.owner, key, value, self.label
        else:
            yield from self.readings(None)


class Attributes(Items):
    """Stand for the attributes of an object or module."""

    def __init__(self, label: str, owner: Any, kind: type = object) -> None:
        self.kind = kind  # whose attributes stand behind these
        super().__init__(label, owner)

    def found(self) -> list[Any]:
        return [x for _, x in self.now()]

    def names(self) -> frozenset[str]:
        """Return the names of all of them."""
        return frozenset(name for name, _ in self.now())

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        if names is None:
            yield from super().readings(None)
            return
        for name in self.owner.keys() & names:
            yield b"n", self.owner, name, imported(self.owner[name]), repr(name)
        yield b"z", self.owner, None, len(self.owner), self.label
        for name in names:
            behind = MISSING if name in self.owner else _of_class(self.kind, name)
            if behind is not MISSING and not isinstance(behind, _BEHIND):
                yield b"n", self.owner, name, Ellipsis, repr(name)


def _of_class(kind: type, name: str) -> Any:
    return next((vars(part)[name] for part in kind.__mro__ if name in vars(part)), MISSING)


class _Named(Attributes):
    """Stand for attributes that are set by name."""

    def differs(self, state: Any) -> bool:
        now = self.now()
        return len(now) != len(state) or any(a is not b for (_, a), (_, b) in zip(now, state, strict=True))

    def put(self, value: Any) -> None:
        before, now = dict(value), dict(self.now())
        for name in now.keys() - before.keys():
            delattr(self.owner, name)
        for name, x in before.items():
            if name not in now or now[name] is not x:
                self._set(name, x)

    def _set(self, name: str, x: Any) -> None:
        setattr(self.owner, name, x)


class Class(_Named):
    """Stand for the attributes of a class."""

    def now(self) -> Any:
        return list(vars(self.owner).items())

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        (own,) = (x for x in gc.get_referents(vars(self.owner)) if type(x) is dict)
        yield b"z", own, None, len(own), self.label
        mro = self.owner.__mro__
        special = {name for part in mro for name, x in vars(part).items() if _is_special(name, x)}
        every = {name for part in mro for name in vars(part)} if names is None else names | special
        for name in every:
            if (value := _of_class(self.owner, name)) is not MISSING and not _is_builtin(value):
                yield b"t", self.owner, name, value, repr(name)


def _is_special(name: str, value: Any) -> bool:
    """Return whether it is a method that Python calls without its name in the code."""
    return name.startswith("__") and isinstance(value, _METHODS)


def _is_builtin(value: Any) -> bool:
    """Return whether it came with the interpreter: nobody sets `object.__init__`."""
    return type(value) in (type(object.__init__), type(str.join), type(dict.__dict__["fromkeys"]))


class Slots(_Named):
    """Stand for attributes that a class gives places (``__slots__``); `whole` if all of them are read."""

    def __init__(self, label: str, owner: Any, whole: bool) -> None:
        self.whole = whole
        super().__init__(label, owner)

    def now(self) -> Any:
        held = [(name, self._get(member)) for name, member in self._places().items()]
        return [(name, x) for name, x in held if x is not Ellipsis]

    def _get(self, member: Any) -> Any:
        try:
            return member.__get__(self.owner)
        except AttributeError:
            return Ellipsis

    def _places(self) -> dict[str, Any]:
        return members(type(self.owner))

    def _set(self, name: str, x: Any) -> None:
        object.__setattr__(self.owner, name, x)

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        owner = _weakly(self.owner)
        for name, member in self._places().items():
            if names is None or name in names or self.whole:
                yield b"m", owner, member, self._get(member), repr(name)


class TypeOf(Place):
    """Stand for the class of an object, which may be bound to another one."""

    def now(self) -> Any:
        return type(self.owner)

    def put(self, value: Any) -> None:
        self.owner.__class__ = value

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        yield b"k", _weakly(self.owner), None, type(self.owner), self.label


def members(kind: type) -> dict[str, Any]:
    """Return the places that a class gives attributes (``__slots__``), by their names."""
    found: dict[str, Any] = {}
    for part in kind.__mro__:
        for name, x in vars(part).items():
            if type(x) is _MEMBER and name not in _OFFSETS:
                found.setdefault(name, x)
    return found


def _weakly(x: Any) -> Any:
    """Return a weak reference to an object, or itself if it allows none: plans keep nothing alive that need not be."""
    try:
        return weakref.ref(x)
    except TypeError:
        return x


class Memory(Place):
    """Stand for what a `bytearray`, an `array.array` or another object with a buffer holds."""

    def now(self) -> Any:
        return bytes(self.owner)

    def differs(self, state: Any) -> bool:
        return bool(self.now() != state)

    def put(self, value: Any) -> None:
        if isinstance(self.owner, bytearray):
            self.owner[:] = value
        elif hasattr(self.owner, "frombytes"):  # an array.array
            del self.owner[:]
            self.owner.frombytes(value)
        else:
            memoryview(self.owner).cast("B")[:] = value

    def found(self) -> list[Any]:
        return []

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        yield b"u", self.owner, None, self.now(), self.label


class Context(Place):
    """Stand for the value of a context variable."""

    def now(self) -> Any:
        return self.owner.get(MISSING)

    def put(self, value: Any) -> None:
        self.owner.set(value)

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        try:
            yield b"v", self.owner, None, self.owner.get(), self.label
        except LookupError:
            yield b"v", self.owner, None, Ellipsis, self.label


class OfAPackage(Place):
    """Stand for an attribute of a module of an installed package: a setting, or a function that others may replace."""

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        value = self.now()
        yield b"n", self.owner, self.name, Ellipsis if value is MISSING else value, self.label


class Imported(OfAPackage):
    """Stand for the module that an import in a function finds. That it is loaded now, and was not, is no change."""

    def differs(self, state: Any) -> bool:
        return state is not MISSING and self.now() is not state

    def put(self, value: Any) -> None:
        if value is not MISSING:
            super().put(value)


class Cached(Place):
    """Stand for the number of results that a functools.lru_cache keeps.

    Others may fill it, which changes nothing; but it may be cleared, and what the function has read of it computed
    once more.
    """

    def now(self) -> Any:
        return self.owner.cache_info().currsize

    def differs(self, state: Any) -> bool:
        return bool(self.now() != state)

    def put(self, value: Any) -> None:
        """Leave the results that were kept."""

    def found(self) -> list[Any]:
        """Return the results."""
        parts = gc.get_referents(self.owner)
        of_dicts = [item for part in parts if type(part) is dict for item in part.values()]
        return [part for part in (*parts, *of_dicts) if type(part).__name__ not in ("dict", "_lru_list_elem")]

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        kept = [part for part in gc.get_referents(self.owner) if type(part) is dict and part is not vars(self.owner)]
        for results in kept:
            plain = len(results) <= _MOST_KEPT and all(map(_is_plain_key, results))
            for key, value in results.items() if plain else ():
                yield b"h", results, key, value, self.label
            if not plain:
                yield b"z", results, None, len(results), self.label


def _is_plain_key(key: Any) -> bool:
    return all(map(_is_plain_key, key)) if type(key) is tuple else type(key) in _PLAIN_KEYS


class Referent(Place):
    """Tell whether what a weak reference refers to is there."""

    def now(self) -> Any:
        return self.owner() is not None

    def put(self, value: Any) -> None:
        """Do nothing, as nobody can."""

    def found(self) -> list[Any]:
        return []

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        yield b"w", self.owner, None, self.now(), self.label


class Code(Place):
    """Stand for what a function is made of: its code and its defaults."""

    def now(self) -> Any:
        fn = self.owner
        return fn.__code__, fn.__defaults__, fn.__kwdefaults__

    def differs(self, state: Any) -> bool:
        (code, defaults, by_name), fn = state, self.owner
        return not (fn.__code__ is code and fn.__defaults__ is defaults and fn.__kwdefaults__ is by_name)

    def put(self, value: Any) -> None:
        self.owner.__code__, self.owner.__defaults__, self.owner.__kwdefaults__ = value

    def found(self) -> list[Any]:
        return []

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        yield b"f", self.owner, None, tuple([Ellipsis if part is None else part for part in self.now()]), self.label


class Array(Place):
    """Stand for the elements of an array. `known` are what they were for another plan, which is kept once for both."""

    def __init__(self, label: str, owner: Any, known: bytes | None = None) -> None:
        self.known = known
        super().__init__(label, owner)

    def now(self) -> Any:
        owner = self.owner
        held = owner.copy() if owner.dtype.hasobject else None  # which keeps the objects alive
        return self._elements(), owner.shape, owner.dtype, held

    def _elements(self) -> bytes:
        if self.known is None or not same_elements(self.owner, self.known):
            self.known = elements(self.owner)
        return self.known

    def differs(self, state: Any) -> bool:
        owner = self.owner
        return not ((owner.shape, owner.dtype) == state[1:3] and same_elements(owner, state[0]))

    def put(self, value: Any) -> None:
        held, shape, dtype, objects = value
        if objects is not None:
            self.owner[...] = objects
            return
        order: Any = "C" if self.owner.flags.c_contiguous or not self.owner.flags.f_contiguous else "F"
        self.owner[...] = np.frombuffer(held, dtype).reshape(shape, order=order)

    def found(self) -> list[Any]:
        return list(self.owner.flat) if self.owner.dtype == object else []

    def readings(self, names: AbstractSet[str] | None) -> Iterator[Reading]:
        owner = self.owner
        if not _is_fixed(owner):
            form = owner.copy() if owner.dtype.hasobject else _form(owner)
            yield b"b", owner, form, self._elements(), self.label


def _form(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of its shape and dtype that takes no memory."""
    strides = (0,) * x.ndim
    return np.ndarray(x.shape, x.dtype, bytes(x.dtype.itemsize), 0, strides)


def _is_fixed(x: np.ndarray[Any, Any]) -> bool:
    """Return whether the array is large and read-only; such arrays are assumed never to change."""
    if x.nbytes <= 1 << 16:
        return False
    base: Any = x
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        if base.base is None:
            return True
        base = base.base
    return type(base) is bytes
