"""What a function reads beside its arguments, and whether a trace changed it.

A trace runs the function once for many calls. A counter that it increments, a generator that it draws from, an array
that it writes to would be those of the trace for ever. So what the function can reach by its code (globals, variables
of its closure, defaults, attributes and items of these) is noted before a trace and compared after it.

What cannot be seen: state of C code, of other libraries' objects and of files. Functions whose code names a clock or a
source of random numbers, and those that reach an iterator, are traced twice in any case.
"""

from __future__ import annotations

import argparse
import contextlib
import dis
import functools
import random
import sys
import threading
import zlib
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from .._core import CompiledFunction, Op, Tensor, Value
from .generators import GAUSSIAN, Generator, generator_of, global_generators
from .names import imported
from .number import is_number
from .same import same

__all__ = ["MISSING", "Watch", "is_library"]

_ATOMS = frozenset(
    (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range, np.dtype, np.ufunc, ModuleType)
) | {BuiltinFunctionType, CodeType, property, staticmethod, classmethod, type(len)}
_NOTHING = _ATOMS - {ModuleType, BuiltinFunctionType}
_OURS = frozenset(("numpy", "scipy", "pyop", "builtins")) | sys.stdlib_module_names
_FLEETING = frozenset(
    ("default_rng", "RandomState", "SystemRandom", "urandom", "token_bytes", "uuid1", "uuid4", "time", "time_ns")
) | {"perf_counter", "perf_counter_ns", "monotonic", "now", "today", "utcnow", "process_time"}
_READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_FLEETING |= {"globals", "environ", "getenv"}
# Of the standard library, but made to hold what is the user's.
_HOLDERS: tuple[type, ...] = (SimpleNamespace, argparse.Namespace, UserDict, UserList, ChainMap, threading.local)
_HOLDERS += (WeakKeyDictionary, WeakValueDictionary)
_WRITES = frozenset(dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL"))
_MAKES = frozenset(("__init__", "__new__", "__post_init__"))  # run where the class is named
_MOST_OBJECTS = 1000
_MOST_ITEMS = 10_000
_MOST_BYTES = 1 << 26
MISSING = object()


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> frozenset[str]:
    """Of globals and attributes, in the code and the functions in it."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return frozenset(code.co_names).union(*inner)


@functools.lru_cache(maxsize=1024)
def _globals_read(code: CodeType) -> frozenset[str]:
    """The names of globals alone: an attribute may have the name of a global that the code does not read."""
    own = [op.argval for op in dis.get_instructions(code) if op.opname in _READS]
    return frozenset(own).union(*[_globals_read(part) for part in code.co_consts if isinstance(part, CodeType)])


@functools.lru_cache(maxsize=1024)
def _writes_globals(code: CodeType) -> bool:
    inner = any(_writes_globals(part) for part in code.co_consts if isinstance(part, CodeType))
    return inner or not _WRITES.isdisjoint(code.co_code[::2])


@functools.lru_cache(maxsize=4096)
def _is_installed(root: str) -> bool:
    """Whether a package was installed: then its functions and objects are not the user's to change."""
    path = getattr(sys.modules.get(root), "__file__", None) or ""
    return root in _OURS or "site-packages" in path or "dist-packages" in path


def is_library(x: Any) -> bool:
    """Whether an object was defined in an installed package."""
    module = getattr(x, "__module__", None)
    return isinstance(module, str) and _is_installed(module.partition(".")[0])


class _Binding:
    """A name that stands for an object: ``owner[name]``."""

    def __init__(self, label: str, owner: Any, name: str) -> None:
        self.label, self.owner, self.name = label, owner, name
        self.before = self.now()

    def now(self) -> Any:
        return imported(self.owner.get(self.name, MISSING))

    def changed(self) -> bool:
        return self.differs(self.before)

    def differs(self, state: Any) -> bool:
        """Whether it is another than it was."""
        return self.now() is not state

    def put(self, value: Any) -> None:
        if value is not MISSING:
            self.owner[self.name] = value
        else:
            self.owner.pop(self.name, None)

    def found(self) -> list[Any]:
        return [self.now()]


class _Cell(_Binding):
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


class _Items(_Binding):
    """What a list, dict, set or deque holds."""

    def now(self) -> Any:
        return list(self.owner.items() if isinstance(self.owner, dict) else self.owner)

    def differs(self, state: Any) -> bool:
        now = self.now()
        if len(now) != len(state):
            return True
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
        return [x for _, x in self.now()] if isinstance(self.owner, dict) else self.now()


class _Class(_Items):
    """The attributes of a class."""

    def now(self) -> Any:
        return list(vars(self.owner).items())

    def differs(self, state: Any) -> bool:
        now = self.now()
        return len(now) != len(state) or any(a is not b for (_, a), (_, b) in zip(now, state, strict=True))

    def put(self, value: Any) -> None:
        before = dict(value)
        for name, x in self.now():
            if name not in before:
                delattr(self.owner, name)
            elif x is not before[name]:
                setattr(self.owner, name, before[name])

    def found(self) -> list[Any]:
        return [x for _, x in self.now()]


class _Slots(_Items):
    """The attributes of an object whose class gives them places (``__slots__``)."""

    def now(self) -> Any:
        names = [name for part in type(self.owner).__mro__ for name in vars(part).get("__slots__", ())]
        return [(name, getattr(self.owner, name)) for name in names if hasattr(self.owner, name)]

    def differs(self, state: Any) -> bool:
        now = self.now()
        return len(now) != len(state) or any(a is not b for (_, a), (_, b) in zip(now, state, strict=True))

    def put(self, value: Any) -> None:
        before = dict(value)
        for name, x in self.now():
            if name not in before:
                delattr(self.owner, name)
            elif x is not before[name]:
                object.__setattr__(self.owner, name, before[name])
        for name in before.keys() - dict(self.now()).keys():
            object.__setattr__(self.owner, name, before[name])

    def found(self) -> list[Any]:
        return [x for _, x in self.now()]


class _Numbers(_Binding):
    """What a `bytearray` or an `array.array` holds."""

    def now(self) -> Any:
        return bytes(self.owner)

    def differs(self, state: Any) -> bool:
        return bool(self.now() != state)

    def put(self, value: Any) -> None:
        del self.owner[:]
        if isinstance(self.owner, bytearray):
            self.owner.extend(value)
        else:
            self.owner.frombytes(value)

    def found(self) -> list[Any]:
        return []


class _Context(_Binding):
    """The value of a context variable."""

    def now(self) -> Any:
        return self.owner.get(MISSING)

    def put(self, value: Any) -> None:
        self.owner.set(value)


class _Array(_Binding):
    """The elements of an array; of a large one no more than a sum of them."""

    def now(self) -> Any:
        if self.owner.dtype.hasobject:
            return self.owner.tolist()
        if self.owner.nbytes > 1 << 20:
            return zlib.crc32(np.ascontiguousarray(self.owner).view(np.uint8).data), self.owner.shape
        return self.owner.tobytes(), self.owner.shape, self.owner.dtype

    def differs(self, state: Any) -> bool:
        return not same(self.now(), state)

    def put(self, value: Any) -> None:
        if isinstance(value, tuple) and len(value) == 3 and self.owner.flags.writeable:
            self.owner[...] = np.frombuffer(value[0], value[2]).reshape(value[1])

    def found(self) -> list[Any]:
        return []


def _is_plain(x: Any) -> bool:
    """Whether a list or dict holds its items as C code reads them."""
    if isinstance(x, dict):
        return type(x).items is dict.items  # not an OrderedDict
    return isinstance(x, list) and type(x).__iter__ is list.__iter__


class Watch:
    """What a function can reach, as it is now.

    Parameters
    ----------
    fn : callable
    instances : list
        Arguments that are objects, as the `self` of a method.

    Attributes
    ----------
    fleeting : bool
        It can reach what may change without being seen.
    """

    def __init__(self, fn: Callable[..., Any], instances: list[Any]) -> None:
        self.fleeting = False
        self.globals_read: list[tuple[dict[str, Any], frozenset[str]]] = []
        self._named: list[
            tuple[FunctionType, frozenset[str]]
        ] = []  # functions, and what globals and attributes they name
        self._methods: dict[int, type] = {}  # by the id of a function of a class
        self.instances: list[dict[str, Any]] = []  # their attributes
        self.classes: list[type] = []
        self.own: set[int] = set()  # places that the trace has changed, and that do not matter: memos, logs
        self.generators: list[Generator] = global_generators()
        self.places: list[_Binding] = []
        self._seen: dict[int, Any] = {id(generator.owner): generator.owner for generator in self.generators}
        self._bytes = 0
        self._pending: deque[tuple[str, Any]] = deque([("the function", fn)])
        self._pending.extend(("an argument", x) for x in instances)
        while self._pending and len(self._seen) < _MOST_OBJECTS:
            label, x = self._pending.popleft()
            with contextlib.suppress(Exception):  # of an object that does not like to be looked at
                self._visit(label, x)

    def _visit(self, label: str, x: Any) -> None:
        kind = type(x)
        if kind in _ATOMS or id(x) in self._seen:
            if x is random or (kind is BuiltinFunctionType and not isinstance(x.__self__, ModuleType)):
                self._add_generator(label, x)
            return
        self._seen[id(x)] = x  # alive, so that the id stays its own
        if kind is FunctionType:
            self._function(label, x)
        elif issubclass(kind, np.ndarray):
            self._array(label, x.view(np.ndarray))
        elif issubclass(kind, (list, dict, set, deque)):
            self._items(label, x)
            if kind not in (list, dict, set, deque):  # of a class of the user's, with attributes beside
                self._instance(label, x)
        elif kind in (bytearray, array) and len(x) <= _MOST_ITEMS:
            self.places.append(_Numbers(label, x, ""))
        elif kind is ContextVar:
            self._add(_Context(f"the context variable {x.name!r}", x, ""))
        elif kind in (tuple, frozenset):
            self._pending.extend((label, item) for item in x)
        elif kind is MethodType:
            self._pending.extend(((label, x.__func__), (label, x.__self__)))
        elif issubclass(kind, functools.partial):
            self._pending.extend((label, part) for part in (x.func, *x.args, *x.keywords.values()))
        elif kind is CompiledFunction or kind is Op:
            self._pending.append((label, x.__wrapped__))
        elif kind in (Value, Tensor) or is_number(x) or self._add_generator(label, x):
            pass
        elif isinstance(x, type):
            self._class(label, x)
        elif issubclass(kind, Iterator):
            self.fleeting = True
        else:
            self._instance(label, x)

    def _add_generator(self, label: str, x: Any) -> bool:
        generator = generator_of(label, x)
        if generator is not None and all(generator.owner is not known.owner for known in self.generators):
            self.generators.append(generator)
        return generator is not None

    def _function(self, label: str, fn: Any) -> None:
        code, is_users = fn.__code__, not is_library(fn)
        for name, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
            self._add(_Cell(f"{name!r} of the closure of {fn.__qualname__}", cell, name))
        if not is_users:
            return
        names = _names(code)
        self.fleeting |= not _FLEETING.isdisjoint(names)
        if not GAUSSIAN.isdisjoint(names):
            for generator in self.generators:
                generator.look_closely()
        known, writes = fn.__globals__, _writes_globals(code)
        self._named.append((fn, names))
        self.globals_read.append((known, _globals_read(code)))
        for name in names:
            if writes:
                self._add(_Binding(f"the global {name!r}", known, name))
            elif name in known and type(value := imported(known[name])) not in _NOTHING:
                self._pending.append((f"the global {name!r}", value))
        for value in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            self._visit(f"a default of {fn.__qualname__}", value)
        self._items(f"an attribute of {fn.__qualname__}", fn.__dict__)

    def _add(self, place: _Binding) -> None:
        self.places.append(place)
        if place.before is not MISSING:
            self._pending.append((place.label, place.before))

    def _items(self, label: str, x: Any) -> None:
        if len(x) > _MOST_ITEMS:
            return
        place = _Items(label, x, "")
        self.places.append(place)
        self._pending.extend((label, item) for item in place.found() if type(item) not in _ATOMS)

    def _array(self, label: str, x: Any) -> None:
        self._bytes += x.nbytes
        if self._bytes <= _MOST_BYTES:
            self.places.append(_Array(label, x, ""))

    def _class(self, label: str, x: type) -> None:
        if is_library(x):
            return
        self.classes.append(x)
        place = _Class(f"an attribute of {x.__name__}", x, "")
        self.places.append(place)
        for name, value in place.before:
            if type(value) is property:
                value = value.fget
            elif isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            elif name.startswith("__") and type(value) is not FunctionType:
                continue
            self._methods[id(value)] = x
            self._pending.append((place.label, value))

    def _instance(self, label: str, x: Any) -> None:
        attributes = getattr(x, "__dict__", None)
        if is_library(type(x)) and not isinstance(x, _HOLDERS):
            if type(attributes) is dict:
                self.instances.append(attributes)
            if callable(x) and (wrapped := getattr(x, "__wrapped__", None)) is not None:  # functools.lru_cache
                self._pending.append((label, wrapped))
            return
        if type(attributes) is dict:
            self._seen[id(attributes)] = attributes
            self.instances.append(attributes)
            self._items(f"an attribute of a {type(x).__name__}", attributes)
        if any("__slots__" in vars(part) for part in type(x).__mro__):
            place = _Slots(f"an attribute of a {type(x).__name__}", x, "")
            self.places.append(place)
            self._pending.extend((label, item) for item in place.found())
        self._pending.append((label, type(x)))

    # --- after a trace

    def names(self) -> frozenset[str]:
        """Of what the function may read: globals and attributes. A method counts if it is named, or Python calls it."""
        found: frozenset[str] = frozenset()
        waiting = list(self._named)
        while ready := [names for fn, names in waiting if self._may_run(fn, found)]:
            waiting = [(fn, names) for fn, names in waiting if not self._may_run(fn, found)]
            found = found.union(*ready)
        return found

    def _may_run(self, fn: FunctionType, names: frozenset[str]) -> bool:
        kind, name = self._methods.get(id(fn)), fn.__name__
        if kind is None or name in names:
            return True
        return kind.__name__ in names if name in _MAKES else name.startswith("__")

    def cells(self) -> list[_Binding]:
        """The variables of closures."""
        return [place for place in self.places if type(place) is _Cell and id(place) not in self.own]

    def containers(self) -> list[_Binding]:
        """Lists and dicts, but for the attributes of instances."""
        own = {id(attributes) for attributes in self.instances}
        lists = [place for place in self.places if type(place) is _Items and _is_plain(place.owner)]
        return [place for place in lists if id(place.owner) not in own and id(place) not in self.own]

    def arrays(self) -> list[_Binding]:
        """Arrays that are not too large to be looked at."""
        return [place for place in self.places if type(place) is _Array and id(place) not in self.own]

    def changed(self) -> list[str]:
        """What is not as it was, but for random numbers."""
        found = self._changed()
        self.own.update(map(id, found))
        return [place.label for place in found]

    def _changed(self) -> list[_Binding]:
        return [place for place in self.places if place.changed()]

    def drawn(self) -> list[str]:
        """The generators whose state is not as it was."""
        return [generator.label for generator in self.generators if generator.changed()]

    def left_behind(self) -> list[str]:
        """Where symbolic arrays were put that mean nothing after the trace."""
        return [
            place.label for place in self._changed() if any(type(x) is Value or is_number(x) for x in place.found())
        ]

    def generator_states(self) -> list[Any]:
        """Of the random numbers, as they are now."""
        return [generator.now() for generator in self.generators]

    def restore_generators(self, states: list[Any] | None = None) -> None:
        """The random numbers as they were before the trace, or at `states`."""
        before = [generator.before for generator in self.generators] if states is None else states
        for generator, state in zip(self.generators, before, strict=True):
            if generator.differs(state):
                generator.put(state)

    def state(self) -> list[Any]:
        """As it is now but for random numbers, for `restore`."""
        return [place.now() for place in self.places]

    def restore(self, state: list[Any] | None = None) -> None:
        """As it was before the trace, or at `state`; what cannot be set stays."""
        if state is None:
            places: list[_Binding | Generator] = [*self.places, *self.generators]
            state = [place.before for place in places]
        else:
            places = [*self.places]
        for place, value in zip(places, state, strict=True):
            if place.differs(value):
                with contextlib.suppress(Exception):  # of classes that do not let it be set
                    place.put(value)
