"""Make instances of the caller's classes that a file holds, without running code of the classes.

As in copy and pickle, the fields are set, and neither ``__init__`` nor ``__post_init__`` is called. An instance that
cannot be made so is refused, unless the caller has allowed code of the class's module to run.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from types import FunctionType, MemberDescriptorType
from typing import Any

__all__ = ["check_key", "make_dataclass"]


def make_dataclass(kind: type, given: dict[str, Any], path: str, may_run: Callable[[type], bool]) -> Any:
    """Return an instance of a dataclass with these fields; ValueError if it has others, or needs its own code."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in given:
        if name not in fields:
            raise ValueError(
                f"{path!r:.200} had the field {name!r:.80} when the graph was written, and no longer has it"
            )
    missing = [field for name, field in fields.items() if name not in given]
    own = [name for name in fields if _is_computed(inspect.getattr_static(kind, name, None))]
    if own or any(field.default is dataclasses.MISSING for field in missing):
        if may_run(kind):
            return kind(**{name: item for name, item in given.items() if fields[name].init})
        culprit = own[0] if own else next(f.name for f in missing if f.default is dataclasses.MISSING)
        raise ValueError(
            f"the field {culprit!r:.80} of {path!r:.200} is made by code of the class, and reading a graph runs "
            f"nothing: load(..., modules=[{kind.__module__!r}]) allows it"
        )
    made: Any = object.__new__(kind)
    for name, field in fields.items():
        object.__setattr__(made, name, given.get(name, field.default))
    return made


def _is_computed(attribute: Any) -> bool:
    """Return whether setting an attribute runs code: that of a property, not that of a slot."""
    return hasattr(type(attribute), "__set__") and not isinstance(attribute, MemberDescriptorType)


def check_key(key: Any, may_run: Callable[[type], bool]) -> Any:
    """Return a key of a dict or item of a set; ValueError if code of its class computes its hash."""
    if isinstance(key, tuple | frozenset):
        for item in key:
            check_key(item, may_run)
    if dataclasses.is_dataclass(key):
        for field in dataclasses.fields(key):
            check_key(getattr(key, field.name), may_run)
    method = type(key).__hash__
    # dataclass makes its own from text.
    own = isinstance(method, FunctionType) and method.__code__.co_filename != "<string>"
    if own and type(key).__module__.partition(".")[0] != "pyop" and not may_run(type(key)):
        raise ValueError(
            f"a {type(key).__qualname__} is the key of a dict or in a set, its hash is computed by code of its class, "
            f"and reading a graph runs nothing: load(..., modules=[{type(key).__module__!r}]) allows it"
        )
    return key
