"""Ufuncs, where and clip."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Dim
from ...onnx.standard import standard
from ...onnx.standard.emitter import Emitter, NotStandard, Operand

__all__ = ["emit_ufunc", "loop_dtypes", "same_dtype", "truth"]

_FLOAT, _NUMBER, _INT = "f", "fiu", "iu"

# Ufunc: the operator, and the kinds of dtype for which it is the same.
_SIMPLE: dict[Any, tuple[str, str]] = {
    np.absolute: ("Abs", _NUMBER),
    np.add: ("Add", _NUMBER),
    np.arccos: ("Acos", _FLOAT),
    np.arccosh: ("Acosh", _FLOAT),
    np.arcsin: ("Asin", _FLOAT),
    np.arcsinh: ("Asinh", _FLOAT),
    np.arctan: ("Atan", _FLOAT),
    np.arctanh: ("Atanh", _FLOAT),
    np.bitwise_and: ("BitwiseAnd", _INT),
    np.bitwise_or: ("BitwiseOr", _INT),
    np.bitwise_xor: ("BitwiseXor", _INT),
    np.ceil: ("Ceil", _FLOAT),
    np.cos: ("Cos", _FLOAT),
    np.cosh: ("Cosh", _FLOAT),
    np.divide: ("Div", _FLOAT),
    np.equal: ("Equal", "fiub"),
    np.exp: ("Exp", _FLOAT),
    np.fabs: ("Abs", _FLOAT),
    np.floor: ("Floor", _FLOAT),
    np.greater: ("Greater", _NUMBER),
    np.greater_equal: ("GreaterOrEqual", _NUMBER),
    np.invert: ("BitwiseNot", _INT),
    np.isnan: ("IsNaN", _FLOAT),
    np.isinf: ("IsInf", _FLOAT),
    np.less: ("Less", _NUMBER),
    np.less_equal: ("LessOrEqual", _NUMBER),
    np.log: ("Log", _FLOAT),
    np.matmul: ("MatMul", _NUMBER),
    np.maximum: ("Max", _NUMBER),
    np.minimum: ("Min", _NUMBER),
    np.multiply: ("Mul", _NUMBER),
    np.negative: ("Neg", "fi"),
    np.positive: ("Identity", _NUMBER),
    np.power: ("Pow", _FLOAT),  # of integers: below
    np.reciprocal: ("Reciprocal", _FLOAT),
    np.rint: ("Round", _FLOAT),
    np.sign: ("Sign", _NUMBER),
    np.sin: ("Sin", _FLOAT),
    np.sinh: ("Sinh", _FLOAT),
    np.sqrt: ("Sqrt", _FLOAT),
    np.subtract: ("Sub", _NUMBER),
    np.tan: ("Tan", _FLOAT),
    np.tanh: ("Tanh", _FLOAT),
}
# The same for truth values.
_LOGICAL = {
    np.add: "Or",
    np.bitwise_and: "And",
    np.bitwise_or: "Or",
    np.bitwise_xor: "Xor",
    np.invert: "Not",
    np.logical_and: "And",
    np.logical_not: "Not",
    np.logical_or: "Or",
    np.logical_xor: "Xor",
    np.maximum: "Or",
    np.minimum: "And",
    np.multiply: "And",
}


def loop_dtypes(ufunc: np.ufunc, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The dtypes of the loop that NumPy takes for these arguments: inputs, then outputs."""
    given: list[Any] = []
    for x in args:
        if isinstance(x, Operand):
            if x.dtype is None:
                raise NotStandard("the dtype of an argument is not known")
            given.append(x.dtype)
        elif type(x) in (int, float, complex):
            given.append(type(x))
        else:
            given.append(int if isinstance(x, Dim) else np.asarray(x).dtype)
    try:
        return tuple(ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout)))
    except (TypeError, ValueError) as error:
        raise NotStandard(f"NumPy has no loop of {ufunc.__name__} for these dtypes: {error}") from None


def _converted(e: Emitter, x: Any, dtype: Any) -> Operand:
    if isinstance(x, Operand | Dim):
        return e.cast(e.operand(x), dtype)
    return e.constant(np.asarray(x, dtype))


