"""Define the surface of an ndarray for all that stand for one: Value, Tensor, vmap's example, symbolic number.

`SURFACE` has every public name of `np.ndarray` and `np.generic`, with its sort:

- *call*: it is a function of NumPy of the array: ``x.sum(axis=1)`` is ``np.sum(x, axis=1)``. All kinds take part in
  NumPy's protocols, so these methods and properties are the same for all of them, and `install` puts them on a class.
- *write*: it changes the array. The remedy says what to write instead.
- *number*: it gives numbers away, which a kind may not have yet, or may have to keep.
- *memory*: it gives the memory away, or says how the elements lie in it.
- *spec*: dtype and shape, and what follows from them, which `install` adds too.
- *own*: each kind implements it in its own way (another dtype, a copy, a part of the array).

A kind passes `install` what it has in place of the last five sorts. `OPERATORS`, `COMPARISONS` and `SIGNS` map each
operator to its ufunc. Methods that the interpreter alone asks for (``len``, iteration, ``float()``) are with each kind.
tests/functions/test_surface.py checks that no name is missing, in the table or in a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from ..declare.dims import Extent, mul, prod

__all__ = [
    *("ASK_MEMORY", "COMPARISONS", "OPERATORS", "PRIORITY", "PRINTERS", "SAVERS", "SIGNS", "SURFACE", "WRITERS"),
    *("Name", "install", "refusing"),
]

OPERATORS: dict[str, tuple[str, np.ufunc]] = {
    "add": ("+", np.add),
    "sub": ("-", np.subtract),
    "mul": ("*", np.multiply),
    "truediv": ("/", np.true_divide),
    "floordiv": ("//", np.floor_divide),
    "mod": ("%", np.remainder),
    "pow": ("**", np.power),
    "matmul": ("@", np.matmul),
    "lshift": ("<<", np.left_shift),
    "rshift": (">>", np.right_shift),
    "and": ("&", np.bitwise_and),
    "xor": ("^", np.bitwise_xor),
    "or": ("|", np.bitwise_or),
}
COMPARISONS: dict[str, np.ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
SIGNS: dict[str, np.ufunc] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute}


class Name:
    """Describe a name of ndarray.

    It has the sort; the method, or the getter of the property, where all kinds share it; what to write instead, with
    ``{x}`` for the array (the kind knows where it is empty); and whether it is an attribute, not called.
    """

    __slots__ = ("attribute", "function", "remedy", "sort")

    def __init__(
        self, sort: str, function: Callable[..., Any] | None = None, remedy: str = "", attribute: bool = False
    ) -> None:
        self.sort, self.function, self.remedy, self.attribute = sort, function, remedy, attribute


# --- calls


def _same(name: str) -> Callable[..., Any]:
    """Return a method with the parameters that the function of the same name takes after the array."""
    function = getattr(np, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__doc__ = f"As `numpy.{name}` of this array."
    return method


def _one_or_many(items: tuple[Any, ...]) -> Any:
    return items[0] if len(items) == 1 else items


def _into(out: Any) -> dict[str, Any]:
    return {} if out is None else {"out": out}


def reshape(self: Any, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
    """Return the array in another shape, as `numpy.reshape`; sizes may be given one by one."""
    if not shape:
        raise TypeError("reshape() takes exactly 1 argument (0 given)")
    if order == "C" and copy is None:
        return np.reshape(self, _one_or_many(shape))
    options = {"order": order, "copy": copy}
    return np.reshape(self, _one_or_many(shape), **{k: v for k, v in options.items() if v not in (None, "C")})


def transpose(self: Any, *axes: Any) -> Any:
    """Return the array with axes permuted, as `numpy.transpose`; axes may be given one by one."""
    return np.transpose(self, _one_or_many(axes) if axes else None)


def flatten(self: Any, order: Any = "C") -> Any:
    """Return a copy of the elements in one dimension; `numpy.ravel` may return the memory of `self` itself."""
    return (np.reshape(self, -1) if order == "C" else np.ravel(self, order)).copy()


def copy(self: Any, order: Any = "C") -> Any:
    """Return a copy, as `numpy.copy`."""
    return np.copy(self, order)


def clip(self: Any, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """Return the elements limited to a range, as `numpy.clip`."""
    return np.clip(self, min, max, **_into(out), **kwargs)


def compress(self: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the elements where a condition holds, as `numpy.compress`."""
    return np.compress(condition, self, axis, **_into(out))


