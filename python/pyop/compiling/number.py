"""`Number`: a Python number that is not known yet, while `pyop.compile` traces a function.

NumPy treats a Python number weakly: a float32 array times 2.0 is float32; times a Value of one element it would be
float64. So a function under trace gets a Number for a Python number, which decides operation by operation, as NumPy
does, to what dtype it is converted, and adds the conversion to the graph. Whatever cannot be done without knowing the
number (a comparison that is branched on, ``range(n)``, ``math.sin(t)``, text) raises `Specialise`: the function is then
traced once more with the number itself, and the plan holds for that number only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from .. import rules
from .._core import GraphBase, Value, set_number_call
from ..array_protocol import to_specs
from ..dims import Dim
from ..rebuild import CallOnTree
from ..sizes import apply
from ..spec import Spec

__all__ = ["Number", "Specialise", "specialise"]

_DTYPES = {float: np.dtype(np.float64), int: np.dtype(np.int64), complex: np.dtype(np.complex128)}


class Specialise(BaseException):
    """The function under trace must know a number. No `Exception`, so that it gets past the function's own handlers."""

    def __init__(self, places: frozenset[int]) -> None:
        super().__init__("a number is needed while the function is traced")
        self.places = places


class Number:
    """A Python float, int or complex that a plan will be given.

    Parameters
    ----------
    kind : type
        float, int or complex.
    value : Value
        It, as an array of one element.
    places : frozenset of int
        The leaves of the arguments that it was computed from.
    """

    __slots__ = ("_kind", "_places", "_value")

    def __init__(self, kind: type, value: Value, places: frozenset[int]) -> None:
        self._kind = kind
        self._value = value
        self._places = places

    # The function may ask isinstance(t, float).
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._kind

    # --- with arrays

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = all(is_number(x) or isinstance(x, _OPERANDS) or type(x) in _DTYPES for x in inputs)
        if method != "__call__" or kwargs or len(inputs) != ufunc.nin or not known:
            specialise(inputs, kwargs)
        kinds = [_kind_or_dtype(x) for x in inputs]
        if any(kind is None for kind in kinds) or ufunc.signature is not None:
            return _python_call(ufunc, inputs)
        wanted = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
        strong = list(inputs)
        for k, x in enumerate(inputs):
            if is_number(x):
                strong[k] = _as_dtype(x, wanted[k])
        if any(x is None for x in strong):
            return _python_call(ufunc, inputs)
        again = ufunc.resolve_dtypes((*map(_kind_or_dtype, strong), *[None] * ufunc.nout))
        return ufunc(*strong) if again == wanted else _python_call(ufunc, inputs)

    def __array_function__(self, func: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: Any) -> Any:
        if func in (np.shape, np.ndim, np.size) and len(args) == 1:
            return {np.shape: (), np.ndim: 0, np.size: 1}[func]
        # Functions whose result does not depend on the number but in its elements.
        if func not in (np.where, np.clip) or kwargs or not any(isinstance(x, Value) for x in args):
            specialise(args, kwargs)
        return _python_call(func, args)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        specialise(self)

    # --- what needs the number

    def _needed(self, *args: Any) -> NoReturn:
        specialise(self)

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __hash__ = __str__ = __repr__ = _needed
    __format__ = __round__ = __trunc__ = __floor__ = __ceil__ = __reduce_ex__ = _needed
    __divmod__ = __rdivmod__ = __matmul__ = __rmatmul__ = __invert__ = _needed
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _needed
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _needed

    def __getattr__(self, name: str) -> Any:
        if hasattr(self._kind, name):
            specialise(self)
        raise AttributeError(f"{self._kind.__name__!r} object has no attribute {name!r}")

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self


_OPERANDS = (Value, np.ndarray, np.generic)


def is_number(x: Any) -> bool:
    """Whether `x` is a Number; isinstance would ask what it stands for."""
    return type(x) is Number


def _places_in(*args: Any) -> frozenset[int]:
    """The leaves that the Numbers among the arguments come from, in containers too."""
    found: set[int] = set()
    pending = list(args)
    while pending:
        x = pending.pop()
        if is_number(x):
            found |= x._places
        elif isinstance(x, tuple | list):
            pending += x
        elif isinstance(x, dict):
            pending += x.values()
        elif type(x) is slice:
            pending += (x.start, x.stop, x.step)
    return frozenset(found)


def specialise(*args: Any) -> NoReturn:
    """Ask for the numbers among the arguments."""
    raise Specialise(_places_in(*args))


def check_statics(graph: GraphBase) -> None:
    """Ask for the Numbers that some rule took for static arguments of a node: there they would stay symbolic.

    Parameters
    ----------
    graph : GraphBase
    """
    for index in range(len(graph)):
        node = graph[index]
        function: Any = node.function
        places = frozenset() if node._form is None else _places_in(node._form[1])
        while isinstance(function, CallOnTree):
            places |= _places_in(function.leaves)
            function = function.fn
        if places:
            raise Specialise(places)


def _kind_or_dtype(x: Any) -> Any:
    """What NumPy's promotion looks at: a Python type, or a dtype; None if it is not known."""
    return x._kind if is_number(x) else type(x) if type(x) in _DTYPES else x.dtype


