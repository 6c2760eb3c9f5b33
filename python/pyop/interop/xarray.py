"""Apply ops to labelled arrays: ``pyop.interop.xarray.wrap(op)``. Needs xarray, the extra ``xarray``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from .._core import Op
from .core_dims import CoreDims, LoopCall

__all__ = ["wrap"]


def wrap(op: Op, dims: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """Return a function of xarray's objects that calls an op along named dimensions and keeps the labels.

    Parameters
    ----------
    op : Op
        Declared as a gufunc, ``"(n),(n)->()"``.
    dims : mapping of str to str, optional
        The dimension of the arrays that each core dimension of the declaration is; by default one of the same name. A
        fixed size is named by its digits, ``{"3": "axis"}``.

    Returns
    -------
    callable
        Of the op's arrays (DataArray, Dataset, Variable; other arrays have core dimensions alone) and its static
        arguments by name. All other dimensions are loop dimensions: they broadcast by name, in any order. Coordinates
        and attributes stay. Arrays of dask are computed chunk by chunk when they are asked for, and the op
        is never called to find out what it returns.

    Raises
    ------
    TypeError
        The op is no gufunc, writes into its arguments, or, on arrays of dask, leaves the dtype of a result open.
    ValueError
        An array has no such dimension, or, from xarray, coordinates differ or a core dimension is in several chunks.

    Examples
    --------
    >>> import numpy as np, pyop, xarray as xr
    >>> from pyop.interop.xarray import wrap
    >>> @pyop.op("(n),(n)->()", dtype="float64")
    ... def dot(a, b):
    ...     return np.dot(a, b)
    >>> wind = xr.DataArray(np.ones((3, 2)), dims=("time", "place"), coords={"place": ["Ulm", "Bern"]})
    >>> energy = wrap(dot, {"n": "time"})(wind, wind)
    >>> energy.sel(place="Bern").item()
    3.0
    """
    core = CoreDims(op, "xarray")
    chosen = dict(dims or {})
    known = {name for names in (*core.inputs, *core.outputs) for name in names}
    if unknown := sorted(set(chosen) - known):
        raise ValueError(f"dims= names {unknown[0]!r}, which is no core dimension of op {op.name!r}: {core.text}")
    if len(set(chosen.values())) < len(chosen):
        raise ValueError(f"dims= gives two core dimensions of op {op.name!r} one name: {chosen}")
    inputs = [[chosen.get(name, name) for name in names] for names in core.inputs]
    outputs = [[chosen.get(name, name) for name in names] for names in core.outputs]
    sizes = {chosen.get(name, name): size for name, size in core.sizes.items()}

    def wrapped(*args: Any, keep_attrs: bool | str = True, **statics: Any) -> Any:
        core.check_count(args)
        for place, (arg, wanted) in enumerate(zip(args, inputs, strict=True)):
            _check_dims(core, place, arg, wanted)
        lazy = any(_is_lazy(arg) for arg in args)
        return xr.apply_ufunc(
            LoopCall(op, statics),
            *args,
            input_core_dims=inputs,
            output_core_dims=outputs,
            keep_attrs=keep_attrs,
            dask="parallelized",
            output_dtypes=core.dtypes([_known(arg, names) for arg, names in zip(args, inputs, strict=True)])
            if lazy
            else None,
            dask_gufunc_kwargs={"output_sizes": sizes} if lazy else None,
        )

    wrapped.__name__ = wrapped.__qualname__ = op.name
    wrapped.__doc__ = f"{op.name} along named dimensions: {op.spec}"
    return wrapped


def _check_dims(core: CoreDims, place: int, arg: Any, wanted: list[str]) -> None:
    if not isinstance(arg, xr.DataArray | xr.Variable):
        return  # a Dataset may have variables without them, which xarray words
    for name, dim in zip(core.inputs[place], wanted, strict=True):
        if dim not in arg.dims:
            raise ValueError(
                f"argument {place} of {core.op.name} has the dimensions {tuple(arg.dims)}, and none {dim!r}; "
                f"wrap(op, dims={{{name!r}: …}}) says which of them {name!r} of {core.text} is"
            )


def _is_lazy(arg: Any) -> bool:
    if isinstance(arg, xr.Dataset):
        return any(_is_lazy(variable) for variable in arg.data_vars.values())
    return getattr(arg, "chunks", None) is not None


def _known(arg: Any, dims: list[str]) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """Return the dtype of an argument, and its shape along core dimensions, which alone decide dtypes."""
    if isinstance(arg, xr.Dataset):
        variable_dtypes = {variable.dtype for variable in arg.data_vars.values()}
        if len(variable_dtypes) != 1:
            dtypes = ", ".join(sorted(map(str, variable_dtypes)))
            raise TypeError(
                f"a Dataset of dask's arrays has variables of the dtypes {dtypes}, and xarray maps an op over all of "
                "them with one; call it for each variable"
            )
        return np.dtype(variable_dtypes.pop()), tuple(arg.sizes.get(dim) for dim in dims)
    if isinstance(arg, xr.DataArray | xr.Variable):
        return arg.dtype, tuple(arg.sizes[dim] for dim in dims)
    array = np.asarray(arg)
    return array.dtype, array.shape
