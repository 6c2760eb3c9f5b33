"""Write into Values: ``y[key] = value``, and ``+=`` through a view.

A handle shows a view, or a view of a view, of a memory that the function has made (csrc/graph/storage.h). A write adds
a node, `store`, that computes what the whole memory holds then. Every other handle of it finds its own part there when
it is read.
"""

from __future__ import annotations

import operator
import warnings
from functools import partial
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dims import Dim, same
from ..declare.rebuild import walk
from ..functions.indexing import spec as indexing
from ..gradients.shown import shown, store_shown
from ..gradients.store import Views, einsum_of, seen, store
from ..refusals import refusal, was_refused
from .array_protocol import to_specs
from .counter import has_counters, is_counter, with_sizes, with_windows
from .deciding import RunItself
from .forms import is_scalar
from .known import key_of_numbers
from .node_call import call_of
from .sizes import apply
from .symbolic_number import is_number, specialise
from .unknown import Unknown
from .value_refusals import is_store, refuse_write
from .views import is_basic

__all__ = ["assign", "checked_value", "setitem", "store_part", "view_of", "views_of", "write"]

_INSTEAD = (
    "instead of x[key] = y write x = np.where(mask, y, x), put parts together with np.concatenate or np.stack, "
    "or declare a pyop.op that writes into a copy and returns it"
)
_KINDS = "biufc"
_NUMBERS = (bool, int, float, complex)
_HOLE: Any = object()


def setitem(self: Any, key: Any, value: Any) -> None:
    """Set ``self[key] = value``: every name of the memory that `self` shows sees it, as with arrays.

    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def ends(x):
    ...     y = x * 1.0
    ...     y[1:-1] = 0.0
    ...     return y
    >>> ends(np.array([1.0, 2.0, 3.0]))
    array([1., 0., 3.])
    """
    if not is_store():
        raise refuse_write("x.__setitem__, or a function that exchanges elements,", "write `x[key] = y` in Python")
    assign(self, key, value)


def assign(self: Any, key: Any, value: Any) -> None:
    """Set ``self[key] = value``, as `setitem` but for any caller."""
    try:
        if has_counters(key):
            key = tuple(map(_as_array, key)) if type(key) is tuple else _as_array(key)
            with_sizes(partial(_set, self, value), key)
        else:
            _set(self, value, key)
    except (IndexError, TypeError, ValueError) as error:
        # NumPy asks first whether an argument may be written at all, which only a call knows.
        if self.graph._deciding is None or self._root().node.kind != "input" or was_refused(error):
            raise
        raise RunItself(f"raised {type(error).__name__} in a write into an argument", ()) from error


def _as_array(index: Any) -> Any:
    """Return the array that a list of numbers is, some of which are counters: ``y[[k, p]] = y[[p, k]]``."""
    if type(index) is not list or not all(type(x) is int or is_counter(x) for x in index) or not has_counters(index):
        return index
    return np.stack([x.number()._value if is_counter(x) else np.asarray(x, np.int64) for x in index])


def _set_element(self: Any, key: Any, value: Any) -> bool:
    """Write one number of the array's dtype by integers, the commonest write by far; False where that is not it."""
    keys = key if type(key) is tuple else (key,)
    shape, dtype = self.shape, self.dtype
    if (
        shape is None
        or len(keys) != len(shape)
        or dtype is None
        or dtype.kind not in "fci"
        or self._is_scalar is not False
    ):
        return False
    for index, size in zip(keys, shape, strict=True):
        if type(index) is not int or type(size) is not int or not -size <= index < size:
            return False
    if type(value) is float:
        if dtype != np.float64:
            return False
    elif type(value) is not Value or value._is_scalar is not True or value.dtype != dtype:
        return False
    if self._views():
        return False
    self._check_writable("x[key] = y")
    whole = self._root()
    is_value = type(value) is Value
    node = whole.graph._add_call(
        fn=store,
        inputs=(whole, value) if is_value else (whole,),
        name="store",
        specs=[whole.spec],
        order=[0, 1, -1, -2, -3] if is_value else [0, -1, -2, -3, -4],
        statics=(key, (), True) if is_value else (value, key, (), False),
        lends=False,
        scalar=False,
    )
    self._write_root(node._results[0])
    return True


