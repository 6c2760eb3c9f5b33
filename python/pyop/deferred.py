"""Load methods of the core's types at their first use; most programs never need them.

Three more things are not loaded with pyop: public names (`pyop.__getattr__`), up-calls (`up_calls.py`), and modules
that a rarely called function imports in its body.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["methods_of"]


class _Deferred:
    """Stand for a method until its first use, when the module that defines it puts the method in its place."""

    def __init__(self, kind: type, name: str, module: str) -> None:
        self.kind, self.name, self.module = kind, name, module

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        importlib.import_module(self.module)
        if vars(self.kind)[self.name] is self:
            raise AttributeError(f"{self.module} has not defined {self.kind.__name__}.{self.name}")
        attribute = vars(self.kind)[self.name]  # not by getattr, which a stand-in may answer as what it stands for does
        return attribute.__get__(instance, owner) if hasattr(attribute, "__get__") else attribute


def methods_of(kind: Any, module: str, *names: str) -> None:
    """Register methods of a type that a module sets when it is imported.

    >>> from pyop.deferred import methods_of
    >>> class Kind: ...
    >>> methods_of(Kind, "pyop.graph.explain", "f")
    >>> Kind.f
    Traceback (most recent call last):
    AttributeError: pyop.graph.explain has not defined Kind.f
    """
    for name in names:
        setattr(kind, name, _Deferred(kind, name, module))
