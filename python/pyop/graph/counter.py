"""Define `Counter`, the number of an iteration while the body of a loop is recorded once for all of them.

A Counter stands for a Python int. For indices, and for arithmetic with integers, it is a symbolic size (`Dim`), so
``x[i]`` and ``x[i + 1:]`` are views like any others. Beside arrays and floats it becomes a `Number`. Whatever needs the
number itself (a comparison, text, the index of a list) reports that to the recorder of the loop.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declare.dim import Dim, DimTooLarge
from ..declare.rebuild import holds, replaced, walk

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Counter", "has_counters", "is_counter", "set_arithmetic", "size_of", "with_sizes", "with_windows"]


_POWERS = 4


class Counter:
    """Stand for an int that is `size` in the iteration that is recorded.

    `graph` is where it is recorded. `needed` is called where the number itself is asked for, and raises.
    """

    __slots__ = ("_graph", "_needed", "_size")
    __array_priority__ = 2e6

    def __init__(self, size: Dim, graph: Graph, needed: Callable[[], Any]) -> None:
        self._size = size
        self._graph = graph
        self._needed = needed

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return int

    def number(self) -> Any:
        """Return the counter as a Number: a Python int that the plan knows."""
        return _number_of(self)

    # --- with arrays

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            self._needed()
        return ufunc(*[x.number() if is_counter(x) else x for x in inputs], **kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        # A Value among the arguments takes the call first; here are only those that are asked for numbers.
        if func in (np.shape, np.ndim, np.size) and len(args) == 1:
            return {np.shape: (), np.ndim: 0, np.size: 1}[func]
        return self._needed()

    # --- what needs the number

    def _ask(self, *args: Any, **kwargs: Any) -> Any:
        return self._needed()

    def __bool__(self) -> bool:
        return bool(operator.ne(self, 0))

    __int__ = __float__ = __complex__ = __index__ = __hash__ = __str__ = __repr__ = _ask
    __format__ = __trunc__ = __floor__ = __ceil__ = __round__ = __reduce_ex__ = __array__ = _ask
    __matmul__ = __rmatmul__ = __abs__ = _ask

    def __invert__(self) -> Any:
        return -self - 1

    def __getattr__(self, name: str) -> Any:
        if hasattr(int, name):
            return self._needed()
        raise AttributeError(f"'int' object has no attribute {name!r}")

    def __copy__(self) -> Counter:
        return self

    def __deepcopy__(self, memo: Any) -> Counter:
        return self

    def __pos__(self) -> Counter:
        return self

    def __neg__(self) -> Any:
        return self._like(-self._size)

    def _like(self, size: Any) -> Any:
        return Counter(size, self._graph, self._needed) if type(size) is Dim else size


def is_counter(x: Any) -> bool:
    """Return whether `x` is a Counter; isinstance would ask what it stands for."""
    return type(x) is Counter


def size_of(x: Any) -> Any:
    """Return the symbolic size of a Counter; anything else as it is."""
    return x._size if type(x) is Counter else x


def has_counters(*arguments: Any) -> bool:
    """Return whether a Counter is among the arguments of a call, in containers and slices too."""
    return holds(arguments, Counter)


def with_sizes(func: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``func(*arguments)`` with sizes for the Counters among them; where that fails, the numbers are needed."""
    try:
        return func(*replaced(arguments, size_of))
    except Exception:
        next(x for x in walk(arguments) if type(x) is Counter)._needed()
        raise


def with_windows(value: Any, key: Any) -> Any:
    """Return an index in which slices between numbers of loops are others of the same length, where they have one:
    ``x[k - 2 : k + 3]`` lies within ``x`` in each iteration.
    """
    sizes = getattr(value.graph, "_sizes", None)
    keys = key if type(key) is tuple else (key,)
    if sizes is None or value.shape is None or not any(map(_moves, keys)):
        return key
    used = sum(x is not None and x is not Ellipsis for x in keys)
    made, axis = list(keys), 0
    for k, item in enumerate(keys):
        if item is Ellipsis:
            axis = max(len(value.shape) - used, 0) + axis
        elif item is not None:
            if type(item) not in (slice, int, Dim):
                return key  # it may select along no axis, or along several
            if _moves(item) and axis < len(value.shape):
                made[k] = _window(sizes, value.shape[axis], item)
            axis += 1
    return tuple(made) if type(key) is tuple else made[0]


