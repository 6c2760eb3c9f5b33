"""Stand for a Python number that is not known yet (`Number`), while `pyop.compile` traces a function.

NumPy treats a Python number weakly: a float32 array times 2.0 is float32; times a Value of one element it would be
float64. So a function under trace gets a Number for a Python number. For each operation it decides, as NumPy does, the
dtype to convert to, and adds the conversion to the graph. Whatever needs the number itself (a comparison that is
branched on, ``range(n)``, ``math.sin(t)``, text) raises `Specialise`. The function is then traced once more with the
number, and the plan holds for that number only.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from .. import functions as rules
from .._core import Value
from ..declare.rebuild import MergedByValue, replaced, walk
from ..declare.spec import Spec
from ..functions.surface import OPERATORS, SIGNS
from .array_protocol import NUMBERS, to_specs
from .deciding import Specialise
from .forms import is_scalar
from .sizes import apply

__all__ = [
    "DTYPES",
    "DTYPES_OF_NODES",
    "OPERANDS",
    "Number",
    "OnNumbers",
    "add_node",
    "as_dtype",
    "as_value",
    "call_on_numbers",
    "counted",
    "is_number",
    "kind_or_dtype",
    "places_in",
    "quotient",
    "real_power",
    "size_number",
    "specialise",
]

DTYPES = {float: np.dtype(np.float64), int: np.dtype(np.int64), complex: np.dtype(np.complex128)}
DTYPES_OF_NODES = {**DTYPES, bool: np.dtype(np.bool_)}


class Number:
    """Stand for a Python float, int, complex or bool (`kind`) that a plan will be given: `value` is it as an array of
    one element, `places` the leaves of the arguments that it was computed from.
    """

    __slots__ = ("_kind", "_places", "_value")
    _pyop_number = True  # for pyop.graph.lists

    def __init__(self, kind: type, value: Value, places: frozenset[int]) -> None:
        self._kind = kind
        self._value = value
        self._places = places
        if kind is not bool and hasattr(value.graph, "_numbers"):
            value.graph._numbers.add((value.node.index, value.output_index))

    # The function may ask isinstance(t, float).
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._kind

    # --- with arrays

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = all(is_number(x) or isinstance(x, OPERANDS) or type(x) in DTYPES for x in inputs)
        truth = any(is_number(x) and x._kind is bool for x in inputs)
        if method != "__call__" or kwargs or len(inputs) != ufunc.nin or not known or truth:
            specialise(inputs, kwargs)
        kinds = [kind_or_dtype(x) for x in inputs]
        if any(kind is None for kind in kinds) or ufunc.signature is not None:
            return _python_call(ufunc, inputs)
        wanted = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
        strong = list(inputs)
        for k, x in enumerate(inputs):
            if is_number(x):
                strong[k] = as_dtype(x, wanted[k])
        if any(x is None for x in strong):
            return _python_call(ufunc, inputs)
        again = ufunc.resolve_dtypes((*map(kind_or_dtype, strong), *[None] * ufunc.nout))
        return ufunc(*strong) if again == wanted else _python_call(ufunc, inputs)

    def __array_function__(self, func: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: Any) -> Any:
        if func in (np.shape, np.ndim, np.size) and len(args) == 1:
            return {np.shape: (), np.ndim: 0, np.size: 1}[func]
        if func is np.result_type and not kwargs and all(x._kind is not int for x in args if is_number(x)):
            return func(*[x._kind(1) if is_number(x) else x for x in args])  # of an int it is asked whether it fits
        # Functions whose result does not depend on the number but in its elements.
        known = func is np.where and len(args) == 3 and all(map(_is_plain, args))
        if not kwargs and (known or (func is np.clip and any(isinstance(x, Value) for x in args))):
            return _python_call(func, args)
        if func not in _OTHERWISE and _are_as_arrays(args, kwargs):
            with contextlib.suppress(Exception):  # what the function refuses so, it may do with the number
                return func(*replaced(args, as_value), **replaced(kwargs, as_value))
        return specialise(args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        specialise(self)

    # --- what needs the number

    def _fits(self, dtype: np.dtype[Any]) -> bool:
        """Return whether the number, though unknown, is written into an array of this dtype."""
        return self._kind in (float, complex) and dtype.kind in ("c" if self._kind is complex else "fc")

    def _needed_with(self, others: list[Any]) -> NoReturn:
        specialise(*others)

    def _needed(self, *args: Any) -> NoReturn:
        specialise(self)

    @property
    def _is_of_arguments(self) -> bool:
        """Return True where it is computed of arguments alone, by whose values there may be plans."""
        return bool(self._places) and all(type(place) is int for place in self._places)

    def __bool__(self) -> bool:
        if self._is_of_arguments:
            return specialise(self)
        return bool(self._value if self._kind is bool else self._value != 0)  # decided, or recorded both ways

    __int__ = __float__ = __complex__ = __index__ = __hash__ = __str__ = __repr__ = _needed
    __format__ = __trunc__ = __floor__ = __ceil__ = __reduce_ex__ = _needed
    __matmul__ = __rmatmul__ = __invert__ = _needed
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _needed

    def __getattr__(self, name: str) -> Any:
        if self._kind is complex and name in ("real", "imag"):
            return Number(float, getattr(self._value, name), self._places)
        if self._kind is complex and name == "conjugate":
            return lambda: Number(complex, self._value.conj(), self._places)
        if hasattr(self._kind, name):
            specialise(self)
        raise AttributeError(f"{self._kind.__name__!r} object has no attribute {name!r}")

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self


def counted(size: Any, graph: Any) -> Any:
    """Return a symbolic size as a Value of the graph: an int64 that is a scalar."""
    node = graph._counters.get(size.name) if size.name is not None else None
    if node is not None:
        return graph._value(node, 0)
    return apply(size_number, (size,), {}, Spec(DTYPES[int], ()), name="counter", scalar=True)


def size_number(size: int) -> Any:  # a step knows it
    return np.asarray(size, np.int64)


OPERANDS = (Value, np.ndarray, np.generic)


def is_number(x: Any) -> bool:
    """Return whether `x` is a Number; isinstance would ask what it stands for."""
    return type(x) is Number


def _is_plain(x: Any) -> bool:
    return is_number(x) or isinstance(x, Value) or type(x) in (np.ndarray, bool, *DTYPES)


def places_in(*args: Any) -> frozenset[int]:
    """Return the leaves that the Numbers among the arguments come from, in containers too."""
    return frozenset().union(*[x._places for x in walk(args) if is_number(x)])


def specialise(*args: Any) -> NoReturn:
    """Ask for the numbers among the arguments."""
    raise Specialise(places_in(*args))


def kind_or_dtype(x: Any) -> Any:
    """Return what NumPy's promotion looks at: a Python type, or a dtype; None if it is not known."""
    return x._kind if is_number(x) else type(x) if type(x) in DTYPES else x.dtype


