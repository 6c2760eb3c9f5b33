"""Find what the body of a loop reaches beside its variables, and whether all it does is compute.

Items of lists and dicts and attributes of objects are *places*: the loop treats each as one more variable, under a
name of its own. Objects are those of classes written in Python that look their attributes up as Python does; what
counts of them are the methods and attributes whose names occur in the code that is reached.
"""

from __future__ import annotations

from abc import ABCMeta
from collections import deque
from types import BuiltinFunctionType, FrameType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .._core import Value
from ..declare.dim import Dim
from ..graph.counter import is_counter
from ..graph.symbolic_number import is_number
from ..tracing.twins import StandIn
from .growing import GrowingList
from .sites import BODY, Site, instructions, is_jump

__all__ = ["Place", "Surroundings", "layout_of"]

_MOST = 256  # places; and as many objects
_DEEPEST = 32  # containers in containers
_LARGEST_SET = 1 << 9
_LARGE = 1 << 20  # bytes of an array of the user's that are not worth looking at
_CONSTANTS = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), np.generic, np.dtype, Dim)
_BUILTINS = frozenset((abs, min, max, sum, len, divmod, pow, round))
_TYPES = frozenset((float, int, complex, bool, slice, tuple, list, range, frozenset, deque))
_KEYS = frozenset((str, int, bool, bytes, type(None)))
_LIBRARIES = frozenset(("numpy", "math"))
_WRITES = frozenset(("STORE_SUBSCR", "STORE_SLICE", "KW_NAMES", "CALL_KW", "CALL_FUNCTION_EX"))
_PURE = BODY | {"RETURN_VALUE", "RETURN_CONST", "MAKE_CELL"}
_LOOKED_UP = frozenset(("__getattr__", "__getattribute__", "__setattr__", "__delattr__"))
# Methods that no instruction of a body calls.
_NEVER = frozenset(
    f"__{name}__"
    for line in (
        "init new post_init repr str format hash del sizeof dir reduce reduce_ex getstate setstate getnewargs copy",
        "deepcopy replace init_subclass class_getitem subclasshook annotate fspath enter exit aenter aexit await",
    )
    for name in line.split(" ")
)
_DATA = frozenset(
    f"__{name}__"
    for line in (
        "module doc dict weakref slots annotations dataclass_fields dataclass_params match_args hash abstractmethods",
        "parameters orig_bases static_attributes firstlineno qualname annotate_func annotations_cache type_params",
        "classdict classdictcell conditional_annotations",
    )
    for name in line.split(" ")
)
_LENGTH, _BEGIN = vars(GrowingList)["length"], vars(GrowingList)["begin"]
_Key = Any


class Place(NamedTuple):
    """Hold where a name is: an item of a list or dict, or an attribute."""

    owner: Any
    key: _Key
    slot: Any = None  # the descriptor of an attribute in a slot

    def read(self) -> Any:
        if self.slot is not None:
            return self.slot.__get__(self.owner)
        return self.owner[self.key] if type(self.owner) in (list, dict) else vars(self.owner)[self.key]

    def write(self, x: Any) -> None:
        if self.slot is not None:
            self.slot.__set__(self.owner, x)
        elif type(self.owner) in (list, dict):
            self.owner[self.key] = x
        else:
            vars(self.owner)[self.key] = x