def choose(self: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """Return elements of choices by their numbers in `self`, as `numpy.choose`."""
    return np.choose(self, choices, mode=mode, **_into(out))


def conj(self: Any) -> Any:
    """Return the conjugate, as `numpy.conjugate`; the array itself if it is real, as ndarray does."""
    return self if self.dtype is not None and self.dtype.kind in "biuf" else np.conjugate(self)


def conjugate(self: Any) -> Any:
    """Return the conjugate, as `conj`."""
    return self.conj()


def __copy__(self: Any) -> Any:
    """Return a copy, as `copy`."""
    return self.copy("K")


def __deepcopy__(self: Any, memo: Any) -> Any:
    """Return a copy, as `copy`."""
    return self.copy("K")


def __reversed__(self: Any) -> Iterator[Any]:
    """Return the parts along the first axis, from the last, for types whose indexing ``reversed`` does not find."""
    return map(self.__getitem__, reversed(range(len(self))))


_ANY = np.empty(0)


def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """Return the array itself: the only device is ``"cpu"``."""
    _ANY.to_device(device, stream=stream)
    return self


def __array_namespace__(self: Any, *, api_version: Any = None) -> Any:
    """Return NumPy, whose functions take this array."""
    return _ANY.__array_namespace__(api_version=api_version)


def _device(self: Any) -> str:
    """Return the device, as NumPy does."""
    return _ANY.device


def _size(self: Any) -> Extent:
    """Return the number of elements: an int, a Dim, or None if it is not known."""
    return None if self.shape is None else prod(self.shape)


def _itemsize(self: Any) -> int | None:
    """Return the number of bytes of one element; None if the dtype is not known."""
    return None if self.dtype is None else int(self.dtype.itemsize)


def _nbytes(self: Any) -> Extent:
    """Return the number of bytes of all elements: an int, a Dim, or None if it is not known."""
    return mul(_size(self), _itemsize(self))


_FUNCTIONS = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "cumprod", "cumsum"),
    *("diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ravel"),
    *("repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take"),
    *("trace", "var"),
)
_METHODS: tuple[Callable[..., Any], ...] = (
    *(reshape, transpose, flatten, copy, clip, compress, choose, conj, conjugate, to_device),
    *(__copy__, __deepcopy__, __array_namespace__),
)
_PROPERTIES: dict[str, Callable[..., Any]] = {
    "T": np.transpose,
    "mT": np.matrix_transpose,
    "real": np.real,
    "imag": np.imag,
}
_OF_SPEC = {"size": _size, "itemsize": _itemsize, "nbytes": _nbytes, "device": _device}

# --- what a kind may have to refuse

_WITH_MASK = "use np.where with a mask, or a pyop.op that writes into a copy and returns it"
_WRITES = {
    "fill": "use np.full_like({x}, number)",
    "sort": "use np.sort({x}), which returns a new one",
    "partition": "use np.partition({x}, kth)",
    "put": _WITH_MASK,
    "resize": "use np.resize({x}, shape)",
    "setfield": "use a pyop.op that writes into a copy and returns it",
}
_NUMBERS = dict.fromkeys(("item", "tolist", "tobytes", "tofile", "dump", "dumps"), "")
_MEMORY = {
    "getfield": "use {x}['name'] for a field of a record array",
    "setflags": "leave the call out, or use a pyop.op, which is called with arrays",
    **dict.fromkeys(("__dlpack__", "__dlpack_device__"), ""),
}
_MEMORY_ATTRIBUTES = {
    "flat": "use {x}.ravel(), and index that",
    **dict.fromkeys(("data", "ctypes", "strides", "flags", "base"), ""),
}