def emit_ufunc(e: Emitter, ufunc: np.ufunc, args: tuple[Any, ...]) -> Operand:
    if ufunc in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not):
        loop: tuple[Any, ...] = (np.dtype(bool),) * (ufunc.nin + 1)
    else:
        loop = loop_dtypes(ufunc, args)
    inputs = [_converted(e, x, dtype) for x, dtype in zip(args, loop, strict=False)]
    kinds = {dtype.kind for dtype in loop[: ufunc.nin]}
    if kinds == {"b"} and ufunc in _LOGICAL:
        return e.add(_LOGICAL[ufunc], *inputs, dtype=bool)
    op_type, allowed = _SIMPLE.get(ufunc, ("", ""))
    if not kinds <= set(allowed):
        raise NotStandard(f"no operator of ONNX does {ufunc.__name__} on {', '.join(map(str, loop[: ufunc.nin]))}")
    if ufunc is np.matmul and any(isinstance(x, Operand) and x.ndim == 0 for x in args):
        raise NotStandard("matmul of a number")
    return e.add(op_type, *inputs, dtype=loop[-1])


def _rule_of(ufunc: np.ufunc) -> Any:
    def unary(e: Emitter, x: Any, /) -> Operand:
        return emit_ufunc(e, ufunc, (x,))

    def binary(e: Emitter, x: Any, y: Any, /) -> Operand:
        return emit_ufunc(e, ufunc, (x, y))

    return unary if ufunc.nin == 1 else binary


for _ufunc in {*_SIMPLE, *_LOGICAL}:
    standard(_ufunc)(_rule_of(_ufunc))


@standard(np.not_equal)
def _not_equal(e: Emitter, x: Any, y: Any, /) -> Operand:
    return e.add("Not", emit_ufunc(e, np.equal, (x, y)), dtype=bool)


@standard(operator.pow, np.power)
def _power(e: Emitter, x: Any, y: Any, /) -> Operand:
    (dtype, *_) = loop_dtypes(np.power, (x, y))
    if dtype.kind in _INT and isinstance(y, int | np.integer) and 1 <= y <= 8:
        # The operator goes through float64; a product wraps around as NumPy's does.
        factor = found = _converted(e, x, dtype)
        for _ in range(int(y) - 1):
            found = e.add("Mul", found, factor)
        return found
    return emit_ufunc(e, np.power, (x, y))


@standard(np.square)
def _square(e: Emitter, x: Any, /) -> Operand:
    (dtype, _) = loop_dtypes(np.square, (x,))
    if dtype.kind not in _NUMBER:
        raise NotStandard(f"no operator of ONNX does square on {dtype}")
    x = _converted(e, x, dtype)
    return e.add("Mul", x, x)


@standard(np.isfinite)
def _isfinite(e: Emitter, x: Any, /) -> Operand:
    x = e.operand(x)
    if x.dtype is None or x.dtype.kind != "f":
        raise NotStandard("isfinite of what is no float")
    return e.add("Not", e.add("Or", e.add("IsNaN", x, dtype=bool), e.add("IsInf", x, dtype=bool)))


@standard(np.conjugate, np.real)
def _real(e: Emitter, x: Any, /) -> Operand:
    made = e.operand(x)
    if made.dtype is None or made.dtype.kind == "c":
        raise NotStandard("complex numbers")
    return made


def same_dtype(e: Emitter, xs: Any) -> list[Operand]:
    """Operands brought to the dtype that NumPy would promote them to."""
    dtypes = []
    for x in xs:
        if isinstance(x, Operand):
            if x.dtype is None:
                raise NotStandard("the dtype of an argument is not known")
            dtypes.append(x.dtype)
        else:
            weak = 0 if isinstance(x, Dim) else x
            dtypes.append(weak if type(weak) in (int, float, complex) else np.asarray(x).dtype)
    dtype = np.result_type(*dtypes)
    if dtype.kind not in "biuf":
        raise NotStandard(f"arrays of {dtype}")
    return [_converted(e, x, dtype) for x in xs]