def _as_dtype(x: Number, dtype: np.dtype[Any]) -> Any:
    """The Number as an array of the dtype that NumPy makes it; None where only NumPy knows how."""
    if dtype == x._value.dtype:
        return x._value
    # A Python int goes its own way into the other dtypes: through double, or with a check that it fits.
    direct = dtype.kind in "fc" if x._kind is not int else dtype.char in "dD"
    return x._value.astype(dtype) if direct else None


class OnNumbers:
    """Calls a function on arrays, some of which are made Python numbers again.

    Parameters
    ----------
    fn : callable
    numbers : tuple of bool
        Which of the arguments are numbers.
    """

    __slots__ = ("fn", "numbers")

    _pyop_merge_by_value = True

    def __init__(self, fn: Callable[..., Any], numbers: tuple[bool, ...]) -> None:
        self.fn = fn
        self.numbers = numbers

    def __call__(self, *args: Any) -> Any:
        return self.fn(*[x.item() if number else x for x, number in zip(args, self.numbers, strict=True)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnNumbers) and self.fn is other.fn and self.numbers == other.numbers

    def __hash__(self) -> int:
        return hash((self.fn, self.numbers))

    def __repr__(self) -> str:
        return f"OnNumbers({self.fn!r})"


def _python_call(func: Any, args: tuple[Any, ...]) -> Any:
    """A node that calls the function with Python numbers, as the traced function would."""
    samples = tuple(x._kind(1) if is_number(x) else x for x in args)
    if isinstance(func, np.ufunc):
        from ..rules import ufuncs  # on first use: `import pyop` stays light

        specs = ufuncs.infer(func, "__call__", to_specs(samples), {})
    else:
        found = rules.lookup(func)
        specs = Spec() if found is None else found(*to_specs(samples))
    fn = OnNumbers(func, tuple(map(is_number, args)))
    return apply(fn, tuple(x._value if is_number(x) else x for x in args), {}, specs, name=func.__name__, scalar=True)


# --- operators


def _between_numbers(op: Callable[..., Any], a: Any, b: Any) -> Any:
    """Two Python numbers, at least one of them a Number: Python computes, with its own errors."""
    kinds = {x._kind if is_number(x) else type(x) for x in (a, b)}
    kind: type = complex if complex in kinds else float
    # int may grow beyond an int64, and a float to a power may be complex.
    if (kinds == {int} and op is not operator.truediv) or (op is operator.pow and kind is float):
        specialise(a, b)
    fn = OnNumbers(op, (is_number(a), is_number(b)))
    inputs = tuple(x._value if is_number(x) else x for x in (a, b))
    value = apply(fn, inputs, {}, Spec(_DTYPES[kind], ()), name=op.__name__, scalar=True)
    return Number(kind, value, frozenset().union(*(x._places for x in (a, b) if is_number(x))))


def _binary(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    other = b if is_number(a) else a
    if is_number(other) or type(other) in _DTYPES:
        return _between_numbers(op, a, b)
    if isinstance(other, bool | Dim):
        specialise(a, b)
    if not isinstance(other, _OPERANDS):
        return NotImplemented
    if op is operator.pow and not is_number(a):  # the operator is not np.power for some exponents
        specs = np.power(a, _sample(b)).spec if isinstance(a, Value) else Spec()
        return apply(OnNumbers(op, (False, True)), (a, b._value), {}, specs, name="power", scalar=True)
    return ufunc(a, b)


def _sample(x: Number) -> Any:
    return x._kind(1)


def _install() -> None:
    ufuncs = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "truediv": np.true_divide,
        "floordiv": np.floor_divide,
        "mod": np.remainder,
        "pow": np.power,
    }
    for name, ufunc in ufuncs.items():
        op = getattr(operator, name)

        def forward(self: Any, other: Any, op: Any = op, ufunc: Any = ufunc) -> Any:
            return _binary(op, ufunc, self, other)

        def backward(self: Any, other: Any, op: Any = op, ufunc: Any = ufunc) -> Any:
            return _binary(op, ufunc, other, self)

        setattr(Number, f"__{name}__", forward)
        setattr(Number, f"__r{name}__", backward)
    comparisons = {
        "lt": np.less,
        "le": np.less_equal,
        "eq": np.equal,
        "ne": np.not_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    for name, ufunc in comparisons.items():

        def compare(self: Any, other: Any, ufunc: Any = ufunc) -> Any:
            return ufunc(self, other) if isinstance(other, _OPERANDS) else specialise(self, other)

        setattr(Number, f"__{name}__", compare)
    for name in ("neg", "pos", "abs"):
        op = getattr(operator, name)

        def unary(self: Any, op: Any = op) -> Any:
            if self._kind is not float:  # -(-2**63) is no int64
                specialise(self)
            value = apply(
                OnNumbers(op, (True,)), (self._value,), {}, Spec(_DTYPES[float], ()), name=op.__name__, scalar=True
            )
            return Number(float, value, self._places)

        setattr(Number, f"__{name}__", unary)


_install()
set_number_call(OnNumbers)