_TO_CONVERT = frozenset((*(("d", char) for char in "lif?B"), *(("l", char) for char in "i?B")))  # to which: of what


def _set(self: Any, value: Any, key: Any) -> None:
    if self.graph._rolling and self.dtype is not None:  # a tape has conversions, and stores of the array's own dtype
        value = value.number()._value if is_counter(value) and self.dtype.char in "dl" else value
        if type(value) in (list, tuple):
            value = [x.number() if is_counter(x) else x for x in value]
        known = type(value) is Value and value.shape == () and value.dtype is not None
        if known and (self.dtype.char, value.dtype.char) in _TO_CONVERT:
            value = value.astype(self.dtype)
    if _set_element(self, key, value):
        return
    if self._is_scalar:
        raise TypeError(f"'numpy.{self.__class__.__name__}' object does not support item assignment")
    if self._is_scalar is None or self.dtype is None or self.ndim is None:
        raise refuse_write("`x[key] = y`", f"dtype and dimensions of `x` must be known; {_INSTEAD}")
    if self.dtype.kind not in _KINDS:
        raise refuse_write(
            "`x[key] = y`", f"`x` is of the dtype {self.dtype}, and only writes of numbers are followed; {_INSTEAD}"
        )
    self._check_writable("x[key] = y")
    key = _checked_key(key_of_numbers(self.graph, key))
    if any(type(item) is slice and _is_computed(item) for item in (key if isinstance(key, tuple) else (key,))):
        _set_between(self, value, key)
        return
    part = indexing.getitem(self.spec, to_specs(with_windows(self, key)))
    _check_places(self.shape, key)
    given = value
    value, scalar = checked_value(self.dtype, value)
    if isinstance(given, (list, tuple)) and type(value) is Value and is_basic(key):
        _check_depth(part.shape, value.ndim)
    value = _fitted(self.dtype, part.shape, value, bool(is_scalar(operator.getitem, (self, key), {})))
    # What `y[key] += 1` does last: NumPy copies the part onto itself. Of an argument that was not written before, it is
    # a write, which cannot be where that is read-only.
    is_new = self._root().node.kind == "input"
    if type(value) is Value and not is_new and self._shares_memory(value) and _is_that_part(self, key, value):
        return
    write(self, key, value, scalar)


def _set_between(self: Any, value: Any, key: Any) -> None:
    """Write by an index that has slices with computed bounds: into the view that these show."""
    items = key if isinstance(key, tuple) else (key,)
    bounds: list[Any] = []
    for item in items:
        if item is Ellipsis:
            bounds.append(item)
        elif item is not None:
            mask = type(item) in (Value, np.ndarray) and item.dtype.kind == "b"
            kept = item if type(item) is slice and _is_computed(item) else slice(None)
            bounds += [kept] * (item.ndim if mask else 1)
    rest = [slice(None) if type(item) is slice and _is_computed(item) else item for item in items]
    _set(self[tuple(bounds)], value, tuple(rest))


def _is_computed(item: slice) -> bool:
    return any(type(bound) is Value for bound in (item.start, item.stop, item.step))


def store_part(part: Any, now: Any) -> None:
    """Store `now`, the elementwise result, in a view that the function has written; the viewed memory sees it."""
    write(part, ..., now, False)


def write(target: Any, key: Any, value: Any, scalar: bool) -> None:
    """Make the node of ``target[key] = value``, of which is known that nothing is wrong with it."""
    whole = target._root()
    made = apply(store, (whole, value, key, views_of(target), scalar), {}, whole.spec, name="store", scalar=False)
    target._write_root(made)


