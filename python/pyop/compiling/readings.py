"""What a traced function has read beside its arguments, for the comparison that every later call makes.

A plan has the numbers of the trace in it. Where a global, a variable of the closure, an attribute, an item of a list or
dict, or an element of an array is another one later, the plan is dropped and the function traced again; see
csrc/plan/captured.h.

What is not compared, because it would cost more than a call: sets, lists and dicts of more than 512 items together,
arrays of more than 64 KiB together or not in one piece of memory, and what only objects of installed packages hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .captured import MISSING, Watch, is_library

__all__ = ["Reading", "readings"]

# Kind, owner, name and value, as csrc/plan/captured.h says of each kind.
Reading = tuple[bytes, Any, str, Any]

_MOST_ITEMS = 512
_MOST_BYTES = 1 << 16
_FIXED = (ModuleType, BuiltinFunctionType, BuiltinMethodType, np.ufunc)
_METHODS = (FunctionType, property, staticmethod, classmethod)


def readings(watch: Watch) -> tuple[Reading, ...]:
    """Return what to compare at each call of a plan.

    Parameters
    ----------
    watch : Watch
        Of the function, after its trace.
    """
    return (*_names(watch), *_cells(watch), *_attributes(watch), *_items(watch), *_arrays(watch))


def _is_fixed(value: Any) -> bool:
    """Whether nobody binds the name of it anew: a module, a function or class of a library."""
    if value is MISSING or value is Ellipsis or isinstance(value, _FIXED):
        return True
    return isinstance(value, (type, FunctionType)) and is_library(value)


def _names(watch: Watch) -> Iterator[Reading]:
    for known, names in watch.globals_read:
        for name in names:
            value = known.get(name, MISSING)
            if not _is_fixed(value):
                yield b"n", known, name, value


def _cells(watch: Watch) -> Iterator[Reading]:
    for place in watch.cells():
        value = place.now()
        if not _is_fixed(value):
            yield b"c", place.owner, place.name, value


def _attributes(watch: Watch) -> Iterator[Reading]:
    names = watch.names()
    for attributes in watch.instances:
        for name in names.intersection(attributes):
            if attributes[name] is not Ellipsis:
                yield b"n", attributes, name, attributes[name]
    for kind in watch.classes:
        for name in names.intersection(vars(kind)):
            value = vars(kind)[name]
            if not name.startswith("__") and not isinstance(value, _METHODS) and value is not Ellipsis:
                yield b"t", kind, name, value


def _items(watch: Watch) -> Iterator[Reading]:
    room = _MOST_ITEMS
    for place in watch.containers():
        held = place.now()
        room -= len(held)
        if room < 0:
            return
        flat = tuple(x for pair in held for x in pair) if isinstance(place.owner, dict) else tuple(held)
        yield b"i", place.owner, place.label, flat


def _arrays(watch: Watch) -> Iterator[Reading]:
    room = _MOST_BYTES
    for place in watch.arrays():
        array = place.owner
        if array.dtype.hasobject or not array.flags.forc:
            continue
        room -= array.nbytes
        if room < 0:
            return
        yield b"b", array, place.label, array.tobytes("A")