def _moves(item: Any) -> bool:
    return type(item) is slice and type(item.start) is Dim and item.step in (None, 1)


def _window(sizes: Any, extent: Any, item: slice) -> slice:
    length = size_of(item.stop) - item.start if item.stop is not None else None
    if type(length) is not int or type(extent) is not int or length < 0:
        return item
    bounds = sizes.bounds(item.start)
    inside = bounds is not None and bounds[0] >= 0 and bounds[1] + length <= extent
    return slice(0, length) if inside else item


_number_of: Callable[[Counter], Any]


def _binary(op: Callable[[Any, Any], Any], in_sizes: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def either(self: Counter, a: Any, b: Any) -> Any:
        other = b if a is self else a
        kind = type(other)
        divides = op is operator.floordiv and not (type(b) is int and b > 0)
        if in_sizes and not divides and (kind is Counter or kind is int or kind is Dim):
            try:
                return self._like(op(size_of(a), size_of(b)))
            except DimTooLarge:
                return self._needed()
        return op(*[x.number() if type(x) is Counter else x for x in (a, b)])

    return lambda self, other: either(self, self, other), lambda self, other: either(self, other, self)


def _compared(op: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """Return a comparison: a truth that is not known, where the number decides."""

    def compare(self: Counter, other: Any) -> Any:
        counted = type(other) in (Counter, int)
        if counted and type(difference := self - other) is int:
            return op(difference, 0)
        truth = _compare(op, self, other)
        if truth is None:
            return self._needed() if counted or type(other) is bool else op(self.number(), other)
        return truth

    return compare


_compare: Callable[..., Any]


def set_arithmetic(
    compare: Callable[..., Any],
    divided: Callable[..., Any],
    of_bits: Callable[..., Any],
    number: Callable[[Counter], Any],
) -> None:
    """Set the functions for comparing and dividing an iteration's number in the graph, and for its bits.

    The last one converts it to a Number. A module above this one provides them.
    """
    global _compare, _divided, _of_bits, _number_of
    _compare, _divided, _of_bits, _number_of = compare, divided, of_bits, number


_divided: Callable[..., Any]
_of_bits: Callable[..., Any]


def _bitwise(op: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def either(self: Counter, a: Any, b: Any) -> Any:
        made = _of_bits(op, a, b)
        return self._needed() if made is None else made

    return lambda self, other: either(self, self, other), lambda self, other: either(self, other, self)


def _mod(self: Counter, other: Any) -> Any:
    """Return the remainder by a known positive number, which is counted too; else that of the Number."""
    made = _divided(self, other, True) if type(other) is int and other > 0 else None
    return self.number() % other if made is None else made


def _quotient(self: Counter, other: Any) -> Any:
    made = _divided(self, other, False) if type(other) is int and other > 1 else None
    return _floordiv(self, other) if made is None else made


def _divmod(a: Any, b: Any) -> tuple[Any, Any]:
    return a // b, a % b


def _power(self: Counter, other: Any, modulus: Any = None) -> Any:
    """Return a small power as a product, which is counted too; else that of the Number."""
    if modulus is not None:
        return self._needed()
    if type(other) is not int or not 0 < other <= _POWERS:
        return _pow(self, other)
    made: Any = self
    for _ in range(other - 1):
        made = made * self
    return made


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
    _forward, _backward = _binary(getattr(operator, _name), _name in ("add", "sub", "mul", "floordiv"))
    setattr(Counter, f"__{_name}__", _forward)
    setattr(Counter, f"__r{_name}__", _backward)

for _name, _op in {"and": "and_", "or": "or_", "xor": "xor", "lshift": "lshift", "rshift": "rshift"}.items():
    _forward, _backward = _bitwise(getattr(operator, _op))
    setattr(Counter, f"__{_name}__", _forward)
    setattr(Counter, f"__r{_name}__", _backward)

_floordiv, _pow = vars(Counter)["__floordiv__"], vars(Counter)["__pow__"]
setattr(Counter, "__divmod__", _divmod)  # noqa: B010
setattr(Counter, "__rdivmod__", lambda self, other: _divmod(other, self))  # noqa: B010
setattr(Counter, "__pow__", _power)  # noqa: B010
setattr(Counter, "__mod__", _mod)  # noqa: B010
setattr(Counter, "__floordiv__", _quotient)  # noqa: B010
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Counter, f"__{_name}__", _compared(getattr(operator, _name)))
