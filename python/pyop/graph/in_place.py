"""Assign to Values in place (``+=`` and its kin), where it takes more than the ufunc's node.

Those are ``float32 += float64``, ``complex *=``, ``**=``, ``@=``, and operands whose dtype or shape is not known. The
dtype and shape are the target's, and NumPy's errors are raised where it has them. Such a node copies its target and
runs NumPy's own operator on the copy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Tensor, Value, fill_up_call, take_over
from ..declare.dims import Dim, same
from ..declare.rebuild import MergedByValue
from ..functions.operand import operand
from ..functions.surface import OPERATORS
from ..refusals import refusal
from .array_protocol import to_specs
from .counter import is_counter
from .powers import power_of
from .sizes import apply
from .symbolic_number import is_number, specialise

__all__ = ["InPlace", "in_place"]

_UFUNCS: dict[str, np.ufunc] = {f"i{name}": ufunc for name, (_, ufunc) in OPERATORS.items()}


class InPlace(MergedByValue):
    """Compute ``operator.iadd(target.copy(), other)`` or its kin, by the name of the function in `operator`.

    Where a plan donates the target, the operator writes into the target itself.
    """

    __slots__ = ("method", "operator")

    def __init__(self, method: str) -> None:
        self.method = method
        self.operator: Callable[[Any, Any], Any] = getattr(operator, method)

    @property
    def ufunc(self) -> np.ufunc:
        """Return the ufunc that it computes, apart from the dtype of the result."""
        return _UFUNCS[self.method]

    def __call__(self, target: Any, other: Any) -> Any:
        return self.operator(target if take_over(target) else np.array(target, order="K"), other)

    @property
    def __name__(self) -> str:
        return self.method

    @property
    def _pyop_gradient_rule(self) -> Any:
        from ..gradients import table

        return table.lookup(_UFUNCS[self.method])

    def __repr__(self) -> str:
        return f"InPlace({self.method!r})"


fill_up_call("in_place_call", InPlace)


def in_place(method: str, symbol: str, target: Any, other: Any) -> Any:
    """Return the Value that an array becomes by an augmented assignment, or the target if that is already written.

    `method` is the name of the function in `operator`, `symbol` is for messages. It returns NotImplemented where the
    other operand decides. NumPy's errors are raised, or a refusal where another view shows the memory of the target.

    >>> import numpy as np, pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("float32[3]")
    >>> y = x * 1
    >>> y += np.ones(3)
    >>> y.dtype
    dtype('float32')
    """
    from ..functions import ufuncs

    other = other.number() if is_counter(other) else other
    if is_number(other):
        return _with_number(method, symbol, target, other)
    if isinstance(other, Tensor):
        raise refusal(
            f"`{symbol}` of a Value and a Tensor: a Tensor is recorded as it is computed, a Value when its graph runs; "
            "pass the Tensor as an argument"
        )
    hook = getattr(type(other), "__array_ufunc__", _ABSENT)
    if hook is None:
        return NotImplemented
    if hook is not _ABSENT and not issubclass(type(other), (Value, np.ndarray, np.generic)):
        raise refusal(
            f"`{symbol}` of a Value and a {type(other).__name__}, which computes by rules of its own: write "
            f"`x = x {symbol[:-1]} y`, which makes what those say"
        )
    if not (hook is not _ABSENT or isinstance(other, (int, float, complex, np.generic, list, tuple, Dim, str, bytes))):
        return NotImplemented
    if method == "imatmul":
        _check_matrix_product(target, other)
        other = _without_leading(symbol, target, other)
    ufunc = _UFUNCS[method]
    _check_dtype(ufunc, target, other)  # before the shapes, as NumPy does
    spec = ufuncs.infer(ufunc, "__call__", (target.spec, to_specs(other)), {})
    _check_shape(ufunc, target, spec)
    target._check_writable(symbol)
    if _goes_by_memory(method, target, other):
        from .writes_by_functions import perform

        perform(getattr(operator, method), (target, other), {}, ((0,),), symbol)
        return target
    # An array of no dimension stays one, where an operator gives a scalar.
    real = target.ndim != 0 and target.dtype is not None and target.dtype.kind in "iuf"
    if method == "ipow" and real and spec == target.spec and (type(other) in (int, float, complex) or _is_flat(other)):
        return operator.pow(target, other)
    return apply(InPlace(method), (target, other), {}, target.spec, name=ufunc.__name__, scalar=False)


_ABSENT = object()


def _goes_by_memory(method: str, target: Any, other: Any) -> bool:
    """Return whether the layout of memory chooses NumPy's loop, and with it the last bits.

    That is so where elements do not lie side by side, or are read from the memory that is written.
    """
    if not target._views() and not (isinstance(other, Value) and target._is_related(other)):
        return False
    of_complex = target.dtype is None or target.dtype.kind not in "biuf"
    if method == "ipow":
        return of_complex or type(other) not in (int, float) or power_of(target.dtype, other) in (None, np.power)
    return method == "imatmul" or (method in ("imul", "itruediv") and of_complex)


def _is_flat(x: Any) -> bool:
    """Return whether `x` is a Value beside which NumPy lays out a new array as it does the target."""
    return isinstance(x, Value) and x.ndim is not None and x.ndim < 2


def _with_number(method: str, symbol: str, target: Any, other: Any) -> Any:
    """Apply the augmented assignment with a Python number that is not known yet."""
    if target.dtype is None or target.dtype.kind not in "biuf" or method == "ipow" or not target.ndim:
        specialise(other)
    _check_dtype(_UFUNCS[method], target, other._kind(1))
    target._check_writable(symbol)
    made = getattr(operator, method.replace("i", "", 1))(target, other)
    if not isinstance(made, Value) or made.spec != target.spec:
        specialise(other)
    return made


def _check_matrix_product(target: Any, other: Any) -> None:
    if operand(target.spec).ndim == 0 or operand(to_specs(other)).ndim in (0, 1):
        raise ValueError(
            "inplace matrix multiplication requires the first operand to have at least one and the second at least "
            "two dimensions."
        )


def _without_leading(symbol: str, target: Any, other: Any) -> Any:
    """Return `other` without leading axes of size 1 that the target lacks: NumPy drops them."""
    sizes = operand(to_specs(other)).shape
    if sizes is None or target.ndim is None or len(sizes) <= max(target.ndim, 2):
        return other
    leading = sizes[: len(sizes) - max(target.ndim, 2)]
    if all(same(n, 1) for n in leading):
        return np.squeeze(other, tuple(range(len(leading))))
    if any(same(n, 1) is False for n in leading):
        return other  # NumPy's error
    raise refusal(
        f"`{symbol}` of arrays with {target.ndim} and {len(sizes)} axes, of which NumPy leaves out those of size 1, "
        f"and here that size is not known: write `x = (x {symbol[:-1]} y)[0]`, or declare the size"
    )


def _check_dtype(ufunc: np.ufunc, target: Any, other: Any) -> None:
    """Raise NumPy's error if the result cannot be cast to the target's dtype."""
    part = operand(to_specs(other))
    kinds = "biufc"
    if part.dtype is None or target.dtype is None or part.kind not in kinds or target.dtype.kind not in kinds:
        return
    ufunc.resolve_dtypes((target.dtype, part.weak or part.dtype, target.dtype))


def _check_shape(ufunc: np.ufunc, target: Any, found: Any) -> None:
    """Raise NumPy's error if the result has another shape than the target."""
    have, want = operand(found).shape, operand(target.spec).shape
    if have is None or want is None:
        return
    if len(have) != len(want) or any(same(m, n) is False for m, n in zip(have, want, strict=True)):
        shapes = tuple(
            "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")" for shape in (want, have)
        )
        raise ValueError(
            f"non-broadcastable output operand with shape {shapes[0]} doesn't match the broadcast shape {shapes[1]}"
        )
