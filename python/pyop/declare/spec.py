"""Define `Spec`: dtype and shape of one array, declared or known of a symbolic value."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from types import EllipsisType
from typing import Any, NoReturn

import numpy as np

from .dim import MAX_SIZE, Dim
from .dtype_text import AnyDType, as_dtype, dtype_name
from .marks import Broadcast, DimLike, Late, Mark, Optional, Variadic, is_open

__all__ = ["Broadcast", "Late", "Optional", "Spec", "Variadic"]


class Spec:
    """Describe the dtype and shape of one array.

    Parameters
    ----------
    dtype : dtype, str or None
        Anything that names a NumPy dtype, or a type variable such as ``"T"``; None for any dtype. Byte order is not
        part of a declaration: a foreign one becomes native.
    shape : iterable or None
        One entry a dimension: an int, a `Dim`, None (any size), ``...`` or `Variadic` (any number of dimensions, at
        most one of them), `Late` (known only after the call), or the text of one of these. None: rank unknown.

    Examples
    --------
    >>> spec = Spec.parse("float64[n, n+1]")
    >>> spec.dtype, spec.ndim, str(spec)
    (dtype('float64'), 2, 'float64[n,n+1]')
    >>> str(Spec("T", (Dim("n"), None))), str(Spec(np.float32)), str(Spec())
    ('T[n,_]', 'float32', '_')
    """

    __slots__ = ("_hash", "dtype", "shape")

    dtype: AnyDType | str | None
    shape: tuple[DimLike, ...] | None
    _hash: int  # made when first asked for

    def __init__(self, dtype: Any = None, shape: Iterable[Any] | None = None) -> None:
        _set_dtype(self, as_dtype(dtype))
        _set_shape(self, None if shape is None else _as_shape(shape))

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read a spec from text, such as ``"float64[n, 3]"``.

        Parameters
        ----------
        text : str

        Returns
        -------
        Spec

        Raises
        ------
        ValueError
            Wrong text; the message points at the character.

        Examples
        --------
        >>> Spec.parse("f4[*batch, 2*n]")
        Spec('float32[*batch,2*n]')
        >>> Spec.parse("float64[n, +]")
        Traceback (most recent call last):
            ...
        ValueError: expected a size (3, n, n+1), '_', '...', '*name' or 'name!', got '+'
            float64[n, +]
                       ^
        """
        from .spec_text import Cursor, read_spec  # on first use, as in `_as_dim`: what is compiled has no text

        cursor = Cursor(text)
        (dtype, shape), _ = read_spec(cursor)
        if not cursor.at_end():
            raise cursor.unexpected("the end of the spec" if shape is not None else "'[' or the end of the spec")
        return cls(dtype, shape)

    @classmethod
    def of(cls, value: Any) -> Spec:
        """Return the spec of an example: an array, or anything that ``np.asarray`` turns into one.

        Parameters
        ----------
        value : array_like

        Returns
        -------
        Spec
            Of its dtype and its exact shape.

        Examples
        --------
        >>> Spec.of(np.zeros((2, 3))), Spec.of(1.5)
        (Spec('float64[2,3]'), Spec('float64[]'))
        """
        if isinstance(value, Spec):
            return value
        if not (hasattr(value, "dtype") and hasattr(value, "shape")) or isinstance(value, type):
            value = np.asarray(value)
        return cls(value.dtype, value.shape)

    @classmethod
    def make(cls, obj: Any) -> Spec:
        """Return a spec from any of its spellings: text, dtype, scalar type, ``(dtype, shape)``, example array, Spec.

        Parameters
        ----------
        obj : str, dtype, type, tuple, array or Spec
            None is a spec of which nothing is known.

        Returns
        -------
        Spec

        Raises
        ------
        ValueError
            Wrong text; the message points at the character.
        TypeError
            None of these.

        Examples
        --------
        >>> Spec.make("float64[n]"), Spec.make(np.int32), Spec.make(("f8", (3, "n"))), Spec.make(np.ones(2))
        (Spec('float64[n]'), Spec('int32'), Spec('float64[3,n]'), Spec('float64[2]'))
        """
        if isinstance(obj, Spec):
            return obj
        if isinstance(obj, str):
            return cls.parse(obj)
        if obj is None:
            return cls()
        if isinstance(obj, np.dtype | type):
            return cls(obj)
        if isinstance(obj, tuple) and len(obj) == 2:
            return cls(*obj)
        if hasattr(obj, "dtype") and hasattr(obj, "shape"):
            return cls(obj.dtype, obj.shape)
        raise TypeError(
            "expected a spec: text such as 'float64[n]', a dtype, a (dtype, shape) pair, an example array or a Spec, "
            f"got {type(obj).__name__} {obj!r:.80}"
        )

    @property
    def ndim(self) -> int | None:
        """Return the number of dimensions; None if it is not fixed."""
        return None if self.shape is None or any(map(is_open, self.shape)) else len(self.shape)

    @property
    def text(self) -> bool:
        """Return whether the spec is of text of any length: dtype ``str`` with no size of its own."""
        return isinstance(self.dtype, np.dtype) and self.dtype.kind == "U" and self.dtype.itemsize == 0

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Spec is immutable: cannot set {name!r}; make a new one")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Spec):
            return NotImplemented
        # A dtype compared with text would be compared with what NumPy reads in the text.
        same_kind = isinstance(self.dtype, np.dtype) == isinstance(other.dtype, np.dtype)
        return same_kind and self.shape == other.shape and bool(self.dtype == other.dtype)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.dtype, self.shape)))
            return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Spec, (self.dtype, self.shape)

    def __str__(self) -> str:
        text = dtype_name(self.dtype)
        if self.shape is None:
            return text
        if text in ("datetime64", "timedelta64"):
            text += "[generic]"  # or "[s]", a dim named s, would read as a unit
        return f"{text}[{','.join(map(dim_text, self.shape))}]"

    def __repr__(self) -> str:
        return f"Spec({str(self)!r})"


