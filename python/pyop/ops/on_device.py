"""Call ops that are declared with device="any", passing arrays of other devices through unchanged.

Such arrays are checked by their ``shape`` and ``dtype``; all else is as in any other call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import InputError, Op, OutputError, as_array, is_on_device
from ..declare.dtype_text import AnyDType, dtype_named
from ..declare.spec import Spec
from ..graph.cells import shown_place

__all__ = ["device_call"]


def device_call(op: Op, arrays: tuple[Any, ...], statics: dict[str, Any]) -> Any:
    """Call an op with device="any", arguments by position and static ones by name."""
    if op.contract._parts[4] is not None:
        raise TypeError(f'op {op.name!r} has an abstract rule, and device="any" needs outputs that are declared')
    given = [x if is_on_device(x) else _core.op_argument(op, k, x) for k, x in enumerate(arrays)]
    specs = [_spec_of(x, f"argument {k} of op {op.name!r}", InputError) for k, x in enumerate(given)]
    try:
        promised = op.spec.infer(specs)
    except ValueError as error:
        raise InputError(f"{error}\n  in {_named(op)}") from None
    try:
        result = op.__wrapped__(*map(_lent, given), **statics)
    except Exception as error:
        error.add_note(f"in {_named(op)}, called with {', '.join(map(str, specs))}")
        raise
    structure = op.spec._output_structure
    try:
        leaves = structure.flatten_up_to(result)
    except (TypeError, ValueError) as error:
        raise OutputError(f"{error}\n  in the value returned by {_named(op)}") from None
    made = [_checked(op, k, x, spec) for k, (x, spec) in enumerate(zip(leaves, promised, strict=True))]
    return structure.unflatten(made)


def _named(op: Op) -> str:
    return f"op {op.name!r} (declared at {shown_place(op.origin)})"


def _lent(x: Any) -> Any:
    """Return a read-only view, as ops receive their arguments."""
    if type(x) is not np.ndarray:
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def _checked(op: Op, k: int, x: Any, promised: Spec) -> Any:
    what = f"{k}-th value returned by op {op.name!r}"
    if not is_on_device(x):
        try:
            x = as_array(x)
        except Exception as error:
            raise OutputError(f"the {what}, a {type(x).__name__}, cannot become an array: {error}") from error
    spec = _spec_of(x, f"the {what}", OutputError)
    if promised.dtype is not None and spec.dtype != promised.dtype:
        fits = False
    elif promised.shape is None or spec.shape is None:
        fits = True
    else:
        fits = len(spec.shape) == len(promised.shape) and all(
            not isinstance(want, int) or want == have for want, have in zip(promised.shape, spec.shape, strict=True)
        )
    if not fits:
        raise OutputError(f"the {what} is {spec}, but expects {promised}\n  in {_named(op)}")
    return x


def _spec_of(x: Any, what: str, error: type[Exception]) -> Spec:
    dtype, shape = getattr(x, "dtype", None), getattr(x, "shape", None)
    try:
        return Spec(_dtype_of(dtype), tuple(map(int, shape)))  # type: ignore[arg-type]
    except (TypeError, ValueError) as reason:
        raise error(
            f"{what} is a {type(x).__name__} on another device without a shape and dtype to check: its shape is "
            f"{shape!r:.40}, its dtype {dtype!r:.40}"
        ) from reason


def _dtype_of(dtype: Any) -> AnyDType:
    if isinstance(dtype, np.dtype):
        return dtype
    known = dtype_named(str(dtype).rpartition(".")[2])
    if not isinstance(known, np.dtype):
        raise TypeError(f"{dtype!r} is not a NumPy dtype")
    return known
