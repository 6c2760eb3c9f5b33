"""Express NumPy's ufuncs in operators of ONNX, with dtypes and arguments converted as NumPy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...declare.dims import Dim
from .emitter import Emitter, NotStandard, Operand

_FLOAT, _NUMBER, _INT = "f", "fiu", "iu"
# Ufunc: the operator, and the kinds of dtype for which it is the same.
SIMPLE: dict[Any, tuple[str, str]] = {
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
LOGICAL = {
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


def _weak_dtype(x: Any) -> Any:
    """Return the dtype of an argument; a Python number, which has none of its own, as it is."""
    if isinstance(x, Operand):
        if x.dtype is None:
            raise NotStandard("the dtype of an argument is not known")
        return x.dtype
    x = 0 if isinstance(x, Dim) else x
    return x if type(x) in (int, float, complex) else np.asarray(x).dtype


def loop_dtypes(ufunc: np.ufunc, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the dtypes of the loop that NumPy takes for these arguments: inputs, then outputs."""
    given = [kind if isinstance(kind, np.dtype) else type(kind) for kind in map(_weak_dtype, args)]
    try:
        return tuple(ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout)))
    except (TypeError, ValueError) as error:
        raise NotStandard(f"NumPy has no loop of {ufunc.__name__} for these dtypes: {error}") from None


def converted(e: Emitter, x: Any, dtype: Any) -> Operand:
    if isinstance(x, Operand | Dim):
        return e.cast(e.operand(x), dtype)
    return e.constant(np.asarray(x, dtype))


def emit_ufunc(e: Emitter, ufunc: np.ufunc, args: tuple[Any, ...]) -> Operand:
    if ufunc in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not):
        loop: tuple[Any, ...] = (np.dtype(bool),) * (ufunc.nin + 1)
    else:
        loop = loop_dtypes(ufunc, args)
    inputs = [converted(e, x, dtype) for x, dtype in zip(args, loop, strict=False)]
    kinds = {dtype.kind for dtype in loop[: ufunc.nin]}
    if kinds == {"b"} and ufunc in LOGICAL:
        return e.add(LOGICAL[ufunc], *inputs, dtype=bool)
    op_type, allowed = SIMPLE.get(ufunc, ("", ""))
    if not kinds <= set(allowed):
        raise NotStandard(f"no operator of ONNX does {ufunc.__name__} on {', '.join(map(str, loop[: ufunc.nin]))}")
    if ufunc is np.matmul and any(isinstance(x, Operand) and x.ndim == 0 for x in args):
        raise NotStandard("matmul of a number")
    return e.add(op_type, *inputs, dtype=loop[-1])


def with_signature(ufunc: np.ufunc, do: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of a ufunc, which takes arrays by position alone."""

    def unary(e: Emitter, x: Any, /) -> Any:
        return do(e, x)

    def binary(e: Emitter, x: Any, y: Any, /) -> Any:
        return do(e, x, y)

    return unary if ufunc.nin == 1 else binary


def rule_of(ufunc: np.ufunc) -> Callable[..., Any]:
    return with_signature(ufunc, lambda e, *args: emit_ufunc(e, ufunc, args))


def same_dtype(e: Emitter, xs: Any) -> list[Operand]:
    """Return operands converted to the dtype that NumPy would promote them to."""
    dtype = np.result_type(*map(_weak_dtype, xs))
    if dtype.kind not in "biuf":
        raise NotStandard(f"arrays of {dtype}")
    return [converted(e, x, dtype) for x in xs]


def truth(e: Emitter, x: Operand) -> Operand:
    """Return which elements are true: all but zero, NaN too."""
    if x.dtype is None or x.dtype.kind not in "iuf":
        return e.cast(x, bool)
    return e.add("Not", e.add("Equal", x, e.constant(0, x.dtype), dtype=bool)).like(x)
