"""Record what a function reads beside its arguments, and tell whether a trace changed it.

A trace runs the function once for many calls. A counter that it increments, a generator that it draws from, an array
that it writes to would be those of the trace for ever. So what the function can reach by its code (globals, variables
of its closure, defaults, attributes and items of these) is noted before a trace and compared after it; and what it may
read, going by the names in its code, is compared at every call of the plan (csrc/plan/captured.h).

What cannot be seen: state of C code and of files. The trace of a function that can reach what may read such is watched
(`purity.py`); that of one that can reach an iterator, or make a generator of random numbers, is made twice.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import gc
import operator
import os
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from .._core import CompiledFunction, Op, Tensor, Value
from ..graph.counter import is_counter
from ..graph.symbolic_number import is_number
from .code import facts
from .generators import GAUSSIAN, Generator, Reached, generator_of
from .libraries import REACH_OUT, buffers, has_slots, holders, is_installed, is_library, reads_itself
from .names import imported
from .own import Own
from .places import (
    Array,
    Attributes,
    Cached,
    Cell,
    Class,
    Code,
    Context,
    Imported,
    Items,
    Memory,
    OfAPackage,
    Place,
    Reading,
    Referent,
    Slots,
    TypeOf,
)

__all__ = ["Watch"]

_WRAPPER = type([].__len__)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_ATOMS = frozenset(
    (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range, np.dtype, np.ufunc)
) | {CodeType, property, staticmethod, classmethod}
_BY_NAME: tuple[type, ...] = (operator.attrgetter, operator.methodcaller)
_ENVIRONMENT = frozenset(("environ", "getenv"))
# NumPy's settings are context variables, of which its functions give copies.
_SETTINGS = frozenset(("geterr", "geterrcall", "get_printoptions"))
_SETTINGS_HELD = (("numpy._core.umath", "_extobj_contextvar"), ("numpy._core.printoptions", "format_options"))
_NEVER = "what an op calls"  # which runs with the plan, and not when it is traced
_MAKES = frozenset(("__init__", "__new__", "__post_init__"))  # run where the class is named
_MOST_OBJECTS = 20_000
_MOST_OF_LIBRARIES = 1000


class Watch(Reached):
    """Record what a function can reach, as it is when this is made.

    `instances` are arguments that are objects, as the `self` of a method; `known` has the elements of arrays as they
    were, by the id of the array.
    `fleeting`: it can reach what may change without being seen (`goes_on`: an iterator); `reaches_out`: what may read
    a clock, a file, or the like; `overflown`: more than is looked at.
    """

    def __init__(self, fn: Callable[..., Any], instances: list[Any], known: dict[int, bytes] | None = None) -> None:
        self._known = known or {}
        self.fleeting = self.goes_on = self.overflown = self.reaches_out = False
        super().__init__()
        self.places: list[Place] = []
        self._at: dict[int, list[Place]] = {}  # by the id of the object they belong to
        self._functions: dict[int, FunctionType] = {}
        self._reached: dict[int, list[tuple[str | None, int]]] = {}  # from one to others, by which name
        self._seen: dict[int, Any] = {id(generator.owner): generator.owner for generator in self.generators}
        self._bases: dict[int, Any] = {}  # arrays that others of those show
        self._of_libraries = 0
        self._modules: set[int] = set()  # which a variable stands for
        self._unloaded: list[str] = []  # that the code imports
        self._made_of = fn, instances, known
        self._read: tuple[list[int], frozenset[str] | None] | None = None
        self._here = 0  # the id of what is looked at
        self._pending: deque[tuple[str, Any]] = deque()
        for label, x in (("the function", fn), *(("an argument", x) for x in instances)):
            self._push(label, x)
        while self._pending:
            if len(self._seen) > _MOST_OBJECTS:
                self.overflown = True
                break
            label, x = self._pending.popleft()
            self._here = id(x)
            try:
                self._visit(label, x)
            except Exception:  # of an object that does not like to be looked at
                self.reaches_out = True

    def _push(self, label: str, x: Any, name: str | None = None) -> None:
        """Queue an object that can be read from what is looked at now; as an attribute, by this name."""
        if type(x) in _ATOMS:
            return
        self._reached.setdefault(self._here, []).append((name, id(x)))
        if id(x) not in self._seen:
            self._pending.append((label, x))

    def _add(self, place: Place) -> None:
        self.places.append(place)
        self._at.setdefault(self._here, []).append(place)

    def _visit(self, label: str, x: Any) -> None:
        kind = type(x)
        if kind is BuiltinFunctionType or kind is _WRAPPER:
            self._callable(x)
            if not isinstance(x.__self__, ModuleType) and not self._add_generator(label, x):
                self._push(label, x.__self__)
            return
        if id(x) in self._seen:
            return
        self._seen[id(x)] = x  # alive, so that the id stays its own
        if kind is FunctionType:
            self._function(label, x)
        elif issubclass(kind, np.ndarray):
            self._array(label, x)
        elif issubclass(kind, (list, dict, set, deque)):
            self._items(label, x)
            if kind is defaultdict:
                self._slots(label, x, whole=True)  # what makes its items
            elif kind not in (list, dict, set, deque):  # of a class of the user's, with attributes beside
                self._instance(label, x)
        elif isinstance(x, buffers()):
            self._add(Memory(label, x))
        elif kind is ContextVar:
            place = Context(f"the context variable {x.name!r}", x)
            self._add(place)
            self._push(place.label, place.before)
        elif issubclass(kind, (tuple, frozenset)):
            for item in tuple.__iter__(x) if issubclass(kind, tuple) else frozenset.__iter__(x):
                self._push(label, item)
            if kind is not tuple and kind is not frozenset:  # with names for its items, which are of the class
                self._instance(label, x)
        elif kind is MethodType:
            self._push(label, x.__func__)
            self._push(label, x.__self__)
        elif issubclass(kind, functools.partial):
            self._add(Slots(label, x, whole=True))
            self._add(Items(label, x.keywords))
            for part in (x.func, *x.args, *x.keywords.values()):
                self._push(label, part)
        elif kind is CompiledFunction or kind is Op:
            self._push(label, x.__wrapped__, _NEVER if kind is Op else None)
        elif kind is MappingProxyType or kind in _VIEWS:
            for part in gc.get_referents(x.mapping if kind in _VIEWS else x):
                self._push(label, part)
        elif issubclass(kind, ref):
            self._add(Referent(label, x))
            self._push(label, x())
        elif kind is Tensor:
            self._array(label, x.detach().numpy())
        elif kind is Value or is_number(x) or is_counter(x) or self._add_generator(label, x):
            pass
        elif kind is ModuleType:
            self._module(x)
        elif isinstance(x, type):
            self._class(x)
        elif issubclass(kind, Iterator):
            self.fleeting = self.goes_on = True
        else:
            self._instance(label, x)

    def _add_generator(self, label: str, x: Any) -> bool:
        generator = generator_of(label, x)
        if generator is not None and all(generator.owner is not known.owner for known in self.generators):
            self.generators.append(generator)
        return generator is not None

    def _function(self, label: str, fn: Any) -> None:
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            place = Cell(f"{name!r} of the closure of {fn.__qualname__}", cell, name)
            self._add(place)
            if type(place.before) is not ModuleType:
                self._push(place.label, place.before)
        if is_library(fn):
            self._callable(fn)
            return
        found = facts(fn.__code__)
        for cell in fn.__closure__ or ():
            with contextlib.suppress(ValueError):  # empty
                if type(cell.cell_contents) is ModuleType:
                    self._global("a module", cell.cell_contents, found.names, set())
        self._functions[id(fn)] = fn
        if not REACH_OUT.isdisjoint(found.globals_read):
            self.fleeting = self.reaches_out = True
        if not GAUSSIAN.isdisjoint(found.names):
            for generator in self.generators:
                generator.look_closely()
        known = fn.__globals__
        if found.writes_globals:
            for name in found.names:
                self._add(Place(f"the global {name!r}", known, name))
        for name in found.globals_read & known.keys():
            self._global(f"the global {name!r}", imported(known[name]), found.names, set())
        if found.imports:
            self._imports(fn)
        if "globals" in found.globals_read:
            self._add(Items("a global", known))
        if not _ENVIRONMENT.isdisjoint(found.names):
            self._push("the environment", os.environ._data)  # type: ignore[attr-defined]  # the dict in it
        if not _SETTINGS.isdisjoint(found.names):
            for module, name in _SETTINGS_HELD:
                self._push("a setting of NumPy", getattr(sys.modules.get(module), name, None))
        for value in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            self._push(f"a default of {fn.__qualname__}", value)
        self._add(Code(f"the code of {fn.__qualname__}", fn))
        if fn.__kwdefaults__ is not None:
            self._add(Items(f"a default of {fn.__qualname__}", fn.__kwdefaults__))
        self._attributes(f"an attribute of {fn.__qualname__}", fn.__dict__)

    def _imports(self, fn: Any) -> None:
        from .imports import imported_modules  # on first use

        for path in imported_modules(fn):
            self._add(Imported(f"the module {path}", sys.modules, path))
            if path in sys.modules:
                self._global("a module", sys.modules[path], facts(fn.__code__).names, set())
            else:
                self._unloaded.append(path)

    def _global(self, label: str, value: Any, names: frozenset[str], seen: set[int]) -> None:
        """Watch what a name stands for; of a module of the user's, no more than the code names."""
        if type(value) is not ModuleType:
            self._push(label, value)
        elif value is sys.modules.get("random"):
            self._add_generator(label, value)
            self._package(value, names, seen)
        elif id(value) not in seen and not is_installed(value.__name__.partition(".")[0]):
            seen.add(id(value))
            self._modules.add(id(value))
            self._push(label, value)
            for name in names & vars(value).keys():
                self._global(f"{value.__name__}.{name}", imported(vars(value)[name]), names, seen)
        elif id(value) not in seen:
            seen.add(id(value))
            self._package(value, names, seen)

    def _package(self, module: ModuleType, names: frozenset[str], seen: set[int]) -> None:
        """Watch what the code names of an installed module: settings, and functions, which others may replace."""
        held = vars(module)
        if module is np and "random" in names - held.keys():  # loaded when it is asked for
            self.fleeting = self.reaches_out = True
        for name in names & held.keys():
            value = held[name]
            self._add(OfAPackage(f"{module.__name__}.{name}", held, name))
            if type(value) is ModuleType:
                self._global(name, value, names, seen)
            elif callable(value):
                self._callable(value)
            elif module.__name__.partition(".")[0] not in sys.stdlib_module_names:
                self._push(f"{module.__name__}.{name}", value)  # those of `sys` reach everything

    def _module(self, x: ModuleType) -> None:
        if is_installed(x.__name__.partition(".")[0]):
            return
        label = f"an attribute of the module {x.__name__}"
        self._add(Attributes(label, vars(x), ModuleType))
        if id(x) not in self._modules:  # an attribute or item of something: who knows what is read of it
            for name, item in [*vars(x).items()]:
                self._push(label, imported(item), name)

    def _attributes(self, label: str, held: dict[str, Any], kind: type = object) -> None:
        if reads_itself(kind):
            self._whole(label, held)
            return
        self._add(Attributes(label, held, kind))
        for name, item in list(held.items()):
            self._push(label, item, name)

    def _items(self, label: str, x: Any) -> None:
        place = Items(label, x)
        self._add(place)
        for item in place.found():
            self._push(label, item)

    def _array(self, label: str, x: Any) -> None:
        place = Array(label, x if type(x) is np.ndarray else x.view(np.ndarray), self._known.get(id(x)))
        self._add(place)
        base = x.base
        while isinstance(base, np.ndarray):
            self._bases[id(base)] = base
            base = base.base
        for item in place.found():
            self._push(label, item)
        if type(x) is not np.ndarray and type(held := getattr(x, "__dict__", None)) is dict:  # with a mask
            self._whole(label, held)

    def _callable(self, x: Any) -> None:
        """Have the trace watched if a function or class of a library, or of C, may read what is not seen here."""
        from .purity import may_be_impure, module_of  # on first use

        if may_be_impure(x):
            module = module_of(x)
            self.reaches_out = True
            self.fleeting |= module.startswith(("random", "numpy.random"))  # whose state is looked at
            if module == "os":
                self._push("the environment", os.environ._data)  # type: ignore[attr-defined]  # the dict in it

    def _class(self, x: type) -> None:
        if is_library(x):
            self._callable(x)
            return
        place = Class(f"an attribute of {x.__name__}", x)
        self._add(place)
        for part in (*x.__bases__, type(x)):
            self._push(place.label, part)
        for member in x.__members__.values() if issubclass(x, enum.Enum) else ():
            self._push(place.label, member)
            self._push(place.label, member.value)
        for name, value in place.before:
            if type(value) is property:
                for accessor in (value.fget, value.fset):
                    self._push(place.label, accessor, name)
                continue
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            elif name.startswith("__") and type(value) is not FunctionType:
                continue
            by = x.__name__ if name in _MAKES else None if name.startswith("__") else name
            self._push(place.label, value, by)

    def _instance(self, label: str, x: Any) -> None:
        attributes = getattr(x, "__dict__", None)
        kind = type(x)
        if is_library(kind) and not isinstance(x, holders()):
            self._of_a_library(label, x, attributes)
            return
        self._add(TypeOf(f"the class of a {kind.__name__}", x))
        if type(attributes) is dict:
            self._attributes(f"an attribute of a {kind.__name__}", attributes, kind)
        if has_slots(kind):
            self._slots(f"an attribute of a {kind.__name__}", x, whole=reads_itself(kind))  # type: ignore[arg-type]
        self._push(label, kind)

    def _of_a_library(self, label: str, x: Any, attributes: Any) -> None:
        """Watch an object of an installed package, which reads its own attributes whatever the user's code names."""
        self._callable(type(x))
        if callable(x) and (wrapped := getattr(x, "__wrapped__", None)) is not None:  # functools.lru_cache
            self._push(label, wrapped)
            if hasattr(x, "cache_info"):
                place = Cached(label, x)
                self._add(place)
                for item in place.found():
                    self._push(label, item)
            return
        root = type(x).__module__.partition(".")[0]
        if root == "pyop" or root in sys.stdlib_module_names or self._of_libraries > _MOST_OF_LIBRARIES:
            held = attributes if type(attributes) is dict else {}
            self._add(Attributes(f"an attribute of a {type(x).__name__}", held, type(x)))
            for item in held.values():
                if type(item) in (FunctionType, MethodType):  # of a cached_property
                    self._push(label, item)
            return
        self._of_libraries += 1
        if type(attributes) is dict:
            self._whole(f"an attribute of a {type(x).__name__}", attributes)
        if has_slots(type(x)):
            self._slots(f"an attribute of a {type(x).__name__}", x, whole=True)

    def _whole(self, label: str, attributes: dict[str, Any]) -> None:
        """Watch attributes that are read whatever the code names."""
        self._add(Items(label, attributes))
        for item in attributes.values():
            self._push(label, item)

    def _slots(self, label: str, x: Any, whole: bool) -> None:
        place = Slots(label, x, whole)
        self._add(place)
        for name, item in place.before:
            self._push(label, item, None if whole else name)

    @property
    def unseen(self) -> bool:
        """Return whether the function may read, or change, what is not looked at."""
        return self.fleeting or self.reaches_out or self.overflown

    # --- after a trace

    def renewed(self, changed: bool) -> Watch:
        """Return one that has seen what the trace has made and imported, too."""
        return Watch(*self._made_of) if changed or any(path in sys.modules for path in self._unloaded) else self

    def changed(self) -> list[Place]:
        """Return the places that are not as they were; random numbers are left out."""
        return [place for place in self.places if place.changed()]

    def can_be_restored(self, changed: list[Place]) -> bool:
        """Return whether these places can be made what they were; not caches, whose results may have been written."""
        return not self.goes_on and not any(isinstance(place, (Cached, Referent)) for place in changed)

    def left_behind(self) -> list[str]:
        """Return the labels of the places where the trace has put symbolic arrays, which mean nothing after it."""
        from .left_behind import holds_symbolic  # on first use

        return [place.label for place in self.changed() if any(map(holds_symbolic, place.found()))]

    def state(self) -> list[Any]:
        """Return what the places hold now, for `restore`; random numbers are left out."""
        return [place.now() for place in self.places]

    def differing(self, state: list[Any]) -> list[Place]:
        """Return the places that hold something else than at `state`."""
        return [place for place, held in zip(self.places, state, strict=True) if place.differs(held)]

    def restore(self, state: list[Any] | None = None) -> None:
        """Put everything back as it was before the trace, or the places as at `state`; what cannot be set stays."""
        if state is None:
            places: list[Place | Generator] = [*self.places, *self.generators]
            state = [place.before for place in places]
        else:
            places = [*self.places]
        for place, value in zip(places, state, strict=True):
            if place.differs(value):
                with contextlib.suppress(Exception):  # of classes that do not let it be set
                    place.put(value)

    # --- for the calls to come

    def read(self) -> tuple[list[int], frozenset[str] | None]:
        """Return the ids of what the function may read, going by the names in its code; and these names (None: all)."""
        if self._read is not None:
            return self._read
        names: set[str] = set()
        waiting: dict[str, list[int]] = {}
        found: dict[int, None] = {}
        pending = [0]
        dynamic = False
        while pending:
            at = pending.pop()
            if at in found:
                continue
            found[at] = None
            code = facts(self._functions[at].__code__) if at in self._functions else None
            new: frozenset[str] = frozenset() if code is None else code.names - names
            names |= new
            if (code is not None and code.dynamic) or type(self._seen.get(at)) in _BY_NAME:
                dynamic = True
            if waiting:
                for name in [*waiting] if dynamic else [*(new & waiting.keys())]:
                    pending.extend(waiting.pop(name))
            for by, x in self._reached.get(at, ()):
                if by is None or by in names or (dynamic and by is not _NEVER):
                    pending.append(x)
                elif by is not _NEVER:
                    waiting.setdefault(by, []).append(x)
        self._read = [*found], None if dynamic else frozenset(names)
        return self._read

    def holds(self, x: Any) -> bool:
        """Return whether the function can reach an object, or an array that shows it."""
        return self._seen.get(id(x), self._bases.get(id(x))) is x

    def reached(self) -> list[Any]:
        """Return the objects that the function can reach."""
        return [*self._seen.values()]

    def functions(self) -> list[FunctionType]:
        """Return the user's functions that may run; of the special methods, none but ``__call__``."""
        found = [self._functions[at] for at in self.read()[0] if at in self._functions]
        return [fn for fn in found if not fn.__name__.startswith("__") or fn.__name__ == "__call__"]

    def readings(self, own: Own) -> list[Reading]:
        """Return what to compare at each call of a plan; `own` is what the function itself changes."""
        found, names = self.read()
        every: list[Reading] = []
        for at in found:
            if at in self._functions:
                every.extend(own.global_readings(self._functions[at]))
            for place in self._at.get(at, ()):
                try:
                    rows: list[Reading] = [*own.readings(place, names)]
                except Exception:  # as above
                    continue
                every.extend(rows)
        return every
