"""Infer ufuncs and their methods: dtypes by the ufunc's resolver, shapes by broadcasting or core signature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..declare.spec import Spec
from ..refusals import refusal
from . import refuse_out, settle
from .gufuncs import core_shapes
from .operand import BOOL, DType, Operand, Shape, one, operand, operands, probe
from .shape import axis_of, broadcast, reduced, replaced

_MUTATED = (
    "ufunc.at writes into its argument, and a Value is immutable: "
    "use np.where, np.bincount or a pyop.op that works on a copy and returns it"
)
# Whatever they compare, the answer is a truth value; other ufuncs have to see the dtypes.
_COMPARISONS = frozenset(
    (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isfinite, np.isinf, np.isnan)
)


def infer(ufunc: np.ufunc, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the spec, or the tuple of specs, that ``getattr(ufunc, method)(*args, **kwargs)`` returns.

    `method` is as NumPy passes it to ``__array_ufunc__``; a Spec stands for each array that the graph computes.

    >>> import numpy as np
    >>> from pyop.functions import ufuncs
    >>> from pyop.declare.spec import Spec
    >>> str(ufuncs.infer(np.add, "__call__", (Spec.parse("float32[n, 1]"), Spec.parse("int16[3]")), {}))
    'float32[n,3]'
    """
    if method == "at":
        raise refusal(_MUTATED)
    out = kwargs.get("out")
    if out is not None and not (isinstance(out, tuple) and all(item is None for item in out)):
        refuse_out()
    if method != "__call__":
        return settle(_METHODS[method](ufunc, *args, **kwargs))
    if len(args) != ufunc.nin:
        # With more than nin arguments, the others are outputs by position.
        if ufunc.nin < len(args) <= ufunc.nargs and all(item is None for item in args[ufunc.nin :]):
            args = args[: ufunc.nin]
        elif ufunc.nin < len(args) <= ufunc.nargs:
            refuse_out()
        else:
            raise TypeError(f"{ufunc.__name__}() takes {ufunc.nin} arrays, got {len(args)}")
    parts = operands(*args)
    dtypes = resolve(ufunc, parts, kwargs)
    shapes = _shapes(ufunc, parts, kwargs)
    specs = tuple(Spec(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True))
    return settle(specs[0] if ufunc.nout == 1 else specs)


def resolve(ufunc: np.ufunc, parts: list[Operand], kwargs: dict[str, Any]) -> tuple[DType | None, ...]:
    """Return the dtypes of the results, None for each that depends on a dtype not known."""
    signature = _signature(ufunc, kwargs)
    if any(part.dtype is None for part in parts):
        if signature is None:
            return ((BOOL,) if ufunc in _COMPARISONS else (None,)) * ufunc.nout
        return tuple(item if isinstance(item, np.dtype) else None for item in signature[ufunc.nin :])
    given = tuple(part.weak if part.weak is not None else part.dtype for part in parts)
    options: dict[str, Any] = {}
    if signature is not None:
        options["signature"] = signature
    if kwargs.get("casting") is not None:
        options["casting"] = kwargs["casting"]
    loop = ufunc.resolve_dtypes(given + (None,) * ufunc.nout, **options)
    return tuple(loop[ufunc.nin :])


def _signature(ufunc: np.ufunc, kwargs: dict[str, Any]) -> tuple[DType | None, ...] | None:
    """Return the loop asked for by ``dtype=`` or ``signature=``, one entry an argument."""
    dtype, signature = kwargs.get("dtype"), kwargs.get("signature", kwargs.get("sig"))
    if signature is None:
        return None if dtype is None else (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    if dtype is not None:
        raise TypeError("cannot specify both 'signature' and 'dtype'")
    if isinstance(signature, str):
        left, arrow, right = signature.partition("->")
        codes = left + right if arrow else left
        if len(codes) == 1:
            return (None,) * ufunc.nin + (np.dtype(codes),) * ufunc.nout
        signature = tuple(codes)
    if len(signature) == 1:
        return (None,) * ufunc.nin + (np.dtype(signature[0]),) * ufunc.nout
    if len(signature) != ufunc.nargs:
        raise ValueError(
            f"{ufunc.__name__}() has {ufunc.nargs} arguments, its signature= names {len(signature)} dtypes"
        )
    return tuple(None if item is None else np.dtype(item) for item in signature)


def _shapes(ufunc: np.ufunc, parts: list[Operand], kwargs: dict[str, Any]) -> list[Shape]:
    if ufunc.signature is not None:
        return core_shapes(ufunc, [part.shape for part in parts], kwargs)
    shapes = [part.shape for part in parts]
    where = kwargs.get("where", True)
    if where is not True:
        shapes.append(operand(where).shape)
    return [broadcast(*shapes)] * ufunc.nout


def _reduction_dtype(ufunc: np.ufunc, part: Operand, dtype: Any) -> DType | None:
    return probe(ufunc.reduce, one(part), dtype=dtype)


def _reduce(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False, *rest: Any,
    **options: Any,
) -> Spec:  # fmt: skip
    part = operand(array)
    return Spec(_reduction_dtype(ufunc, part, dtype), reduced(part.shape, axis, keepdims))


def _accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Spec:
    part = operand(array)
    if part.shape is not None:
        if not part.shape:
            raise TypeError("cannot accumulate on a scalar")
        axis_of(axis, len(part.shape))
    return Spec(_reduction_dtype(ufunc, part, dtype), part.shape)


def _reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Spec:
    part, where = operand(array), operand(indices)
    result = _reduction_dtype(ufunc, part, dtype)
    if part.shape is None:
        return Spec(result, None)
    if not part.shape:
        raise TypeError("cannot reduceat on a scalar")
    size = where.shape[0] if where.shape else None
    return Spec(result, replaced(part.shape, axis_of(axis, len(part.shape)), size))


def _outer(ufunc: np.ufunc, a: Any, b: Any, **kwargs: Any) -> Any:
    if ufunc.signature is not None:
        raise TypeError("method outer is not allowed in ufunc with non-trivial signature")
    parts = operands(a, b)
    dtypes = resolve(ufunc, parts, kwargs)
    left, right = parts[0].shape, parts[1].shape
    shape = None if left is None or right is None else left + right
    specs = tuple(Spec(dtype, shape) for dtype in dtypes)
    return specs[0] if ufunc.nout == 1 else specs


_METHODS: dict[str, Any] = {"reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat, "outer": _outer}
