"""Represent graphs as data: their parts, their pickles, and files that keep everything.

`parts` takes a graph apart and puts it together again; `pickles` and `files` are two ways to write the parts.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._core import CallOnTree, Contract, FunctionClass, Plan
from ..declare.rebuild import MergedByValue
from ..graph.graph import Graph
from . import moved

__all__ = ["install", "load"]


def load(
    path: Any,
    functions: Mapping[str, Any] | None = None,
    *,
    trust: str | None = None,
    modules: Iterable[str] = (),
) -> Graph:
    """Return a graph from a file: of `Graph.save`, or any ONNX model.

    Parameters
    ----------
    path : path, bytes or onnx.ModelProto
    functions : mapping of str to callable, optional
        What import paths in the file stand for, instead of what they lead to.
    trust, modules
        What the file can reach, as `pyop.onnx.load` has it. By default: Ops, Functions and the caller's own functions
        in modules that are imported, NumPy's functions, and whatever is in the `modules` listed.

    Returns
    -------
    Graph

    Raises
    ------
    ValueError
        The file is malformed, or of a later format than this pyop knows.
    LookupError
        A function cannot be found, or must not be.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, pyop
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.onnx")
    >>> pyop.trace(lambda x: {"s": np.sin(x)[::2]}, "float64[n]").save(path)
    >>> pyop.load(path).compile()(np.zeros(3))
    {'s': array([0., 0.])}
    """
    from .files import load as load_file

    return load_file(path, functions, trust, modules)


def save(graph: Graph, path: Any, *, embed: bool = False) -> None:
    """Write the graph into a file, so that `pyop.load` makes the same graph of it.

    The file is an ONNX model, for other tools to show; functions are stored by their import path. Needs the
    ``onnx`` package: ``pip install 'pyop-core[onnx]'``.

    Parameters
    ----------
    path : path
    embed : bool
        Store functions that have no import path, and static arguments of other types than NumPy's and Python's
        own, by value, with cloudpickle. Who loads them must trust the file:
        ``pyop.load(path, trust="pickles")``.

    Raises
    ------
    ValueError
        A function or a static argument cannot be stored; the message names the node.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, pyop
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.onnx")
    >>> pyop.trace(lambda x: np.sum(x), "float64[n]").save(path)
    >>> pyop.load(path).compile()(np.ones(3))
    array(3.)
    """
    from .files import save as save_file

    save_file(graph, path, embed)


Graph.save = save  # type: ignore[method-assign, assignment]


def _by(name: str) -> Callable[..., Any]:
    """Return a function that calls that of `pickles` of this name, which the first pickle or copy loads."""

    def call(*args: Any) -> Any:
        from . import pickles

        return getattr(pickles, name)(*args)

    return call


def _deep(copied: Any) -> Any:
    return lambda x, memo: copied(x)


def install() -> None:
    """Teach pickle and copy what pyop's types are."""
    moved.install()
    # A plan never changes; its copy is itself.
    kinds: Any = ((Graph, "_reduce_graph", _by("_copied")), (Plan, "_reduce_plan", lambda plan: plan))
    for kind, reduce, copied in kinds:
        kind.__reduce__, kind.__copy__, kind.__deepcopy__ = _by(reduce), copied, _deep(copied)
    copyreg.pickle(FunctionClass, _by("_reduce_function"))
    for core in (CallOnTree, Contract):
        copyreg.pickle(core, _by("_reduce"))
    MergedByValue.__reduce_ex__ = _by("_reduce_call")  # type: ignore[method-assign]
