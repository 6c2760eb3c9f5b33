"""Convert sparse tensors of a model to the dense arrays that its operators read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .elements import to_array

__all__ = ["to_dense"]

# A few bytes may describe an array of any size: more than this only for as many times as many values.
_FREE, _RATIO = 2**28, 1000


def to_dense(sparse: Any, what: str) -> np.ndarray[Any, Any]:
    """Return the array of a SparseTensorProto.

    Raises
    ------
    ValueError
        Values, indices and dims do not fit together, or the array would be out of all proportion.
    """
    values = to_array(sparse.values, f"the values of {what}")
    indices = to_array(sparse.indices, f"the indices of {what}")
    dims = tuple(sparse.dims)
    if any(size < 0 for size in dims) or not 1 <= len(dims) <= 64:
        raise ValueError(f"{what} has the sizes {list(dims)!r:.80}: a sparse tensor has at least one, none negative")
    size = math.prod(dims)
    if size * values.dtype.itemsize > max(_FREE, _RATIO * values.nbytes):
        raise ValueError(f"{what} has {values.size} values for an array of {size} elements, too many to lay out")
    if values.ndim != 1 or indices.dtype != np.int64 or indices.shape not in ((values.size,), (values.size, len(dims))):
        raise ValueError(
            f"{what} has values of shape {values.shape} and {indices.dtype} indices of shape {indices.shape}: they are "
            f"a vector of n values and int64 indices [n] or [n, {len(dims)}]"
        )
    bound: Any = size if indices.ndim == 1 else np.array(dims)
    if np.any(indices < 0) or np.any(indices >= bound):
        raise ValueError(f"{what} has indices outside its sizes {list(dims)!r:.80}")
    places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), dims)
    if np.any(places[1:] <= places[:-1]):
        raise ValueError(f"the indices of {what} must grow, each once")
    made = np.zeros(size, values.dtype)
    made[places] = values
    return made.reshape(dims)
