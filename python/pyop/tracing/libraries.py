"""Tell what belongs to the user and what to installed packages, whose state is their own business."""

from __future__ import annotations

import functools
import sys
import types
from collections import ChainMap, UserDict, UserList
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from .names import of_loaded

__all__ = ["REACH_OUT", "buffers", "has_slots", "holders", "is_installed", "is_library", "reads_itself"]

# Builtins that read or run what is not among their arguments.
REACH_OUT = frozenset(("open", "input", "eval", "exec", "compile", "__import__", "breakpoint", "globals"))
_OURS = frozenset(("numpy", "scipy", "pyop", "builtins")) | sys.stdlib_module_names
# Attributes that nobody but the user's code reads.
_BARE = frozenset((object, SimpleNamespace))
_MORE_BARE = ("argparse.Namespace", "threading.local")
_HOLDERS: tuple[type, ...] = (SimpleNamespace, UserDict, UserList, ChainMap, WeakKeyDictionary, WeakValueDictionary)
_MORE_HOLDERS = ("argparse.Namespace", "threading.local", "queue.Queue")
_BUFFERS: tuple[type, ...] = (bytearray, memoryview)
_MORE_BUFFERS = ("array.array", "mmap.mmap", "ctypes.Array", "ctypes.Structure")
_BARE_MODULES = frozenset(("abc", "typing", "enum", "collections.abc", "typing_extensions", "builtins"))


@functools.lru_cache(maxsize=4096)
def is_installed(root: str) -> bool:
    """Return whether a package was installed: then its functions and objects are not the user's to change.

    `__main__` never was, though its file may lie among packages: what runs a program (pytest, a debugger) may be that
    module.
    """
    path = getattr(sys.modules.get(root), "__file__", None) or ""
    return root in _OURS or (root != "__main__" and ("site-packages" in path or "dist-packages" in path))


def is_library(x: Any) -> bool:
    """Return whether an object was defined in an installed package."""
    module = getattr(x, "__module__", None)
    if module == "types" and getattr(types, getattr(x, "__name__", ""), None) is not x:  # dataclasses.make_dataclass
        return False
    return isinstance(module, str) and is_installed(module.partition(".")[0])


@functools.lru_cache(maxsize=1024)
def reads_itself(kind: type) -> bool:
    """Return whether code of a library, such as a base class, may read the attributes of instances of this class."""
    bare = _BARE.union(of_loaded(*_MORE_BARE))
    return any(part not in bare and part.__module__ not in _BARE_MODULES and is_library(part) for part in kind.__mro__)


def has_slots(kind: type) -> bool:
    return any("__slots__" in vars(part) for part in kind.__mro__)


def holders() -> tuple[type, ...]:
    """Return the classes of the standard library that are made to hold what is the user's."""
    return _HOLDERS + of_loaded(*_MORE_HOLDERS)


def buffers() -> tuple[type, ...]:
    """Return the classes whose instances are memory."""
    return _BUFFERS + of_loaded(*_MORE_BUFFERS)
