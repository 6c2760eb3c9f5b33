"""Define the entries of a declared shape that are neither a number nor a symbolic size."""

from __future__ import annotations

from types import EllipsisType
from typing import NoReturn, TypeAlias

from .dim import Dim

__all__ = ["Broadcast", "DimLike", "Late", "Mark", "Optional", "Variadic", "is_open"]


class Mark:
    """Represent a named entry of a shape; the subclasses are the kinds of entry."""

    __slots__ = ("name",)

    name: str
    _template = "{}"

    def __init__(self, name: str) -> None:
        Dim(name)  # the same rules for names, and the same errors
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Mark) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __str__(self) -> str:
        return self._template.format(self.name)


class Variadic(Mark):
    """Represent ``*batch``: any number of dimensions, the same ones wherever the name stands."""

    __slots__ = ()
    _template = "*{}"


class Late(Mark):
    """Represent ``n!``, a size that is known only after the call; ``Late()``, written ``_!``, has an empty name."""

    __slots__ = ()
    _template = "{}!"

    def __init__(self, name: str = "") -> None:
        if name == "":
            object.__setattr__(self, "name", "")
        else:
            super().__init__(name)

    def __str__(self) -> str:
        return f"{self.name or '_'}!"


class Optional(Mark):
    """Represent ``n?`` of a gufunc declaration: a core dimension that an argument may lack."""

    __slots__ = ()
    _template = "{}?"


class Broadcast(Mark):
    """Represent ``n|1`` of a gufunc declaration: a core dimension of size n or 1."""

    __slots__ = ()
    _template = "{}|1"


DimLike: TypeAlias = int | Dim | Mark | EllipsisType | None


def is_open(dim: DimLike) -> bool:
    """Return whether a dim stands for any number of dimensions."""
    return dim is Ellipsis or isinstance(dim, Variadic)