class Surroundings:
    """Find what a body reaches: `arrays`, each with its bytes, and places, by their names."""

    def __init__(self, site: Site, frame: FrameType, now: dict[str, Any]) -> None:
        self.arrays: list[tuple[np.ndarray[Any, Any], bytes]] = []
        self.places: dict[str, Place] = {}
        self.names = set(site.code.co_names)
        self._seen: set[int] = set()
        self._owners: list[Any] = []  # of places
        self._objects: list[Any] = []
        self._classes: list[type] = []
        self._done: set[tuple[int, str]] = set()
        self._kept: list[Any] = []
        self._depth = 0  # of containers in containers
        self._lists: list[GrowingList] = []
        used = [now[name] for name in site.read if name in now]
        used += [_in_frame(frame, name) for name in site.globals_read()]
        self.only_computes = all(map(self._add, used)) and self._closed()
        self._layouts = [(owner, layout_of(owner)) for owner in self._owners]

    # --- as variables

    def now(self) -> dict[str, Any]:
        """Return what is at the places."""
        return {name: place.read() for name, place in self.places.items()}

    @property
    def are_the_same(self) -> bool:
        """Return whether no list is longer, no key or attribute came or went, and no array has other elements."""
        return self.has_same_layout and all(x.tobytes() == held for x, held in self.arrays)

    @property
    def has_same_layout(self) -> bool:
        """Return whether no list is longer, and no key or attribute came or went."""
        return all(layout_of(owner) == layout for owner, layout in self._layouts)

    def put(self, wanted: dict[str, Any]) -> None:
        """Have the places hold what is in `wanted`."""
        for name, place in self.places.items():
            place.write(wanted[name])

    def restore(self, wanted: dict[str, Any]) -> None:
        """Put back places and layout, after an iteration that was not to its end, or has made another layout."""
        for owner, layout in self._layouts:
            if type(owner) is list:
                owner[layout:] = []
                owner += [None] * (layout - len(owner))
            elif type(owner) is dict:
                owner.clear()
                owner.update(dict.fromkeys(layout))
            elif type(owner) is set:
                owner.clear()
                owner.update(layout)
            else:
                for name in layout_of(owner) - layout:
                    object.__delattr__(owner, name)
        self.put(wanted)

    def looks_at(self, x: GrowingList) -> bool:
        """Return whether the length of a list is among the places."""
        return any(x is known for known in self._lists)

    def reaches(self, x: Any) -> bool:
        """Return whether a container or object was there before the loop."""
        return id(x) in self._seen

    def length_of(self, x: GrowingList) -> str:
        """Return the name of the place that is the length of a list."""
        return next(name for name, place in self.places.items() if place.owner is x)

    # --- what is reached

    def _add(self, x: Any) -> bool:
        """Add what this reaches; return whether using it leaves nothing behind an iteration.

        Reading, indexing and calling it may write into Values and places, and do nothing else.
        """
        kind = type(x)
        if kind is Value or is_number(x) or is_counter(x) or issubclass(kind, _CONSTANTS):
            return True
        if kind is StandIn or getattr(kind, "_pyop_computes", False):
            return True
        if kind is np.ndarray:
            return self._add_array(x)
        if kind is GrowingList:
            new = self._is_new(x) and self._add_place(x, "length", _LENGTH) and self._add_place(x, "begin", _BEGIN)
            self._lists += [x] if new else []
            return self.looks_at(x)
        if kind is tuple or kind is list or kind is dict:
            if self._depth == _DEEPEST:
                return False
            self._depth += 1
            found = all(map(self._add, x)) if kind is tuple else self._add_container(x)
            self._depth -= 1
            return found
        if kind is set or kind is frozenset:
            return self._add_set(x)
        if issubclass(kind, ModuleType):
            return x.__name__.partition(".")[0] in _LIBRARIES and "random" not in x.__name__
        if kind is type:
            return x in _TYPES or issubclass(x, np.generic) or hasattr(x, "_pyop_computes")
        if isinstance(x, np.ufunc):
            return True
        if kind is FunctionType and not (x.__module__ or "").startswith("numpy"):
            return self._add_function(x)
        if kind is BuiltinFunctionType and x in _BUILTINS:
            return True
        if kind is MethodType:
            return type(x.__func__) is FunctionType and self._add_function(x.__func__) and self._add(x.__self__)
        owner = getattr(x, "__module__", None) or ""
        if owner.partition(".")[0] in _LIBRARIES and "random" not in owner and callable(x):
            return not isinstance(x, type)
        return self._add_object(x)

    def _add_array(self, x: Any) -> bool:
        if x.nbytes > _LARGE or x.dtype.hasobject:
            return False
        if self._is_new(x):
            self.arrays.append((x, x.tobytes()))
        return True

    def _is_new(self, x: Any) -> bool:
        if id(x) in self._seen:
            return False
        self._seen.add(id(x))
        self._kept.append(x)
        return True

    def _add_place(self, owner: Any, key: _Key, slot: Any = None) -> bool:
        place = Place(owner, key, slot)
        self.places[f"{len(self.places)}:{key}"] = place
        return len(self.places) <= _MOST and self._add(place.read())

    def _add_container(self, x: Any) -> bool:
        if not self._is_new(x):
            return True
        self._owners.append(x)
        keys = range(len(x)) if type(x) is list else list(x)
        return len(keys) <= _MOST and all(type(key) in _KEYS and self._add_place(x, key) for key in keys)

    def _add_set(self, x: Any) -> bool:
        """Add a set; return whether it is small and holds only constants. An added one changes its layout."""
        if self._is_new(x) and type(x) is set:
            self._owners.append(x)
        return len(x) <= _LARGEST_SET and all(map(_is_constant, x))

    def _add_object(self, x: Any) -> bool:
        cls = type(x)
        if not self._is_new(x):
            return True
        self._owners.append(x)
        self._objects.append(x)
        if cls not in self._classes:
            self._classes.append(cls)
        return len(self._objects) <= _MOST and all(map(_is_written_in_python, cls.__mro__[:-1]))

    def _add_function(self, fn: FunctionType) -> bool:
        if not self._is_new(fn):
            return True
        code = fn.__code__
        if getattr(code, "co_exceptiontable", b"") or code.co_flags & 0x2A0 or fn.__dict__:
            return False
        ops = instructions(code)
        if not all(op.opname in _PURE or is_jump(op) or "_FAST" in op.opname for op in ops):
            return False
        if any(map(_is_special, code.co_names)):
            return False  # it may ask for the class, or for all attributes
        self.names.update(code.co_names)
        read = [_global(fn.__globals__, op.argval) for op in ops if op.opname == "LOAD_GLOBAL"]
        try:
            read += [cell.cell_contents for cell in fn.__closure__ or ()]
        except ValueError:
            return False  # a variable that is not bound yet
        read += [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
        writes = any(op.opname in _WRITES for op in ops)
        return all(self._add(x) for x in read if writes or type(x) is not np.ndarray)

    def _closed(self) -> bool:
        """Follow the names that occur to attributes and methods, which have further names."""
        before = -1
        while before != len(self._done):
            before = len(self._done)
            for x in list(self._objects):
                slots = _slots(type(x))
                for name in list(self.names):
                    if (id(x), name) in self._done or (name not in slots and name not in getattr(x, "__dict__", ())):
                        continue
                    self._done.add((id(x), name))
                    if not (name in slots and not _is_set(slots[name], x)) and not self._add_place(
                        x, name, slots.get(name)
                    ):
                        return False
            for cls in list(self._classes):
                for base in cls.__mro__[:-1]:
                    for name, item in list(vars(base).items()):
                        if (id(base), name) in self._done or not (_is_special(name) or name in self.names):
                            continue
                        self._done.add((id(base), name))
                        if not self._add_of_class(base, name, item):
                            return False
        return not self._objects or not any(map(_is_special, self.names))

    def _add_of_class(self, cls: type, name: str, item: Any) -> bool:
        if _is_special(name):
            if name in _NEVER or name in _DATA:
                return True
            if type(item) is not FunctionType or name in _LOOKED_UP:
                return type(item) is FunctionType and _is_of_dataclass(cls, item)
            return _is_of_dataclass(cls, item) or self._add_function(item)
        if type(item) is property:
            return all(
                type(f) is FunctionType and self._add_function(f) for f in (item.fget, item.fset, item.fdel) if f
            )
        if type(item) is staticmethod:
            return self._add(item.__func__)
        if type(item) is MemberDescriptorType:
            return True
        if type(item) is FunctionType:
            return self._add_function(item)
        return not hasattr(type(item), "__get__") and self._add(item)


def layout_of(owner: Any) -> Any:
    """Return how long a list is, or which keys, items of a set or attributes there are."""
    if type(owner) is list:
        return len(owner)
    if type(owner) is set:
        return frozenset(owner)
    if type(owner) is dict:
        return tuple(owner)
    found = set(getattr(owner, "__dict__", ()))
    return found | {name for name, slot in _slots(type(owner)).items() if _is_set(slot, owner)}


def _is_constant(x: Any) -> bool:
    return all(map(_is_constant, x)) if type(x) is tuple else issubclass(type(x), _CONSTANTS)


def _slots(cls: type) -> dict[str, Any]:
    return {
        name: item
        for base in reversed(cls.__mro__)
        for name, item in vars(base).items()
        if type(item) is MemberDescriptorType
    }


def _is_set(slot: Any, x: Any) -> bool:
    try:
        slot.__get__(x)
    except AttributeError:
        return False
    return True


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and not name.startswith("__pyop_")


def _is_written_in_python(cls: type) -> bool:
    return type(cls) in (type, ABCMeta) and cls.__flags__ & 1 << 9 != 0 and cls.__module__.partition(".")[0] != "numpy"


def _is_of_dataclass(cls: type, item: Any) -> bool:
    """Return whether `dataclasses` has made a method, which only compares, or refuses to be set."""
    return "__dataclass_fields__" in vars(cls) and item.__code__.co_filename == "<string>"


def _global(scope: Any, name: str) -> Any:
    try:
        return scope[name]
    except KeyError:
        found = scope["__builtins__"]
        found = found if isinstance(found, dict) else vars(found)
        return found.get(name)


def _in_frame(frame: FrameType, name: str) -> Any:
    try:
        return frame.f_globals[name]
    except KeyError:
        return frame.f_builtins.get(name)