_slots: Any = Spec  # as descriptors, which is what the class has of them
_set_dtype, _set_shape = _slots.dtype.__set__, _slots.shape.__set__


def dim_text(dim: DimLike) -> str:
    """Return the text of one entry of a shape."""
    return "_" if dim is None else "..." if dim is Ellipsis else str(dim)


def _as_shape(shape: Iterable[Any]) -> tuple[DimLike, ...]:
    if isinstance(shape, str):
        raise TypeError(f"a shape is a sequence of sizes, got the text {shape[:80]!r}; use Spec.parse for text")
    if type(shape) is tuple:  # that of an array: graphs make Specs by the thousand
        for dim in shape:
            if type(dim) is not int or not 0 <= dim <= MAX_SIZE:
                break
        else:
            return shape
    try:
        entries = tuple(shape)
    except TypeError:
        raise TypeError(f"a shape is a sequence of sizes, got {type(shape).__name__} {shape!r:.80}") from None
    dims: list[DimLike] = []
    n_open = 0
    for dim in entries:
        if dim is not None and type(dim) is not Dim and not (type(dim) is int and 0 <= dim <= MAX_SIZE):
            dim = _as_dim(dim)
            n_open += is_open(dim)
        dims.append(dim)
    if n_open > 1:
        raise ValueError(f"a shape has at most one '...' or '*name', got {', '.join(map(dim_text, dims))}")
    return tuple(dims)


def _as_dim(entry: Any) -> DimLike:
    if entry is None or isinstance(entry, Dim | Mark | EllipsisType):
        return entry
    if isinstance(entry, str):
        from .spec_text import Cursor, read_dim

        cursor = Cursor(entry)
        cursor.skip()
        dim = read_dim(cursor)
        if not cursor.at_end():
            raise cursor.unexpected("the end of the size")
        return dim
    try:
        size = operator.index(entry)
    except TypeError:
        raise TypeError(
            "a size is an int, a Dim, None, ..., Variadic or Late, or the text of one, "
            f"got {type(entry).__name__} {entry!r:.80}"
        ) from None
    if not 0 <= size <= MAX_SIZE:
        hint = "; an unknown size is None" if size == -1 else ""
        raise ValueError(f"a size is from 0 to 2**63-1, got {size}{hint}")
    return size
