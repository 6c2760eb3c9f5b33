"""Give `CompiledFunction`, whose call is C++, its other methods: for looking at it, and for pickle and copy."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, NamedTuple

from .._core import CompiledFunction
from ..declare.references import by_path, found_at, own_attributes
from ..graph.graph import Graph
from .front import _compile

__all__ = ["CacheInfo"]


class CacheInfo(NamedTuple):
    """Hold the numbers of hits, misses and plans of a compiled function, as `functools.lru_cache` gives them."""

    hits: int
    misses: int
    plans: int
    max_plans: int


def _cache_info(self: CompiledFunction) -> CacheInfo:
    """Return how often a plan was found, how often one was made, how many there are and may be.

    Returns
    -------
    CacheInfo

    Examples
    --------
    >>> import numpy as np, pyop
    >>> f = pyop.compile(lambda x: x + 1.0)
    >>> _ = f(np.ones(2)), f(np.zeros(2)), f(np.ones(3))
    >>> f.cache_info()
    CacheInfo(hits=1, misses=2, plans=2, max_plans=64)
    """
    hits, misses, plans, most = self._counts()
    of_code = sum(inputs.function._counts()[2] for inputs in self._states or ())  # which other closures share
    return CacheInfo(hits, misses, plans + of_code, most)


def _graph(self: CompiledFunction, *args: Any, **kwargs: Any) -> Graph:
    """Return the graph that a call with these arguments runs.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import numpy as np, pyop
    >>> f = pyop.compile(lambda x: x + x * 2.0)
    >>> [node.name for node in f.graph(np.ones(3)).nodes]
    ['x', 'multiply', 'add']
    """
    graph: Graph = self.plan_for(*args, **kwargs).graph
    return graph


def _reduce(self: CompiledFunction) -> Any:
    """Return the import path if it leads back here, as for functions; else what this is made of, without its plans."""
    path: str | None = getattr(self, "__qualname__", None)
    if path is not None and found_at(f"{getattr(self, '__module__', None)}.{path}") is self and by_path(self) is self:
        return path
    return _compile, (self.__wrapped__, *vars(self)["_made_with"]), own_attributes(self)


_METHODS = {
    "cache_info": _cache_info,
    "graph": _graph,
    "__reduce__": _reduce,
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
    "__class_getitem__": classmethod(GenericAlias),
}
for _attribute, _method in _METHODS.items():
    setattr(CompiledFunction, _attribute, _method)
