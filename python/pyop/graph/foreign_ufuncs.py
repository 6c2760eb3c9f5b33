"""Call ufuncs that are not of NumPy's own type: numba's, each an object around one of NumPy's.

numba compiles a loop for new dtypes when it is called with them, into the NumPy ufunc that it holds. A node uses that
ufunc. The object around it owns the machine code, so a graph that uses the one keeps the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Value
from ..declare.spec import Spec
from .calls import apply
from .graph import Graph

__all__ = ["call", "numpy_ufunc"]


def numpy_ufunc(ufunc: Any, inputs: tuple[Any, ...]) -> np.ufunc | None:
    """Return the ufunc of NumPy that computes ``ufunc(*inputs)``, with a loop for these dtypes; None if unknown.

    >>> import numpy as np
    >>> from pyop.graph.foreign_ufuncs import numpy_ufunc
    >>> class Around:
    ...     ufunc = np.add
    ...     __call__ = np.add
    >>> numpy_ufunc(Around(), (np.ones(3), 1.0))
    <ufunc 'add'>
    """
    trial = []
    for item in inputs:
        dtype = getattr(item, "dtype", None)
        if isinstance(item, (Value, np.ndarray)):
            if dtype is None:
                return None
            item = np.empty(0, dtype)
        trial.append(item)
    ufunc(*trial)  # compiles the loop, or says why it cannot
    inner = getattr(ufunc, "ufunc", None)
    return inner if isinstance(inner, np.ufunc) else None


def call(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Add a node for a call of such a ufunc: of NumPy's ufunc where it is known, else of the object itself."""
    inner = numpy_ufunc(ufunc, inputs) if not kwargs else None
    if inner is None:
        count = getattr(ufunc, "nout", 1)
        return apply(ufunc, inputs, kwargs, Spec() if count == 1 else (Spec(),) * count, scalar=True)
    for item in inputs:
        if isinstance(item, Value) and isinstance(item.graph, Graph):
            item.graph._keep(ufunc)
    return inner(*inputs)
