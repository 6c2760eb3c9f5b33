"""Give Python numbers that are not known (`Number`) their operators: among them, and beside arrays and scalars."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import partialmethod
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dims import Dim
from ..declare.spec import Spec
from ..functions.surface import COMPARISONS, OPERATORS, SIGNS
from .deciding import OfState, Specialise, recorded_loop
from .operands import is_written_as_operator
from .symbolic_number import (
    DTYPES,
    DTYPES_OF_NODES,
    OPERANDS,
    Number,
    add_node,
    as_dtype,
    as_value,
    call_on_numbers,
    is_number,
    kind_or_dtype,
    places_in,
    quotient,
    real_power,
    specialise,
)

__all__ = ["call_in_python", "complex_with_scalar", "set_power"]

_EVERY = frozenset(range(1 << 10))  # whatever number stands there
_SUM_COMPENSATES = sys.version_info >= (3, 12)


def _between_numbers(op: Callable[..., Any], a: Any, b: Any) -> Any:
    """Compute with two Python numbers, at least one of them a Number, as Python does, with its own errors."""
    kinds = {x._kind if is_number(x) else type(x) for x in (a, b)}
    kind: type = complex if complex in kinds else float
    if kinds == {int} and op in _OF_INTS and (loop := _recorded(a if is_number(a) else b)) is not None:
        return loop.counted(op(*[x._value[()] if is_number(x) else np.int64(x) for x in (a, b)]))
    if kinds == {int} and any(type(place) is OfState for place in places_in(a, b)) and op is not operator.truediv:
        from .state_numbers import of_int64  # on first use

        made = of_int64(op, *map(as_value, (a, b)))
        return specialise(a, b) if made is None else Number(int, made, places_in(a, b))
    # int may grow beyond an int64, and a float to a power may be complex.
    if bool in kinds and float in kinds:
        return op(*[_as_float(x) if is_number(x) and x._kind is bool else x for x in (a, b)])
    if bool in kinds or (kinds == {int} and op is not operator.truediv):
        specialise(a, b)
    if op is operator.pow and kind is float and not _is_real_power(a, b):
        made = _power(a, b)
        return call_in_python(real_power, a, b) if made is None else made
    if kind is complex and op in _AS_NUMPY:
        return _complex(_AS_NUMPY[op], a, b)
    if kind is float and kinds == {int, float}:  # Python converts the int first, too
        a, b = (_as_float(x) if is_number(x) and x._kind is int else x for x in (a, b))
    return call_on_numbers(op, kind, a, b)


_OF_INTS = frozenset((operator.add, operator.sub, operator.mul))


def _recorded(x: Number) -> Any:
    """Return the loop that is recorded, which cannot be done for each value of a number."""
    graph: Any = x._value.graph
    return recorded_loop(graph)


_power: Callable[[Any, Any], Any] = lambda a, b: None  # noqa: E731


def set_power(power: Callable[[Any, Any], Any]) -> None:
    """Tell how floats are raised to a power that may be complex, from above."""
    global _power
    _power = power


def _as_float(x: Number) -> Number:
    return Number(float, x._value.astype(DTYPES[float]), x._places)


def _is_real_power(a: Any, b: Any) -> bool:
    """Return whether a power of floats is a float, or an error, whatever the Numbers are: no root of a negative one."""
    if not is_number(b):
        return type(b) is int or b.is_integer()
    return not is_number(a) and a >= 0


_MOST_CALLS = 8


def call_in_python(op: Callable[..., Any], *operands: Any) -> Number:
    """Return a float made of Python numbers by a node that calls Python: a few pay
    where the arrays that they are for are computed with, many or those of a loop do not.
    """
    graph: Any = next(x for x in operands if is_number(x))._value.graph
    deciding = graph._deciding
    if graph._rolling or deciding is None or deciding.calls_in_python >= _MOST_CALLS:
        specialise(*operands)
    deciding.calls_in_python += 1
    if op is real_power:
        graph._keep(op)
    return call_on_numbers(op, float, *operands)


def _binary(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    other = b if is_number(a) else a
    if is_number(other) or type(other) in DTYPES:
        return _between_numbers(op, a, b)
    if isinstance(other, bool | Dim):
        specialise(a, b)
    if not isinstance(other, OPERANDS):
        return NotImplemented
    return _with_array(op, ufunc, a, b)


def _with_array(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """Compute with a Number, and an array or a scalar of NumPy."""
    number, other = (a, b) if is_number(a) else (b, a)
    if number._kind is complex and number is a and ufunc in _OF_COMPLEX and is_float_scalar(other):
        return complex_with_scalar(ufunc, a, other)
    if number._kind is bool:
        specialise(a, b)
    if other._is_scalar if isinstance(other, Value) else isinstance(other, np.generic):
        return _with_scalar(op, ufunc, a, b)
    if op is operator.pow and not is_number(a):  # the operator is not np.power for some exponents
        specs = np.power(a, _sample(b)).spec if isinstance(a, Value) else Spec()
        return add_node(op, (a, b), specs, "power")
    return ufunc(a, b)


_resolutions: dict[Any, tuple[np.dtype[Any], ...]] = {}


_OF_COMPLEX: dict[Any, Callable[[Any, Any], Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
}
_OF_COMPLEX |= {np.true_divide: operator.truediv, np.power: operator.pow}


def is_float_scalar(x: Any) -> bool:
    """Return whether `x` is a float64 scalar of NumPy, which is a float to Python's complex numbers."""
    scalar = x._is_scalar if isinstance(x, Value) else isinstance(x, np.generic)
    return bool(scalar and x.dtype == np.float64)


