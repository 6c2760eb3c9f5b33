"""Apply ops to the columns of data frames: ``pyop.interop.pandas.wrap(op)``. Needs the extra ``pandas``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from .._core import InputError, Op
from .._tree import flatten

__all__ = ["wrap"]


def wrap(op: Op, columns: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """Return a function of a data frame that passes an op its columns by name.

    Parameters
    ----------
    op : Op
        Its parameters are names of columns.
    columns : mapping of str to str, optional
        The column for a parameter that is named otherwise.

    Returns
    -------
    callable
        Of a DataFrame and the op's static arguments by name; also for ``frame.groupby(…).apply``. A result that has
        one element a row, by its declaration, is a Series with the index of the frame, named as the op or by its key
        in a dict; any other is what the op returns.

    Raises
    ------
    TypeError
        No DataFrame, or an op whose parameters have no names.
    KeyError
        A column that is not there, or is there more than once.
    pyop.InputError
        A column of another dtype than the op declares, or one of an extension dtype with missing values (``<NA>``).

    Examples
    --------
    >>> import numpy as np, pandas as pd, pyop
    >>> from pyop.interop.pandas import wrap
    >>> @pyop.op("float64[n], float64[n] -> float64[n]")
    ... def density(mass, volume):
    ...     return mass / volume
    >>> frame = pd.DataFrame({"kg": [2.0, 3.0], "volume": [1.0, 2.0]}, index=["a", "b"])
    >>> wrap(density, {"mass": "kg"})(frame)
    a    2.0
    b    1.5
    Name: density, dtype: float64
    """
    if not isinstance(op, Op):
        raise TypeError(f"wrap takes an op, got {type(op).__name__} {op!r:.80}; declare it by pyop.op first")
    names = op.parameters
    if not names:
        raise TypeError(f"op {op.name!r} names no parameters, so no columns can be found for it; write def f(a, b)")
    chosen = dict(columns or {})
    if unknown := sorted(set(chosen) - set(names)):
        raise ValueError(f"columns= names {unknown[0]!r}, which is no parameter of op {op.name!r}: {', '.join(names)}")

    by_row = _by_row(op)

    def wrapped(frame: pd.DataFrame, **statics: Any) -> Any:
        if not isinstance(frame, pd.DataFrame):
            raise TypeError(
                f"{op.name}, wrapped for pandas, takes a DataFrame, got {type(frame).__name__} {frame!r:.80}"
            )
        result = op(*(_column(op, frame, name, chosen.get(name, name)) for name in names), **statics)
        return _labelled(result, op.name, frame.index, iter(by_row))

    wrapped.__name__ = wrapped.__qualname__ = op.name
    wrapped.__doc__ = f"{op.name} of the columns {', '.join(chosen.get(name, name) for name in names)}: {op.spec}"
    return wrapped


def _column(op: Op, frame: pd.DataFrame, name: str, label: str) -> np.ndarray[Any, Any]:
    times = int(np.count_nonzero(frame.columns == label))
    if times != 1:
        there = ", ".join(map(repr, frame.columns[:12])) + (", …" if len(frame.columns) > 12 else "")
        many = "not" if times == 0 else f"{times} times"
        raise KeyError(
            f"parameter {name!r} of op {op.name!r} wants the column {label!r}, which the frame has {many}; "
            f"its columns: {there or 'none'}; wrap(op, columns={{{name!r}: …}}) takes another"
        )
    column = frame[label]
    if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and column.isna().any():
        # pandas would make NaN of them, of integers too, or an array of objects.
        raise InputError(
            f"parameter {name!r} of op {op.name!r}: the column {label!r} ({column.dtype}) has missing values, and an "
            "array has none; fill them in, column.fillna(…), or make them NaN, column.astype('float64')"
        )
    values: np.ndarray[Any, Any] = column.to_numpy()
    return values


def _by_row(op: Op) -> list[bool]:
    """Return for each result whether it has one element for each row; its length alone may be chance."""
    signature = op.spec
    inputs = None if signature.inputs is None else flatten(signature.inputs)[0]
    rows = {spec.shape for spec in inputs or () if spec.shape is not None and len(spec.shape) == 1}
    if inputs is not None and signature.gufunc and all(spec.shape == () for spec in inputs):
        rows = {()}  # one loop over the rows
    by_row = []
    for k, spec in enumerate(flatten(signature.outputs)[0] if signature.outputs is not None else ()):
        like = signature.like is not None and (inputs is None or inputs[signature.like_inputs[k]].shape in rows)
        by_row.append(like or spec.shape in rows)
    return by_row


def _labelled(result: Any, name: str, index: pd.Index[Any], by_row: Iterator[bool]) -> Any:
    """Return the results in the order in which trees are flattened, labelled by the index where they are by row."""
    if isinstance(result, dict):
        made = {key: _labelled(result[key], str(key), index, by_row) for key in sorted(result)}
        return {key: made[key] for key in result}
    if isinstance(result, list | tuple) and not hasattr(result, "_fields"):
        return type(result)(_labelled(value, f"{name}_{k}", index, by_row) for k, value in enumerate(result))
    if next(by_row, False) and result.shape == (len(index),):
        return pd.Series(result, index=index, name=name, copy=False)
    return result