@standard(np.select)
def _select(e: Emitter, condlist: Any, choicelist: Any, default: Any = 0) -> Operand:
    if not all(isinstance(part, list | tuple) for part in (condlist, choicelist)):
        raise NotStandard("select of one array")
    *choices, found = same_dtype(e, (*choicelist, default))
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        found = e.add("Where", e.cast(e.operand(condition), bool), choice, found, dtype=choice.dtype)
    return found


@standard(np.clip)
def _clip(
    e: Emitter, a: Any, a_min: Any = None, a_max: Any = None, out: None = None, *, min: Any = None, max: Any = None
) -> Operand:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = e.operand(a)
    for bound, ufunc in ((low, np.maximum), (high, np.minimum)):
        if bound is not None:
            x = emit_ufunc(e, ufunc, (x, bound))
    return x


@standard(np.round, np.around)
def _round(e: Emitter, a: Any, decimals: Any = 0) -> Operand:
    x = e.operand(a)
    if not isinstance(decimals, int) or abs(decimals) > 22 or x.dtype is None or x.dtype.kind != "f":
        raise NotStandard("rounding of what is no float")
    if decimals == 0:
        return e.add("Round", x)
    scale = e.constant(10.0 ** abs(decimals), x.dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return e.add(back, e.add("Round", e.add(there, x, scale)), scale)


@standard(np.ndarray.astype)
def _astype(
    e: Emitter, a: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True
) -> Operand:
    x = e.operand(a)
    target = np.dtype(dtype)
    return truth(e, x) if target.kind == "b" else e.cast(x, dtype)


def truth(e: Emitter, x: Operand) -> Operand:
    """Which elements are true: all but zero, NaN too."""
    if x.dtype is None or x.dtype.kind not in "iuf":
        return e.cast(x, bool)
    return e.add("Not", e.add("Equal", x, e.constant(0, x.dtype), dtype=bool)).like(x)


def _outer_of(ufunc: np.ufunc) -> Any:
    def outer(e: Emitter, A: Any, B: Any, /) -> Operand:
        x, y = e.operand(A), e.operand(B)
        if y.ndim:
            x = e.add("Unsqueeze", x, e.ints([x.ndim + k for k in range(y.ndim)]))
        return emit_ufunc(e, ufunc, (x, y))

    return outer


for _ufunc in (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.less, np.greater, np.equal):
    standard(_ufunc.outer)(_outer_of(_ufunc))


@standard(np.isclose)
def _isclose(e: Emitter, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Operand:
    x, y = same_dtype(e, (a, b))
    if x.dtype.kind != "f" or equal_nan or not all(isinstance(t, int | float) for t in (rtol, atol)):
        raise NotStandard("isclose of what is no float, or with equal_nan")
    bound = e.add("Add", e.constant(atol, x.dtype), e.add("Mul", e.constant(rtol, x.dtype), e.add("Abs", y)))
    near = e.add("LessOrEqual", e.add("Abs", e.add("Sub", x, y)), bound, dtype=bool)
    both = e.add("And", near, _isfinite(e, y))
    return e.add("Or", both, e.add("Equal", x, y, dtype=bool))


@standard(np.copy, np.ascontiguousarray)
def _copy(e: Emitter, a: Any, order: Any = "K", subok: Any = False) -> Operand:
    return e.operand(a)


@standard(np.outer)
def _outer(e: Emitter, a: Any, b: Any) -> Operand:
    x, y = same_dtype(e, (e.operand(a), e.operand(b)))
    return e.add("Mul", e.add("Reshape", x, e.ints([-1, 1])), e.add("Reshape", y, e.ints([1, -1])))


def _special(name: str, op_type: str) -> None:
    from scipy import special

    @standard(getattr(special, name))
    def _rule(e: Emitter, x: Any, /) -> Operand:
        x = e.operand(x)
        if x.dtype not in (np.float32, np.float64):
            raise NotStandard(f"{name} of {x.dtype}")
        return e.add(op_type, x)


def _register_scipy() -> None:
    try:
        import scipy.special  # noqa: F401
    except ImportError:
        return
    _special("erf", "Erf")
    _special("expit", "Sigmoid")


_register_scipy()
