"""Make a graph of a function by calling it with Values: `trace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tree import flatten
from ..declare.parameters import Parameters, check_name, default_name
from ..graph.graph import Graph
from ..refusals import call_watched, note_call
from .error_checks import refuse_error_handling
from .type_checks import refuse_exact_types

__all__ = ["trace"]


def trace(fn: Callable[..., Any], /, *specs: Any, name: str | None = None) -> Graph:
    """Write down what a function does, by calling it once with Values.

    Parameters
    ----------
    fn : callable
        Called with one Value for each spec; what it returns becomes the outputs of the graph.
    *specs : tree of spec
        One for each positional argument: text, dtype, `Spec` or an example array.
    name : str, optional
        Of the graph; the function's by default.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import numpy as np, pyop
    >>> g = pyop.trace(lambda x, y: np.dot(np.sin(x), y), "float64[n]", "float64[n]")
    >>> g.run(feeds={"x": np.zeros(2), "y": np.ones(2)})
    array(0.)
    """
    if not callable(fn):
        raise TypeError(f"trace takes a callable, got {type(fn).__name__} {fn!r:.80}")
    from .again import called  # on first use

    own_name = check_name(name) if name is not None else default_name(fn)
    graph: Graph = called(lambda f: _traced(f, fn, specs, own_name), fn, ())
    return graph


def _traced(f: Callable[..., Any], fn: Callable[..., Any], specs: tuple[Any, ...], name: str) -> Graph:
    """Return the graph of `f`, which is `fn` or its twin."""
    graph = Graph(name=name)
    names = Parameters.of(fn).arrays
    with graph:
        arguments = [_inputs_of(graph, spec, names[k] if k < len(names) else "input") for k, spec in enumerate(specs)]
        try:
            refuse_exact_types(fn)
            refuse_error_handling(fn)
            result = call_watched(f, tuple(arguments), {})
        except Exception as error:
            note_call(error, f"pyop.trace called {graph.name}")
            raise
    if result is not None:
        if graph._kept:
            from .statics import check_functions  # on first use

            check_functions(graph)
        graph.output(result)
    return graph


def _inputs_of(graph: Graph, spec: Any, name: str) -> Any:
    leaves, structure = flatten(spec)
    return structure.unflatten([graph.input(leaf, name=name) for leaf in leaves])