SURFACE: dict[str, Name] = {
    **{name: Name("call", _same(name)) for name in _FUNCTIONS},
    **{method.__name__: Name("call", method) for method in _METHODS},
    **{name: Name("call", getter, attribute=True) for name, getter in _PROPERTIES.items()},
    **{name: Name("write", remedy=remedy) for name, remedy in _WRITES.items()},
    **{name: Name("number", remedy=remedy) for name, remedy in _NUMBERS.items()},
    **{name: Name("memory", remedy=remedy) for name, remedy in _MEMORY.items()},
    **{name: Name("memory", remedy=remedy, attribute=True) for name, remedy in _MEMORY_ATTRIBUTES.items()},
    **{name: Name("spec", attribute=True) for name in ("dtype", "shape", "ndim")},
    **{name: Name("spec", getter, attribute=True) for name, getter in _OF_SPEC.items()},
    **dict.fromkeys(("astype", "view", "byteswap", "__getitem__", "__setitem__", "__delitem__"), Name("own")),
}

# Functions of NumPy of the same sorts: what they would write, give away or ask. The first with what to write instead.
WRITERS: dict[Any, str] = {
    np.copyto: "use np.where(mask, src, dst), or np.broadcast_to(src, dst.shape)",
    np.put: _WITH_MASK,
    np.place: "use np.where(mask, vals, arr), or a pyop.op that writes into a copy and returns it",
    np.putmask: "use np.where(mask, values, a)",
    np.fill_diagonal: "use np.where(np.eye(*a.shape, dtype=bool), val, a)",
    np.put_along_axis: _WITH_MASK,
}
SAVERS: frozenset[Callable[..., Any]] = frozenset((np.save, np.savez, np.savez_compressed, np.savetxt))
PRINTERS: frozenset[Callable[..., Any]] = frozenset((np.array_repr, np.array_str, np.array2string))
ASK_MEMORY: frozenset[Callable[..., Any]] = frozenset((np.shares_memory, np.may_share_memory))

# Containers of pandas leave operators and ufuncs to what has this much.
PRIORITY = 100_000


def refusing(refuse: Callable[[Any, str, Name], NoReturn], table: Mapping[str, Name] | None = None) -> dict[str, Any]:
    """Return methods and properties that refuse.

    They call `refuse` with the array, ``name()`` or ``name``, and its entry in the table. By default they are all names
    that write, or give numbers or memory away.
    """

    def part(name: str, entry: Name) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            refuse(self, name if entry.attribute else f"{name}()", entry)

        method.__name__ = method.__qualname__ = name
        return property(method) if entry.attribute else method

    if table is None:
        table = {name: entry for name, entry in SURFACE.items() if entry.sort in ("write", "number", "memory")}
    return {name: part(name, entry) for name, entry in table.items()}


def install(kind: Any, own: Mapping[str, Any]) -> None:
    """Add the surface of an ndarray to a class that takes part in NumPy's protocols.

    `own` has the functions and properties by name that are no calls, and calls that this kind implements in its own
    way.
    """
    for name, entry in SURFACE.items():
        if entry.function is not None and name not in own and name not in vars(kind):
            shared = property(entry.function, doc=f"As `ndarray.{name}`.") if entry.attribute else entry.function
            setattr(kind, name, shared)
    for name, part in own.items():
        setattr(kind, name, part)
    kind.__pandas_priority__ = PRIORITY


for _name, _entry in SURFACE.items():
    if _entry.function is not None and not _entry.attribute:
        _entry.function.__name__ = _name
        _entry.function.__qualname__ = f"ndarray.{_name}"