def linked(host: Any, part: Any, rows: list[Any], up: bool) -> Any:
    """Return what a memory holds after `part`, which may be a view of it, was written.

    If not `up`, return what `part` holds after the memory was written.
    """
    views = _spelled(rows)
    if up:
        return apply(store_shown, (host, part, views), {}, host.spec, name="store", scalar=False)
    return apply(shown, (host, part, views), {}, part.spec, name="view", scalar=False)


def _checked_key(key: Any) -> Any:
    """Return the index, with arrays for lists, which may change."""
    if isinstance(key, tuple):
        return tuple([_checked_index(item) for item in key])
    return _checked_index(key)


def _checked_index(item: Any) -> Any:
    if is_number(item):
        specialise(item)
    if item is None or item is Ellipsis:
        return item
    if type(item) is Value:
        if item.dtype is not None and item.dtype.kind in "iub" and item.ndim is not None:
            return item
        if item.dtype is not None and item.dtype.kind not in "iub":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
    elif type(item) is slice:
        bounds = item.start, item.stop, item.step
        if any(map(is_number, bounds)):
            specialise(*bounds)
        if all(type(bound) is not Value or _is_integer(bound) for bound in bounds):
            return item
    elif type(item) is list:
        if any(map(is_number, item)):
            specialise(*filter(is_number, item))
        if all(issubclass(type(x), (int, np.integer, np.bool_)) for x in walk(item)):
            return np.asarray(item) if item else np.zeros(0, np.intp)
        if all(_is_integer(x) if type(x) is Value else type(x) is int or isinstance(x, np.integer) for x in item):
            return np.stack([np.asarray(x) if type(x) is not Value else x for x in item])
    elif type(item) is np.ndarray:
        if item.dtype.kind in "iub":
            return item
    elif type(item) is Dim:
        return item
    elif issubclass(type(item), (int, np.integer)) and type(item) is not bool:
        return int(item)
    elif type(item) in (float, str):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            "valid indices"
        )
    raise refuse_write("`x[key] = y`", f"where an index is a {type(item).__name__}, {_INSTEAD}")


def _is_integer(x: Value) -> bool:
    return x.ndim == 0 and x.dtype is not None and x.dtype.kind in "iu"


def _check_places(shape: tuple[Any, ...], key: Any) -> None:
    """Raise NumPy's error where an index that is known is out of bounds: a write that nobody reads raises it, too."""
    items = key if isinstance(key, tuple) else (key,)
    if not any(type(item) is np.ndarray for item in items) or not all(isinstance(n, int) for n in shape):
        return
    if not any(type(item) is Value or type(item) is Dim for item in walk(items)):
        np.broadcast_to(np.False_, shape)[key]


def checked_value(dtype: np.dtype[Any], value: Any) -> tuple[Any, bool]:
    """Return the value to write, and whether it is a scalar of NumPy; raise NumPy's errors, or refuse."""
    if is_counter(value):
        if dtype not in (np.float64, np.int64, np.complex128):
            value._needed()
        return value.number()._value, True
    if is_number(value):
        if value._kind is bool and not value._is_of_arguments and dtype.kind in "biufc":
            return value._value, True
        if not value._fits(dtype):
            specialise(value)
        return value._value, True
    if type(value) is Unknown:  # the number of elements of `y`, say: it is written as the Python number that it is
        value = value._number()
    if isinstance(value, range):
        value = list(value)
    kind = type(value)
    if kind is Value or kind is np.ndarray or issubclass(kind, np.generic):
        have = value.dtype
        if have is None or have.kind not in _KINDS:
            raise refuse_write("`x[key] = y`", f"`y` is of the dtype {have}; {_INSTEAD}")
        if kind is Value and value._is_scalar is None and not np.can_cast(have, dtype, "same_kind"):
            raise refuse_write("`x[key] = y`", f"convert `y` to {dtype} with .astype first")
        return value, kind is Value and bool(value._is_scalar)
    if kind in _NUMBERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the plan will warn
            np.empty((), dtype)[()] = value
        return value, False
    if kind in (list, tuple):
        leaves = list(walk(value))
        plain = [type(x) in _NUMBERS or issubclass(type(x), np.number) for x in leaves]
        if all(plain):
            return _as_tuples(value), False
        from .lists import array_of, holds_values  # on first use

        if holds_values(value):
            return array_of(value, dtype), False
    raise refuse_write("`x[key] = y`", f"`y` is a {kind.__name__}: make it an array with np.asarray; {_INSTEAD}")


