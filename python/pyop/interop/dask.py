"""Apply ops to the chunks of dask arrays: ``pyop.interop.dask.wrap(op)``.

Needs dask's arrays, the extra ``dask``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import dask.array as da
from dask.base import tokenize

from .._core import Op
from .core_dims import CoreDims, LoopCall

__all__ = ["wrap"]


def wrap(op: Op) -> Callable[..., Any]:
    """Return a function of dask arrays that calls an op for each chunk, when it is computed.

    The declaration has all that dask asks for: core dimensions, sizes and dtypes. So the op is never called to find out
    what it returns, and a mismatch raises when the call is written.

    Parameters
    ----------
    op : Op
        Declared as a gufunc, ``"(n),(n)->()"``, with dtypes (``dtype="T"``: those of the arguments).

    Returns
    -------
    callable
        Of the op's arrays, dask's or others, and its static arguments by name. Loop dimensions broadcast as NumPy's
        do and keep their chunks; core dimensions have to be in one chunk. Returns dask arrays, or, where no
        argument is one, what the op returns. Calls of a stateless op on equal arguments have the same keys;
        calls of a stateful one never do.

    Raises
    ------
    TypeError
        The op is no gufunc, leaves the dtype of a result open, or writes into its arguments.
    pyop.InputError
        Dtypes or ranks that the op does not take.
    ValueError
        A core dimension is in several chunks.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> import dask.array as da
    >>> from pyop.interop.dask import wrap
    >>> @pyop.op("(n),(n)->()", dtype="float64")
    ... def dot(a, b):
    ...     return np.dot(a, b)
    >>> x = da.ones((4, 3), chunks=(2, 3))
    >>> y = wrap(dot)(x, np.arange(3.0))
    >>> y.chunks
    ((2, 2),)
    >>> y.compute()
    array([3., 3., 3., 3.])
    """
    core = CoreDims(op, "dask")

    def wrapped(*args: Any, **statics: Any) -> Any:
        core.check_count(args)
        if not any(isinstance(arg, da.Array) for arg in args):
            return op(*args, **statics)
        arrays = [arg if isinstance(arg, da.Array) else da.asarray(arg) for arg in args]
        _check_chunks(core, arrays)
        dtypes = core.dtypes([(array.dtype, _known(array.shape)) for array in arrays])
        call = LoopCall(op, statics)
        name = f"{op.name}-{tokenize(call, *arrays)}"
        return da.apply_gufunc(
            call,
            core.text,
            *_same_loop_chunks(core, arrays),
            output_dtypes=dtypes[0] if core.single else dtypes,
            output_sizes=core.sizes,
            name=name,
        )

    wrapped.__name__ = wrapped.__qualname__ = op.name
    wrapped.__doc__ = f"{op.name} by chunks of dask arrays: {op.spec}"
    return wrapped


def _known(shape: tuple[float, ...]) -> tuple[int | None, ...]:
    """Return the shape with None where dask knows a size only when the chunk is there."""
    return tuple(None if isnan(size) else int(size) for size in shape)


def _same_loop_chunks(core: CoreDims, arrays: list[Any]) -> list[Any]:
    """Return arrays with matching chunks along loop dimensions; a dimension of one element broadcasts as it is."""
    pairs = []
    for place, (array, names) in enumerate(zip(arrays, core.inputs, strict=True)):
        loops = array.ndim - len(names)
        axes = [("core", place, axis) if axis >= loops else axis - loops for axis in range(array.ndim)]
        pairs += [array, axes]
    chunked: list[Any] = da.core.unify_chunks(*pairs)[1]
    return chunked


def _check_chunks(core: CoreDims, arrays: list[Any]) -> None:
    for place, (array, names) in enumerate(zip(arrays, core.inputs, strict=True)):
        if array.ndim < len(names):
            raise ValueError(
                f"argument {place} of {core.op.name} has {array.ndim} dimensions, and its core dimensions alone are "
                f"{len(names)}: {core.text}"
            )
        for axis, name in zip(range(-len(names), 0), names, strict=True):
            if array.numblocks[axis] > 1:
                raise ValueError(
                    f"core dimension {name!r} of argument {place} of {core.op.name} is in {array.numblocks[axis]} "
                    f"chunks, and the op needs all of it at once; x.rechunk({{{axis}: -1}}) puts it into one"
                )
