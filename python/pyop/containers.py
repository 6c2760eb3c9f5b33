"""Check containers of other libraries (pandas, xarray, masked arrays, torch) where an array is expected.

They compute by rules of their own, which a conversion to a plain array would silently lose. See
csrc/array/protocol/containers.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import Tensor, Value, as_array, own_rules
from ._tree import flatten
from .refusals import refusal

__all__ = ["check_operands", "check_rules", "lost_nulls", "plain_array"]

_PLAIN = frozenset((np.ndarray, Value, Tensor, float, int, bool, complex, str, bytes, slice, type, type(None)))


def check_operands(what: str, *trees: Any) -> None:
    """Raise if containers with rules of their own are among the arguments of a call; `what` names the call.

    >>> import numpy as np
    >>> from pyop.containers import check_operands
    >>> check_operands("np.add of a Value", np.ma.masked_array([1.0, 2.0], [True, False]))
    Traceback (most recent call last):
    TypeError: beside np.add of a Value: some elements of this numpy MaskedArray are masked, ...
    """
    for leaf in flatten(trees)[0]:
        if type(leaf) in _PLAIN:
            continue
        rules = own_rules(leaf)
        if rules is not None:
            raise refusal(f"beside {what}: {rules}")


def check_rules(what: str, x: Any) -> None:
    """Raise for an object that would lose something as a plain array, by rules of its own or of its contents.

    `what` names it in the error.

    >>> import numpy as np
    >>> from pyop.containers import check_rules
    >>> check_rules("argument 0", np.ones(3))
    >>> check_rules("argument 0", np.ma.masked_array([1.0]))
    Traceback (most recent call last):
    TypeError: argument 0: this numpy MaskedArray computes by rules of its own, ...
    """
    if type(x) in _PLAIN:
        return
    for leaf in flatten(x)[0]:
        rules = None if type(leaf) in _PLAIN else own_rules(leaf)
        if rules is not None:
            raise TypeError(f"{what}: {rules}")


def plain_array(x: Any, what: str) -> np.ndarray[Any, Any]:
    """Return ``np.asarray(x)``; raise if the conversion would lose rules or values. `what` names `x` in the error.

    >>> from pyop.containers import plain_array
    >>> plain_array([1, 2], "argument 0")
    array([1, 2])
    """
    check_rules(what, x)
    return as_array(x)


def lost_nulls(x: Any) -> str | None:
    """Describe what NumPy would lose by turning a container's nulls into NaN; return None if it has no nulls.

    pandas has them in its own dtypes ("Int64", "Float64", "int64[pyarrow]"), Arrow and polars in all.
    """
    what = f"this {type(x).__module__.partition('.')[0]} {type(x).__name__}"
    if hasattr(x, "isna"):
        dtypes = getattr(x, "dtypes", None)
        own_dtypes = [x.dtype] if hasattr(x, "dtype") else [] if dtypes is None else list(dtypes)
        if all(isinstance(dtype, np.dtype) for dtype in own_dtypes) or not np.any(np.asarray(x.isna())):
            return None
        return (
            f"{what} has missing values of a dtype of its own, and NumPy would make NaN of them: pass "
            "x.to_numpy(dtype, na_value=...) with a value for them, or x.dropna()"
        )
    count = getattr(x, "null_count", None)
    count = count() if callable(count) else count
    if not count:
        return None
    return f"{what} has {count} nulls, and NumPy would make NaN of them: fill or drop them first"
