"""Arrays that a function makes of no symbolic array, as Values: what stands for NumPy's functions in twins.

What such an array holds is known, so it is a constant of the graph, in memory of the function's own: it can be written,
by which it becomes what the function writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from ..graph.graph import Graph
from .twins import graph_under_twins, stand_in

__all__ = ["made_value"]

_KINDS = "biufc"


def made_value(graph: Graph, array: Any) -> Any:
    """A Value for an array that nobody else has; anything else as it is.

    >>> import numpy as np, pyop
    >>> from pyop.tracing.made import made_value
    >>> graph = pyop.Graph()
    >>> y = made_value(graph, np.zeros(2))
    >>> y[0] = 1.0
    >>> graph.run(y)
    array([1., 0.])
    """
    if type(array) is not np.ndarray or array.dtype.kind not in _KINDS:
        return array
    return graph._add_constant(array, "array")


def _made(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function with Values for the arrays that it makes."""

    def make(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        graph = None if type(made) is Value else graph_under_twins()
        return made if graph is None else made_value(graph, made)

    return make


for _original in (np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.full):
    stand_in(_original, _made(_original))