def _check_depth(shape: Any, depth: Any) -> None:
    """Raise NumPy's error for a list that is deeper than the part that is written, which an array may be."""
    if shape is not None and depth is not None and depth > len(shape):
        np.empty((1,) * len(shape))[...] = np.zeros((1,) * depth).tolist()


def _as_tuples(x: Any) -> Any:
    return tuple(map(_as_tuples, x)) if isinstance(x, (list, tuple)) else x


def _fitted(dtype: np.dtype[Any], shape: Any, value: Any, element: bool) -> Any:
    """Return the value to write, without leading axes of size 1 that the part lacks; raise NumPy's error otherwise."""
    if type(value) not in (Value, np.ndarray) or shape is None or value.shape is None:
        return value
    sizes = value.shape
    extra = len(sizes) - len(shape)
    if extra > 0 and not shape and element:
        np.zeros(1, dtype)[0] = np.zeros(
            [1 if same(n, 1) else 2 for n in sizes], value.dtype
        )  # what this release says to it
    if extra > 0 and all(same(n, 1) for n in sizes[:extra]):
        value, sizes = np.reshape(value, sizes[extra:]), sizes[extra:]
    pairs = zip(reversed(sizes), reversed(shape), strict=False)
    if len(sizes) > len(shape) or any(same(m, 1) is False and same(m, n) is False for m, n in pairs):
        raise ValueError(f"could not broadcast input array from shape {_text(sizes)} into shape {_text(shape)}")
    return value


def _text(shape: Any) -> str:
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def views_of(value: Any) -> Views:
    """Return how the Value shows its memory, in the form that `store` takes."""
    return _spelled(value._views())


def _spelled(rows: list[Any]) -> Views:
    steps = []
    for node, which, base in rows:
        inputs = [_HOLE if given._key == base._key else given for given in node.inputs]
        call = call_of(node, inputs)
        function, args = call.function, call.args
        if function is np.einsum and type(args[0]) is str:
            function, args = einsum_of, (args[1], args[0], *args[2:])
        if not args or args[0] is not _HOLE or any(x is _HOLE for x in walk((args[1:], call.kwargs))):
            raise refuse_write(
                "`x[key] = y`", f"`x` is a view whose sizes are not known when the graph is built; {_INSTEAD}"
            )
        several = call.of_one or len(node.outputs) > 1
        steps.append((function, tuple(args[1:]), tuple(call.kwargs.items()), which if several else -1))
    return tuple(steps)


def view_of(array: Any, value: Value) -> Any:
    """Return the view of an array that a Value shows of the Value that stands for it."""
    views = views_of(value)
    if any(type(x) is Value for x in walk(views)):
        raise refusal(
            "the function returns a view of an array that it holds, at an index that the graph computes: return a "
            "copy, W[k].copy()"
        )
    return seen(array, views)


def _is_that_part(whole: Any, key: Any, part: Any) -> bool:
    """Return whether `part` is the view ``whole[key]``."""
    *inner, last = part._views() or [None]
    if last is None or _by_index(inner) != _by_index(whole._views()):
        return False
    call = call_of(last[0])
    return call.function is operator.getitem and _same_key(call.args[1], key)


def _by_index(views: list[Any]) -> list[tuple[int, int]]:
    return [(node.index, which) for node, which, _ in views]


def _same_key(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_key, a, b))
    if isinstance(a, slice):
        return all(map(_same_key, (a.start, a.stop, a.step), (b.start, b.stop, b.step)))
    return a is b or (isinstance(a, int) and a == b)


setattr(Value, "__setitem__", setitem)  # noqa: B010
