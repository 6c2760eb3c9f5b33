"""Define an example of a batch, as a function under `vmap` sees it.

`batch_calls.py` applies NumPy's functions to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, TypeGuard

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .. import _core
from .._tree import flatten
from ..functions.surface import PRIORITY, SURFACE, Name
from ..refusals import refusal
from ..tracing.shown import shown_text
from .element_class import AMBIGUOUS, class_of_element

__all__ = ["EXAMPLES", "TAKE", "Batched", "BatchedArray", "BatchedScalar", "is_batched", "level_of"]

TAKE = "take numbers from what vmap returns, choose by value with np.where, or write a loop over the examples"
_PARTS = "use what the function returns, or put parts together with np.where, np.concatenate or np.stack"
_OF_ARRAYS = frozenset(name for name in SURFACE if not name.startswith("_") and not hasattr(np.generic, name))
_PROTOCOLS = frozenset(("__class__", "__array_ufunc__", "__array_function__", "__pandas_priority__", "__module__"))


class Batched(NDArrayOperatorsMixin):
    """Represent one example of a batch: an array, or a scalar, without the axis of the batch.

    The constructor returns a `BatchedArray` or a `BatchedScalar`, as NumPy has an array or a scalar there.
    """

    # `owned`: nothing else is over the memory of `array`, and no view of it was given away.
    __slots__ = ("array", "dim", "level", "owned")

    array: Any
    dim: int
    level: int
    owned: bool
    _pyop_example = True  # for pyop.compiling.arguments
    # Given by batch_calls.py, as the surface of an ndarray is.
    __array_ufunc__: Any
    __getitem__: Any

    def __new__(cls, array: Any, dim: int, level: int, scalar: bool = True, owned: bool = False) -> Any:
        self = object.__new__(BatchedScalar if scalar and array.ndim == 1 else BatchedArray)
        self.array, self.dim, self.level, self.owned = array, dim, level, owned
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one example."""
        shape: tuple[int, ...] = self.array.shape
        return shape[: self.dim] + shape[self.dim + 1 :]

    @property
    def ndim(self) -> int:
        """Return the number of dimensions of one example."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the dtype of all examples."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def batch_size(self) -> int:
        """Return the number of examples."""
        size: int = self.array.shape[self.dim]
        return size

    __array_priority__ = PRIORITY

    def example(self, i: int) -> Any:
        """Return example number `i`."""
        key: tuple[Any, ...] = (slice(None),) * self.dim + (i,)
        return self.array[key if type(self) is BatchedScalar or self.array.ndim > 1 else (*key, ...)]

    def __repr__(self) -> str:
        return shown_text(f"<one of {self.batch_size} examples of shape {self.shape}>")

    def __format__(self, spec: str) -> str:
        if spec:
            raise refusal(f"format {spec!r} needs a number, and an example under vmap has none of its own: {TAKE}")
        return repr(self)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise refusal("an example under vmap has no array of its own: use NumPy functions or a pyop.Function on it")

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(AMBIGUOUS)
        raise refusal("an example under vmap is neither true nor false: use np.where")

    def _number(self, what: str) -> NoReturn:
        if self.size != 1 or self.ndim > 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        raise refusal(f"{what} of an example under vmap was asked for, which has no number of its own: {TAKE}")

    def __float__(self) -> float:
        self._number("float()")

    def __int__(self) -> int:
        self._number("int()")

    def __complex__(self) -> complex:
        self._number("complex()")

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        self._number("an index")

    def __round__(self, ndigits: int | None = None) -> Any:
        if self.ndim:
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        if ndigits is None:
            self._number("round()")
        return np.round(self, ndigits)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise refusal("an example under vmap means nothing outside of its function: pickle what vmap returns")

    def _refuse_writing(self, what: str, remedy: str = _PARTS) -> NoReturn:
        raise refusal(
            f"{what} under vmap would write into an array in place, which its other names and its views, or the other "
            f"examples, would not see correctly: {remedy}"
        )

    def _refuse(self, what: str, entry: Name) -> NoReturn:
        """Raise for a name of an ndarray that no example has."""
        remedy = entry.remedy.format(x="x")
        if entry.sort == "write":
            self._refuse_writing(f"x.{what}", remedy or _PARTS)
        if entry.sort == "number":
            raise refusal(f"x.{what} of an example under vmap, which has no numbers of its own: {remedy or TAKE}")
        raise refusal(
            f"x.{what} of an example under vmap, which has no memory of its own: "
            f"{remedy or 'use a function of NumPy that returns an array'}"
        )

    @property
    def real(self) -> Any:
        """Return the real parts."""
        return self._like(np.real(self.array))

    @property
    def imag(self) -> Any:
        """Return the imaginary parts."""
        return self._like(np.imag(self.array))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the example in another dtype."""
        return self._like(self.array.astype(dtype, *args, **kwargs))

    def _like(self, array: Any) -> Any:
        """Return the example of an array made of all examples, perhaps a view of them."""
        self.owned = False
        return Batched(array, self.dim, self.level, type(self) is BatchedScalar)

    def __getattr__(self, name: str) -> Any:
        kind = np.ndarray if type(self) is BatchedArray else self.dtype.type
        if name.startswith("__") or not hasattr(kind, name):
            raise AttributeError(f"an example under vmap has no {name!r}, as {kind.__name__} has none")
        raise refusal(
            f"an example under vmap has no {name!r}: use a function of NumPy that returns an array", AttributeError
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("shape", "strides", "dtype", "data", "flat", "real", "imag"):
            self._refuse_writing(f"x.{name} = ...")
        object.__setattr__(self, name, value)


class BatchedArray(Batched):
    """Represent an example that is an array in NumPy."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # isinstance(x, np.ndarray) is to answer what it would for the example itself.
        return np.ndarray

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[k] for k in range(self.shape[0])])

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self == item))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refuse_writing("x[k] = v")

    def __delitem__(self, key: Any) -> None:
        raise ValueError("cannot delete array elements")


_core.match_as_array(BatchedArray)


class BatchedScalar(Batched):
    """Represent an example that is a scalar in NumPy."""

    __slots__ = ()

    # Else iter() and `in` would go by __getitem__, and np.iterable(x) be true.
    __iter__ = __contains__ = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return class_of_element(self.dtype)

    def __getattribute__(self, name: str) -> Any:
        get = object.__getattribute__
        private = name[:2] == "__" and name not in _PROTOCOLS
        if name in _OF_ARRAYS or (private and not hasattr(get(self, "dtype").type, name)):
            raise AttributeError(name)  # as a scalar of NumPy, which has no x.dot, x.__len__, x.__iadd__, x.__matmul__
        return get(self, name)

    def __hash__(self) -> int:
        raise refusal(f"the hash of an example under vmap was asked for, which has no number of its own: {TAKE}")


EXAMPLES = (BatchedArray, BatchedScalar)
_core.fill_up_call("batched_array", BatchedArray)
_core.fill_up_call("batched_scalar", BatchedScalar)
_core.fill_up_call("recorded_types", (_core.Tensor, *EXAMPLES))


def is_batched(x: Any) -> TypeGuard[Batched]:
    """Return whether it is one of a batch's examples."""
    return type(x) is BatchedArray or type(x) is BatchedScalar


def level_of(tree: Any) -> int:
    """Return the innermost batch that examples among the leaves belong to."""
    return max(leaf.level for leaf in flatten(tree)[0] if is_batched(leaf))