_ALIKE = frozenset("?bhilqBHILQdD")
"""Dtypes with which NumPy makes the same of a Python float and of an array of one."""


_OTHERWISE = frozenset((np.real, np.imag, np.isreal, np.iscomplex, np.real_if_close, np.result_type))
_OTHERWISE |= frozenset((np.copyto, np.put, np.put_along_axis, np.putmask, np.place, np.fill_diagonal, np.can_cast))
"""Functions that do something else for a Python number, or put it into an array of another dtype."""


def _are_as_arrays(*args: Any) -> bool:
    """Say whether a function that takes arrays makes the same of the Numbers as of arrays of them."""
    kinds = {x._kind if is_number(x) else x.dtype for x in walk(args) if is_number(x) or isinstance(x, OPERANDS)}
    return all(
        kind is float or (kind is not None and not isinstance(kind, type) and kind.char in _ALIKE) for kind in kinds
    )


def as_value(x: Any) -> Any:
    """Return the Value of a Number; anything else as it is."""
    return x._value if is_number(x) else x


def as_dtype(x: Number, dtype: np.dtype[Any]) -> Any:
    """Return the Number as an array of the dtype that NumPy makes it; None where only NumPy knows how."""
    if dtype == x._value.dtype:
        return x._value
    # A Python int goes its own way into the other dtypes: through double, or with a check that it fits.
    direct = dtype.kind in "fc" if x._kind is not int else dtype.char in "dD"
    return x._value.astype(dtype) if direct else None


