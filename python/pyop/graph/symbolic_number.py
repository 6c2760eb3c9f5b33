"""`Number`: a Python number that is not known yet, while `pyop.compile` traces a function.

NumPy treats a Python number weakly: a float32 array times 2.0 is float32; times a Value of one element it would be
float64. So a function under trace gets a Number for a Python number, which decides operation by operation, as NumPy
does, to what dtype it is converted, and adds the conversion to the graph. Whatever cannot be done without knowing the
number (a comparison that is branched on, ``range(n)``, ``math.sin(t)``, text) raises `Specialise`: the function is then
traced once more with the number itself, and the plan holds for that number only.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from .. import functions as rules
from .._core import Value
from ..declare.dims import Dim
from ..declare.rebuild import replaced, walk
from ..declare.spec import Spec
from ..functions.surface import COMPARISONS, OPERATORS, SIGNS
from .array_protocol import NUMBERS, to_specs
from .deciding import OfState, Specialise, recorded_loop
from .forms import is_scalar
from .number_calls import OnNumbers, quotient, real_power
from .sizes import apply

__all__ = ["Number", "call_in_python", "counted", "is_number", "set_power", "size_number", "specialise"]

_DTYPES = {float: np.dtype(np.float64), int: np.dtype(np.int64), complex: np.dtype(np.complex128)}
_DTYPES_OF_NODES = {**_DTYPES, bool: np.dtype(np.bool_)}


class Number:
    """A Python float, int or complex (`kind`) that a plan will be given: `value` is it as an array of one element,
    `places` the leaves of the arguments that it was computed from.
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
        known = all(is_number(x) or isinstance(x, _OPERANDS) or type(x) in _DTYPES for x in inputs)
        truth = any(is_number(x) and x._kind is bool for x in inputs)
        if method != "__call__" or kwargs or len(inputs) != ufunc.nin or not known or truth:
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
        if func is np.result_type and not kwargs and all(x._kind is not int for x in args if is_number(x)):
            return func(*[x._kind(1) if is_number(x) else x for x in args])  # of an int it is asked whether it fits
        # Functions whose result does not depend on the number but in its elements.
        known = func is np.where and len(args) == 3 and all(map(_is_plain, args))
        if not kwargs and (known or (func is np.clip and any(isinstance(x, Value) for x in args))):
            return _python_call(func, args)
        if func not in _OTHERWISE and _are_as_arrays(args, kwargs):
            with contextlib.suppress(Exception):  # what the function refuses so, it may do with the number
                return func(*replaced(args, _as_value), **replaced(kwargs, _as_value))
        return specialise(args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        specialise(self)

    # --- what needs the number

    def _fits(self, dtype: np.dtype[Any]) -> bool:
        """Say whether it is written into an array of the dtype without being known."""
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

    def __and__(self, other: Any) -> Any:
        return _of_truths(np.logical_and, self, other)

    def __or__(self, other: Any) -> Any:
        return _of_truths(np.logical_or, self, other)

    def __xor__(self, other: Any) -> Any:
        return _of_truths(np.logical_xor, self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __round__(self, digits: Any = None) -> Any:
        # Without digits it is an int, of any size.
        return (
            call_on_numbers(round, float, self, digits)
            if self._kind is float and type(digits) is int
            else specialise(self)
        )

    def __divmod__(self, other: Any) -> Any:
        return _divmod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _divmod(other, self)

    def __getattr__(self, name: str) -> Any:
        if self._kind is complex and name in ("real", "imag"):
            return Number(float, getattr(self._value, name), self._places)
        if self._kind is complex and name == "conjugate":
            return lambda: Number(complex, np.conjugate(self._value), self._places)
        if hasattr(self._kind, name):
            specialise(self)
        raise AttributeError(f"{self._kind.__name__!r} object has no attribute {name!r}")

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self


def counted(size: Any, graph: Any) -> Any:
    """A symbolic size as a Value of the graph: an int64 that is a scalar."""
    node = graph._counters.get(size.name) if size.name is not None else None
    if node is not None:
        return graph._value(node, 0)
    return apply(size_number, (size,), {}, Spec(_DTYPES[int], ()), name="counter", scalar=True)


def size_number(size: int) -> Any:  # a step knows it
    return np.asarray(size, np.int64)


_OPERANDS = (Value, np.ndarray, np.generic)


def is_number(x: Any) -> bool:
    """Whether `x` is a Number; isinstance would ask what it stands for."""
    return type(x) is Number


def _is_plain(x: Any) -> bool:
    return is_number(x) or isinstance(x, Value) or type(x) in (np.ndarray, bool, *_DTYPES)


def _places_in(*args: Any) -> frozenset[int]:
    """The leaves that the Numbers among the arguments come from, in containers too."""
    return frozenset().union(*[x._places for x in walk(args) if is_number(x)])


_EVERY = frozenset(range(1 << 10))  # whatever number stands there
_SUM_COMPENSATES = sys.version_info >= (3, 12)


def specialise(*args: Any) -> NoReturn:
    """Ask for the numbers among the arguments."""
    raise Specialise(_places_in(*args))


def _kind_or_dtype(x: Any) -> Any:
    """Return what NumPy's promotion looks at: a Python type, or a dtype; None if it is not known."""
    return x._kind if is_number(x) else type(x) if type(x) in _DTYPES else x.dtype


_ALIKE = frozenset("?bhilqBHILQdD")
"""Dtypes with which NumPy makes the same of a Python float and of an array of one."""


_OTHERWISE = frozenset((np.real, np.imag, np.isreal, np.iscomplex, np.real_if_close, np.result_type))
_OTHERWISE |= frozenset((np.copyto, np.put, np.put_along_axis, np.putmask, np.place, np.fill_diagonal, np.can_cast))
"""Functions that do something else for a Python number, or put it into an array of another dtype."""


def _are_as_arrays(*args: Any) -> bool:
    """Say whether a function that takes arrays makes the same of the Numbers as of arrays of them."""
    kinds = {x._kind if is_number(x) else x.dtype for x in walk(args) if is_number(x) or isinstance(x, _OPERANDS)}
    return all(
        kind is float or (kind is not None and not isinstance(kind, type) and kind.char in _ALIKE) for kind in kinds
    )


def _as_value(x: Any) -> Any:
    return x._value if is_number(x) else x


def _as_dtype(x: Number, dtype: np.dtype[Any]) -> Any:
    """The Number as an array of the dtype that NumPy makes it; None where only NumPy knows how."""
    if dtype == x._value.dtype:
        return x._value
    # A Python int goes its own way into the other dtypes: through double, or with a check that it fits.
    direct = dtype.kind in "fc" if x._kind is not int else dtype.char in "dD"
    return x._value.astype(dtype) if direct else None


def _python_call(func: Any, args: tuple[Any, ...]) -> Any:
    """A node that calls the function with Python numbers, as the traced function would."""
    samples = tuple(x._kind(1) if is_number(x) else x for x in args)
    if isinstance(func, np.ufunc):
        from ..functions import ufuncs  # on first use: `import pyop` stays light

        specs = ufuncs.infer(func, "__call__", to_specs(samples), {})
    else:
        found = rules.lookup(func)
        specs = Spec() if found is None else found(*to_specs(samples))
    return _node(func, args, specs, func.__name__)


def _node(func: Callable[..., Any], args: tuple[Any, ...], specs: Any, name: str, numpys: bool = False) -> Any:
    """A node that calls a function with Python numbers in place of Numbers, and scalars of NumPy if there are any."""
    fn = OnNumbers(func, tuple([is_number(x) or (2 if numpys else False) for x in args]))
    given = tuple(x._value if is_number(x) else x for x in args)
    return apply(fn, given, {}, specs, name=name, scalar=is_scalar(func, args, {}))


# --- operators


def _between_numbers(op: Callable[..., Any], a: Any, b: Any) -> Any:
    """Two Python numbers, at least one of them a Number: Python computes, with its own errors."""
    kinds = {x._kind if is_number(x) else type(x) for x in (a, b)}
    kind: type = complex if complex in kinds else float
    if kinds == {int} and op in _OF_INTS and (loop := _recorded(a if is_number(a) else b)) is not None:
        return loop.counted(op(*[x._value[()] if is_number(x) else np.int64(x) for x in (a, b)]))
    if kinds == {int} and any(type(place) is OfState for place in _places_in(a, b)) and op is not operator.truediv:
        from .state_numbers import of_int64  # on first use

        made = of_int64(op, *map(_as_value, (a, b)))
        return specialise(a, b) if made is None else Number(int, made, _places_in(a, b))
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
    return Number(float, x._value.astype(_DTYPES[float]), x._places)


def _is_real_power(a: Any, b: Any) -> bool:
    """Return whether a power of floats is a float, or an error, whatever the Numbers are: no root of a negative one."""
    if not is_number(b):
        return type(b) is int or b.is_integer()
    return not is_number(a) and a >= 0


def call_on_numbers(op: Callable[..., Any], kind: type, *operands: Any) -> Number:
    """A Python number made of Python numbers."""
    value = _node(op, operands, Spec(_DTYPES_OF_NODES[kind], ()), op.__name__)
    return Number(kind, value, _places_in(*operands))


_MOST_CALLS = 8


def call_in_python(op: Callable[..., Any], *operands: Any) -> Number:
    """A float made of Python numbers by a node that calls Python, which takes ten times what the call does: a few pay
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
    if is_number(other) or type(other) in _DTYPES:
        return _between_numbers(op, a, b)
    if isinstance(other, bool | Dim):
        specialise(a, b)
    if not isinstance(other, _OPERANDS):
        return NotImplemented
    return _with_array(op, ufunc, a, b)


def _with_array(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """A Number, and an array or a scalar of NumPy."""
    number, other = (a, b) if is_number(a) else (b, a)
    if number._kind is complex and number is a and is_float_scalar(other):
        return complex_with_scalar(ufunc, a, other)
    if number._kind is bool:
        specialise(a, b)
    if other._is_scalar if isinstance(other, Value) else isinstance(other, np.generic):
        return _with_scalar(op, ufunc, a, b)
    if op is operator.pow and not is_number(a):  # the operator is not np.power for some exponents
        specs = np.power(a, _sample(b)).spec if isinstance(a, Value) else Spec()
        return _node(op, (a, b), specs, "power")
    return ufunc(a, b)


_resolutions: dict[Any, tuple[np.dtype[Any], ...]] = {}


_OF_COMPLEX = {np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul}
_OF_COMPLEX |= {np.true_divide: operator.truediv, np.power: operator.pow}


def is_float_scalar(x: Any) -> bool:
    """Return whether `x` is a float64 scalar of NumPy, which is a float to Python's complex numbers."""
    return (x._is_scalar if isinstance(x, Value) else isinstance(x, np.generic)) and x.dtype == np.float64


_AS_NUMPY: dict[Any, np.ufunc] = {}
if sys.version_info < (3, 14):  # from then on a float has no imaginary part where it meets a complex number
    _AS_NUMPY = {op: ufunc for ufunc, op in _OF_COMPLEX.items() if ufunc in (np.add, np.subtract, np.multiply)}


def _complex(ufunc: np.ufunc, a: Any, b: Any) -> Number:
    """Return a sum, difference or product of Python's numbers, one of them complex, for which NumPy's scalars have the
    same formula. Python says nothing of an overflow.
    """
    graph: Any = next(x for x in (a, b) if is_number(x))._value.graph
    graph._overflows = True  # a flag has the function itself run
    values = [(x._value if is_number(x) else np.asarray(x)).astype(_DTYPES[complex])[()] for x in (a, b)]
    return Number(complex, ufunc(*values), _places_in(a, b))


def complex_with_scalar(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """Return what Python computes of its complex number `a` and a float64 scalar `b`: one of its own, where NumPy would
    make a scalar, with other bits of quotients and powers.
    """
    graph: Any = next(x for x in (b, getattr(a, "_value", None)) if isinstance(x, Value)).graph
    given = Number(float, b, frozenset()) if isinstance(b, Value) else float(b)
    made = _between_numbers(_OF_COMPLEX[ufunc], a, given)
    return made if graph._deciding is not None else made._value[()]


def _resolved(ufunc: np.ufunc, a: Any, b: Any) -> tuple[np.dtype[Any], ...]:
    """The dtypes of a ufunc of two operands of these types or dtypes."""
    key = (ufunc, type(a), a, type(b), b)  # a dtype equals the type that it is of
    found = _resolutions.get(key)
    if found is None:
        found = _resolutions[key] = ufunc.resolve_dtypes((a, b, *[None] * ufunc.nout))
    return found


def _with_scalar(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """The arithmetic that NumPy has for scalars: in the scalar's type, which the number becomes."""
    kinds = [_kind_or_dtype(x) for x in (a, b)]
    if not any(kind is None for kind in kinds):  # dtype == None is True of float64
        wanted = _resolved(ufunc, *kinds)
        strong = [_as_dtype(x, wanted[k]) if is_number(x) else x for k, x in enumerate((a, b))]
        if all(x is not None and x.dtype == wanted[0] for x in strong):
            return op(*strong)
    sample = op(*[_sample(x) if is_number(x) else x for x in (a, b)])
    specs = tuple(map(_spec_of, sample)) if isinstance(sample, tuple) else _spec_of(sample)
    return _node(op, (a, b), specs, ufunc.__name__, numpys=True)


def _spec_of(x: Any) -> Spec:
    return x.spec if isinstance(x, Value) else Spec(x.dtype, ()) if isinstance(x, np.generic) else Spec()


def _divmod(a: Any, b: Any) -> Any:
    other = b if is_number(a) else a
    if isinstance(other, _OPERANDS):
        return _with_array(divmod, np.divmod, a, b)
    if not is_number(other) and type(other) not in (float, int):
        specialise(a, b)
    if float not in {x._kind if is_number(x) else type(x) for x in (a, b)}:
        specialise(a, b)
    return call_on_numbers(quotient, float, a, b), _between_numbers(operator.mod, a, b)


def _of_truths(ufunc: np.ufunc, a: Number, b: Any) -> Number:
    """Return ``a & b``, ``a | b`` or ``a ^ b`` of Python's truths."""
    if a._kind is not bool or (b._kind if is_number(b) else type(b)) is not bool:
        specialise(a, b)
    return Number(bool, ufunc(a._value, _as_value(b)), _places_in(a, b))


def _compare(op: Callable[..., Any], ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """An array of truths, or a truth that is not known: whoever decides by it asks for the numbers."""
    if isinstance(b, _OPERANDS):
        return _with_array(op, ufunc, a, b)
    if not is_number(b) and type(b) not in _DTYPES_OF_NODES:
        specialise(a, b)
    kinds = {x._kind if is_number(x) else type(x) for x in (a, b)}
    ints = kinds == {int} and all(is_number(x) or abs(x) < 1 << 63 for x in (a, b))
    if ints or kinds == {bool} or all(map(_is_float_in_comparisons, (a, b))):
        return Number(bool, ufunc(*[_as_value(x) for x in (a, b)]), _places_in(a, b))
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
        if op is operator.add and type(other) is int and other == 0 and _SUM_COMPENSATES:
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


for _name, (_, _ufunc) in OPERATORS.items():
    if not hasattr(Number, f"__{_name}__"):  # those of integers alone need the number
        _forward, _backward = _operator(_name, _ufunc)
        setattr(Number, f"__{_name}__", _forward)
        setattr(Number, f"__r{_name}__", _backward)
for _name, _ufunc in COMPARISONS.items():
    setattr(Number, f"__{_name}__", _comparison(_name, _ufunc))
for _name in SIGNS:
    setattr(Number, f"__{_name}__", _sign(_name))
NUMBERS.append(Number)