_AS_NUMPY: dict[Any, np.ufunc] = {}
if sys.version_info < (3, 14):  # from then on a float has no imaginary part where it meets a complex number
    _AS_NUMPY = {op: ufunc for ufunc, op in _OF_COMPLEX.items() if ufunc in (np.add, np.subtract, np.multiply)}


def _complex(ufunc: np.ufunc, a: Any, b: Any) -> Number:
    """Return a sum, difference or product of Python's numbers, one of them complex, for which NumPy's scalars have the
    same formula. Python says nothing of an overflow.
    """
    graph: Any = next(x for x in (a, b) if is_number(x))._value.graph
    graph._overflows = True  # a flag has the function itself run
    values = [(x._value if is_number(x) else np.asarray(x)).astype(DTYPES[complex])[()] for x in (a, b)]
    return Number(complex, ufunc(*values), places_in(a, b))


def complex_with_scalar(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """Return what Python computes of its complex number `a` and a float64 scalar `b`: one of its own, where NumPy would
    make a scalar, with other bits of quotients and powers.
    """
    graph: Any = next(x for x in (b, getattr(a, "_value", None)) if isinstance(x, Value)).graph
    given = Number(float, b, frozenset()) if isinstance(b, Value) else float(b)
    made = _between_numbers(_OF_COMPLEX[ufunc], a, given)
    return made if graph._deciding is not None else made._value[()]


def _resolved(ufunc: np.ufunc, a: Any, b: Any) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a ufunc of two operands of these types or dtypes."""
    key = (ufunc, type(a), a, type(b), b)  # a dtype equals the type that it is of
    found = _resolutions.get(key)
    if found is None:
        found = _resolutions[key] = ufunc.resolve_dtypes((a, b, *[None] * ufunc.nout))
    return found


def _with_scalar(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """Compute as NumPy's scalars do: in the scalar's type, which the number becomes."""
    kinds = [kind_or_dtype(x) for x in (a, b)]
    if not any(kind is None for kind in kinds):  # dtype == None is True of float64
        wanted = _resolved(ufunc, *kinds)
        strong = [as_dtype(x, wanted[k]) if is_number(x) else x for k, x in enumerate((a, b))]
        if all(x is not None and x.dtype == wanted[0] for x in strong):
            return op(*strong)
    sample = op(*[_sample(x) if is_number(x) else x for x in (a, b)])
    specs = tuple(map(_spec_of, sample)) if isinstance(sample, tuple) else _spec_of(sample)
    return add_node(op, (a, b), specs, ufunc.__name__, numpys=True)


def _spec_of(x: Any) -> Spec:
    return x.spec if isinstance(x, Value) else Spec(x.dtype, ()) if isinstance(x, np.generic) else Spec()


def _divmod(a: Any, b: Any) -> Any:
    other = b if is_number(a) else a
    if isinstance(other, OPERANDS):
        return _with_array(divmod, np.divmod, a, b)
    if not is_number(other) and type(other) not in (float, int):
        specialise(a, b)
    if float not in {x._kind if is_number(x) else type(x) for x in (a, b)}:
        specialise(a, b)
    return call_on_numbers(quotient, float, a, b), _between_numbers(operator.mod, a, b)


def _of_truths(a: Number, ufunc: np.ufunc, b: Any) -> Number:
    """Return ``a & b``, ``a | b`` or ``a ^ b`` of Python's truths."""
    if a._kind is not bool or (b._kind if is_number(b) else type(b)) is not bool:
        specialise(a, b)
    return Number(bool, ufunc(a._value, as_value(b)), places_in(a, b))


def _compare(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """Return an array of truths, or a truth that is not known: whoever decides by it asks for the numbers."""
    if isinstance(b, OPERANDS):
        return _with_array(op, ufunc, a, b)
    if not is_number(b) and type(b) not in DTYPES_OF_NODES:
        specialise(a, b)
    kinds = {x._kind if is_number(x) else type(x) for x in (a, b)}
    ints = kinds == {int} and all(is_number(x) or abs(x) < 1 << 63 for x in (a, b))
    if ints or kinds == {bool} or all(map(_is_float_in_comparisons, (a, b))):
        return Number(bool, ufunc(*[as_value(x) for x in (a, b)]), places_in(a, b))
    return call_on_numbers(op, bool, a, b)


def _is_float_in_comparisons(x: Any) -> bool:
    """Return True for a float, and for an int that is one without rounding."""
    if is_number(x):
        return x._kind is float
    return type(x) is float or (type(x) is int and abs(x) < 1 << 53)


def _sample(x: Number) -> Any:
    return x._kind(1)


def _operator(name: str, ufunc: np.ufunc) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    op = getattr(operator, name)

    def forward(self: Any, other: Any) -> Any:
        return _binary(op, ufunc, self, other)

    def backward(self: Any, other: Any) -> Any:
        starts_sum = op is operator.add and type(other) is int and other == 0 and _SUM_COMPENSATES
        if starts_sum and not is_written_as_operator(2):
            raise Specialise(_EVERY)  # sum() of Python's floats keeps what rounding takes away
        return _binary(op, ufunc, other, self)

    return forward, backward


def _comparison(name: str, ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    op = getattr(operator, name)
    return lambda self, other: _compare(op, ufunc, self, other)


def _sign(name: str) -> Callable[[Any], Any]:
    op = getattr(operator, name)

    def sign(self: Any) -> Any:
        if self._kind not in (float, complex):
            return specialise(self)  # -(-2**63) is no int64
        return call_on_numbers(op, float if op is operator.abs else self._kind, self)

    return sign


def _rounded(self: Any, digits: Any = None) -> Any:
    # Without digits it is an int, of any size.
    if self._kind is float and type(digits) is int:
        return call_on_numbers(round, float, self, digits)
    return specialise(self)


_NUMBER: Any = Number
_NUMBER.__round__ = _rounded
_NUMBER.__divmod__ = _divmod
_NUMBER.__rdivmod__ = lambda self, other: _divmod(other, self)
_OF_TRUTHS: dict[str, np.ufunc] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
for _name, _ufunc in _OF_TRUTHS.items():
    for _side in ("__", "__r"):
        setattr(Number, f"{_side}{_name}__", partialmethod(_of_truths, _ufunc))
for _name, (_, _ufunc) in OPERATORS.items():
    if not hasattr(Number, f"__{_name}__"):  # those of integers alone need the number
        _forward, _backward = _operator(_name, _ufunc)
        setattr(Number, f"__{_name}__", _forward)
        setattr(Number, f"__r{_name}__", _backward)
for _name, _ufunc in COMPARISONS.items():
    setattr(Number, f"__{_name}__", _comparison(_name, _ufunc))
for _name in SIGNS:
    setattr(Number, f"__{_name}__", _sign(_name))
