"""Every way a function of the py_func family can be called: the same inputs, the same results, the same errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyop


def _arrays(func: Any, inputs: list[Any], tout: Any, **options: Any) -> Any:
    return pyop.py_func(func, inputs, tout, **options)


def _constants(func: Any, inputs: list[Any], tout: Any, **options: Any) -> Any:
    graph = pyop.Graph()
    with graph:
        fetch = pyop.py_func(func, [graph.constant(x) for x in inputs], tout, **options)
    return graph.run(fetch)


def _feeds(func: Any, inputs: list[Any], tout: Any, *, threads: int = 1, **options: Any) -> Any:
    graph = pyop.Graph()
    feeds = {graph.input(): x for x in inputs}
    with graph:
        fetch = pyop.py_func(func, list(feeds), tout, **options)
    return graph.run(fetch, feeds, threads=threads)


def _threads(func: Any, inputs: list[Any], tout: Any, **options: Any) -> Any:
    return _feeds(func, inputs, tout, threads=4, **options)


def _plan(func: Any, inputs: list[Any], tout: Any, **options: Any) -> Any:
    graph = pyop.Graph()
    values = [graph.input() for _ in inputs]
    with graph:
        fetch = pyop.py_func(func, values, tout, **options)
    if not isinstance(fetch, pyop.Node):
        graph.output(fetch)
    return graph.compile()(*inputs)


WAYS: dict[str, Callable[..., Any]] = {
    "arrays": _arrays,
    "constants": _constants,
    "feeds": _feeds,
    "threads": _threads,
    "plan": _plan,
}