class OnNumbers(MergedByValue):
    """Call a function on arrays, some of which are made Python numbers again (1 in `numbers`), or scalars of NumPy
    (2).
    """

    __slots__ = ("fn", "numbers")

    def __init__(self, fn: Callable[..., Any], numbers: tuple[int, ...]) -> None:
        self.fn = fn
        self.numbers = numbers

    def __call__(self, *args: Any) -> Any:
        return self.fn(
            *[
                x.item() if number == 1 else x[()] if number == 2 and isinstance(x, np.ndarray) else x
                for x, number in zip(args, self.numbers, strict=True)
            ]
        )

    @property
    def _pyop_like(self) -> Any:
        """The function whose derivative it has."""
        return _LIKE.get(self.fn, self.fn)

    def __repr__(self) -> str:
        return f"OnNumbers({self.fn!r})"


def real_power(a: Any, b: Any) -> Any:
    """Return a power of floats that is a float, as the graph was made for; TypeError if it is complex."""
    result = a**b
    if type(result) is complex:
        raise TypeError(
            f"{a!r} ** {b!r} is complex, and was a float for the numbers that the graph was built with: compute it "
            "with complex numbers"
        )
    return result


real_power._pyop_checks_results = True  # type: ignore[attr-defined]


def quotient(a: Any, b: Any) -> Any:
    """Return the whole part of ``divmod(a, b)``."""
    return divmod(a, b)[0]


_LIKE: dict[Any, Any] = {
    real_power: np.power,
    quotient: np.floor_divide,
    round: np.round,
    **{getattr(operator, f"__{name}__", None): ufunc for name, (_, ufunc) in OPERATORS.items()},
    **{getattr(operator, f"__{name}__"): ufunc for name, ufunc in SIGNS.items()},
}


def _python_call(func: Any, args: tuple[Any, ...]) -> Any:
    """Add a node that calls the function with Python numbers, as the traced function would."""
    samples = tuple(x._kind(1) if is_number(x) else x for x in args)
    if isinstance(func, np.ufunc):
        from ..functions import ufuncs  # on first use: `import pyop` stays light

        specs = ufuncs.infer(func, "__call__", to_specs(samples), {})
    else:
        found = rules.lookup(func)
        specs = Spec() if found is None else found(*to_specs(samples))
    return add_node(func, args, specs, func.__name__)


def add_node(func: Callable[..., Any], args: tuple[Any, ...], specs: Any, name: str, numpys: bool = False) -> Any:
    """Add a node that calls a function with Python numbers for Numbers, and with scalars of NumPy if there are any."""
    fn = OnNumbers(func, tuple([is_number(x) or (2 if numpys else False) for x in args]))
    given = tuple(x._value if is_number(x) else x for x in args)
    return apply(fn, given, {}, specs, name=name, scalar=is_scalar(func, args, {}))


def call_on_numbers(op: Callable[..., Any], kind: type, *operands: Any) -> Number:
    """Return the Python number that a function makes of Python numbers."""
    value = add_node(op, operands, Spec(DTYPES_OF_NODES[kind], ()), op.__name__)
    return Number(kind, value, places_in(*operands))


NUMBERS.append(Number)
