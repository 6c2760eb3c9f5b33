"""List the arrays that JAX has, with its names for them, and recognise arguments that are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from .jax_errors import exception_of

__all__ = ["arrays_of", "checked", "is_array", "is_traced", "real", "results_like", "run_eagerly"]


def is_array(x: Any) -> bool:
    """Return whether JAX takes it as an array; anything else is static."""
    return isinstance(x, (jax.Array, np.ndarray, np.generic))


def is_traced(arrays: Sequence[Any]) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in arrays)


def real(dtype: Any) -> bool:
    """Return whether arrays of this dtype have gradients."""
    return bool(jax.numpy.issubdtype(dtype, jax.numpy.inexact))


def _has(dtype: Any) -> bool:
    return bool(jax.config.jax_enable_x64 or jax.dtypes.canonicalize_dtype(dtype) == dtype)


def checked(owner: str, names: Sequence[str], arrays: Sequence[Any]) -> None:
    """Raise TypeError for arrays that JAX would silently cast."""
    for name, x in zip(names, arrays, strict=True):
        if not isinstance(x, jax.Array) and not _has(x.dtype):
            raise TypeError(f"{owner}: argument '{name}' is {x.dtype}, {_SWITCHED_OFF}")


_SWITCHED_OFF = (
    "which JAX would narrow to 32 bits, since its 64-bit types are disabled\n"
    "  jax.config.update('jax_enable_x64', True) before the first array is made, or cast to 32 bits by yourself"
)


def results_like(owner: str, kinds: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Return the results as JAX is told of them."""
    made = []
    for k, (dtype, shape) in enumerate(kinds):
        if dtype is None or shape is None or any(size is None for size in shape):
            raise TypeError(
                f"{owner}: the {'dtype' if dtype is None else 'shape'} of result {k} is known only after the call, and "
                "JAX asks before: declare it, 'float64[n] -> float64[n]', or give the op an abstract rule (op.abstract)"
            )
        if not _has(dtype):
            raise TypeError(f"{owner}: result {k} is {dtype}, {_SWITCHED_OFF}")
        made.append(jax.ShapeDtypeStruct(shape, dtype))
    return made


def arrays_of(owner: str, found: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """Return the results of a callback as arrays; TypeError if they differ from what JAX was told."""
    arrays = [np.asarray(y) for y in found]
    for k, (y, told) in enumerate(zip(arrays, results, strict=True)):
        if y.shape != told.shape or y.dtype != told.dtype:
            raise TypeError(
                f"{owner}: result {k} was to be {told.dtype}{list(told.shape)} by what is declared, and is "
                f"{y.dtype}{list(y.shape)}"
            )
    return arrays


def run_eagerly(function: Any, arrays: Sequence[Any]) -> Any:
    """Call without a trace; an error has the original exception as its cause."""
    try:
        return function(*arrays)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        cause = exception_of(error)
        if cause is None:
            raise
        # The shorter way of JAX's for calls that it has seen before raises a ValueError with the same words.
        same = error if isinstance(error, jax.errors.JaxRuntimeError) else jax.errors.JaxRuntimeError(str(error))
        raise same from cause
