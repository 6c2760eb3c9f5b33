"""Run pieces of a graph as tasks of Dask, each a plan: `Graph.to_dask` and `Graph.submit`.

A task gets what it reads from inputs and other pieces, and returns a tuple of what others read. Where the nodes allow
the chunks of arrays to be computed one by one, each chunk is a task and the whole graph its plan.

Threads: tasks run on threads of Dask's workers; plans may be called by any.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .._core import Plan, Value
from .._tree import flatten
from ..graph.graph import Graph
from .layout import is_elementwise, plain
from .once import Once
from .partition import Partition, Piece, partition
from .pieces import block_of, itself, picked, result_of, run_piece
from .tokens import tokenize
from .transport import enlist_all

__all__ = ["submit", "to_dask"]


def to_dask(graph: Graph, *, profile: Any = None, **inputs: Any) -> Any:
    """Describe the graph to Dask, lazily: nothing runs before `compute`.

    Parameters
    ----------
    profile : Profile, optional
        By which the graph is cut, as `Graph.partition` has it.
    **inputs : dask.array.Array, Delayed or array
        For each input of the graph, by its name.

    Returns
    -------
    tree
        As the outputs of the graph: a `dask.array.Array` for each, if the dtypes and the numbers of dimensions of all
        are known, else a `dask.delayed.Delayed` for each.

    Raises
    ------
    TypeError
        Inputs are missing, or unknown.
    ValueError
        The graph has stateful nodes: Dask computes a collection as often as it is asked to. `Graph.submit` runs them.

    Notes
    -----
    Chunks are kept where all nodes are ufuncs of arrays of one shape and of numbers, and all inputs have the same
    chunks. Otherwise each input is gathered into one chunk. Warnings are given on the workers; `numpy.errstate` of this
    call holds there.

    Examples
    --------
    >>> import dask.array as da
    >>> import pyop
    >>> graph = pyop.trace(lambda x: x * 2 + 1, "float64[n]")
    >>> y = graph.to_dask(x=da.arange(6.0, chunks=3))
    >>> y.chunks, y.compute()
    (((3, 3),), array([ 1.,  3.,  5.,  7.,  9., 11.]))
    """
    import dask.array as da
    from dask import delayed

    given = _by_name(graph, inputs)
    cut = partition(graph, profile=profile)
    _refuse_stateful(cut)
    state = _errstate()
    leaves, structure = _output_values(graph)
    if _by_chunks(graph, leaves, list(given.values())):
        arrays = list(given.values())
        made = []
        for leaf in leaves:
            plan = _named_plan(delayed, graph, [leaf], graph.inputs)
            meta = np.empty((0,) * arrays[0].ndim, leaf.dtype)
            told = {"plan": plan, "state": state, "what": f"a chunk of graph {graph.name!r}"}
            made.append(da.map_blocks(block_of, *arrays, **told, dtype=leaf.dtype, meta=meta, name=None))
        return structure.unflatten(made)
    values: dict[int, Any] = {value._key: given[value.name] for value in graph.inputs}
    task = delayed(run_piece, pure=True)
    pick, result = delayed(picked, pure=True), delayed(result_of, pure=True)
    results: dict[int, Any] = {}
    for number, piece in enumerate(cut.pieces):
        plan = _named_plan(delayed, graph, piece.gives, piece.reads)
        answer = task(plan, state, _what(graph, piece, number), *[values[value._key] for value in piece.reads])
        for k, value in enumerate(piece.gives):
            values[value._key], results[value._key] = pick(answer, k), result(answer, k)
    values.update(results)
    sizes = _sizes(graph, given)
    known = all(leaf.dtype is not None and leaf.shape is not None for leaf in leaves)
    return structure.unflatten([_collection(da, delayed, values, leaf, sizes if known else None) for leaf in leaves])


def submit(
    graph: Graph,
    client: Any,
    *args: Any,
    profile: Any = None,
    stateful: Literal["here", "workers"] = "here",
    **named: Any,
) -> Any:
    """Run the graph on the workers of Dask.

    Parameters
    ----------
    client : distributed.Client
    *args, **named : array or Future
        The inputs of the graph, in order or by name.
    profile : Profile, optional
        By which the graph is cut, as `Graph.partition` has it.
    stateful : "here" or "workers"
        Stateful nodes, and what they need, run in this process, before this returns. "workers": on one worker, and at
        most once. If that worker dies, Dask sends them to another one, where they are refused.

    Returns
    -------
    tree of Future
        As the outputs of the graph.

    Raises
    ------
    TypeError
        The client is not one of distributed, or inputs are missing.

    Notes
    -----
    Results stay on the workers until they are asked for. Warnings are given there; `numpy.errstate` of this call holds
    there.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> graph = pyop.trace(lambda x: np.sum(x), "float64[n]")
    >>> def total(client):
    ...     return graph.submit(client, np.ones(3)).result()
    """
    if stateful not in ("here", "workers"):
        raise ValueError(f'stateful= takes "here" or "workers", got {stateful!r}')
    if not (hasattr(client, "submit") and hasattr(client, "scatter")):
        raise TypeError(f"submit takes a Client of dask.distributed, got {type(client).__name__} {client!r:.80}")
    if getattr(client, "asynchronous", False):
        raise TypeError("submit sends arrays before it returns, and this Client is asynchronous: give another one")
    given = _by_name(graph, _named(graph, args, named))
    leaves, structure = _output_values(graph)
    cut = partition(graph, profile=profile)
    state = _errstate()
    enlist_all(client)
    values: dict[int, Any] = {value._key: _sent(client, given[value.name]) for value in graph.inputs}
    results: dict[int, Any] = {}
    wanted = {leaf._key for leaf in leaves}
    for number, piece in enumerate(cut.pieces):
        plan = _plan_of(graph, piece.gives, piece.reads, piece)
        call: list[Any] = [plan, state, _what(graph, piece, number), *[values[value._key] for value in piece.reads]]
        if piece.stateful and stateful == "here":
            piece_results = run_piece(*[x.result() if hasattr(x, "result") else x for x in call])
            values.update((v._key, _sent(client, plain(x))) for v, x in zip(piece.gives, piece_results, strict=False))
            continue
        names = ", ".join(node.name for node in piece.nodes if node.stateful)
        task = Once(client, run_piece, names) if piece.stateful else run_piece
        answer = client.submit(task, *call, pure=False, retries=0)
        for k, value in enumerate(piece.gives):
            values[value._key] = client.submit(picked, answer, k, pure=False)
            if value._key in wanted:
                results[value._key] = client.submit(result_of, answer, k, pure=False)
        if not piece.gives:
            values[-1 - len(values)] = answer
    values.update(results)
    kept = [x for key, x in values.items() if key < 0]
    made = [values[leaf._key] if leaf._key in values else graph.run(leaf) for leaf in leaves]
    made = [x if hasattr(x, "result") else client.submit(itself, x, pure=False) for x in made]
    for each in made:
        each._pyop_needs = kept  # stateful work that gives nothing: it lives as long as what was asked for
    return structure.unflatten(made)


def _errstate() -> Any:
    """Return np.errstate of this call, for the workers; ValueError if it calls a function of this process."""
    state = np.geterr()
    if not {"call", "log"}.isdisjoint(state.values()):
        raise ValueError(
            f"np.errstate has {state}: what np.seterrcall set is of this process; use warn, raise or ignore"
        )
    return state


def _what(graph: Graph, piece: Piece, k: int) -> str:
    return f"piece {k} of graph {graph.name!r}, {piece.shown()}"


def _named(graph: Graph, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    names = [value.name for value in graph.inputs]
    if len(args) > len(names):
        raise TypeError(f"graph {graph.name!r} has {len(names)} inputs, got {len(args)}")
    if twice := named.keys() & set(names[: len(args)]):
        raise TypeError(f"graph {graph.name!r} got input {min(twice)!r} twice")
    return dict(zip(names, args, strict=False)) | named


def _by_name(graph: Graph, given: dict[str, Any]) -> dict[str, Any]:
    names = [value.name for value in graph.inputs]
    if set(names) != given.keys():
        raise TypeError(f"graph {graph.name!r} has the inputs {names}, got {sorted(given)}")
    return {name: given[name] for name in names}


def _refuse_stateful(cut: Partition) -> None:
    for piece in cut.pieces:
        for node in piece.nodes:
            if node.stateful:
                raise ValueError(
                    f"{node.name} ({node.origin}) is stateful, and Dask computes a collection as often as it is asked "
                    "to: graph.submit(client, ...) runs it once"
                )


def _output_values(graph: Graph) -> tuple[list[Value], Any]:
    if graph._outputs is None:
        raise ValueError(f"graph {graph.name!r} has no outputs: declare them with g.output(...)")
    leaves, structure = graph._output_leaves()
    for leaf in leaves:
        if not isinstance(leaf, Value):
            raise ValueError(f"an output of graph {graph.name!r} is the node {leaf!r}, which has no value")
    return leaves, structure


def _plan_of(graph: Graph, gives: Any, reads: Any, piece: Piece | None = None) -> Plan:
    """Return the plan of a tuple of values from those that are read."""
    silent = [n for n in piece.nodes if n.stateful] if piece is not None else []
    leaves, structure = flatten((*gives, *silent))
    return graph._compile(leaves, structure, reads, whole=False, threads=1)


def _named_plan(delayed: Any, graph: Graph, gives: Any, reads: Any) -> Any:
    """Return the plan as a Dask object named by its content; existing nodes never change, nor do plan and name."""
    key = ("dask", *(tuple([value._key for value in values]) for values in (gives, reads)))
    plan = graph._plans.get(key)
    if plan is None:
        plan = graph._plans[key] = _plan_of(graph, gives, reads)
    name = _names.get(id(plan))
    if name is None or name[0] is not plan:
        while len(_names) >= 64:
            _names.pop(next(iter(_names)), None)
        name = _names[id(plan)] = (plan, "plan-" + tokenize(plan)[1])
    return delayed(plan, name=name[1])


# The names of plans that were made last, which take long to find; they are held, so that no other has the same id.
_names: dict[int, tuple[Plan, str]] = {}


def _sent(client: Any, x: Any) -> Any:
    """Return a large array as one scattered to a worker once, and not with each task."""
    large = isinstance(x, np.ndarray) and x.nbytes >= 1 << 16
    return client.scatter(x, hash=False) if large else x


def _by_chunks(graph: Graph, leaves: list[Value], arrays: list[Any]) -> bool:
    """Return whether a chunk of each result needs only the same chunk of each input."""
    if not arrays or not leaves or not all(hasattr(x, "chunks") and hasattr(x, "dask") for x in arrays):
        return False
    first = arrays[0]
    if first.ndim == 0 or any(x.chunks != first.chunks for x in arrays) or np.isnan(first.shape).any():
        return False
    places: dict[str, int] = {}
    for value in graph.inputs:
        shape = value.shape
        if shape is None or len(shape) != first.ndim or value.dtype is None:
            return False
        names = [str(n) for n in shape]
        # A chunk is held against the sizes that the whole would be: they must say nothing.
        if not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
            return False
        if any(places.setdefault(name, axis) != axis for axis, name in enumerate(names)):
            return False
    seen: set[int] = set()
    stack = list(leaves)
    while stack:
        value = stack.pop()
        node = value.node
        if value._key in seen or node.kind == "input":
            continue
        seen.add(value._key)
        if value.dtype is None or value.dtype.hasobject:
            return False
        if node.kind == "constant":
            if value.shape != ():
                return False
            continue
        if value.shape is None or len(value.shape) != first.ndim or not is_elementwise(node):
            return False
        stack.extend(node.inputs)
    return all(leaf.node.kind != "constant" for leaf in leaves)


def _sizes(graph: Graph, given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of named sizes, as far as the inputs tell."""
    sizes: dict[str, Any] = {}
    for value in graph.inputs:
        shape = getattr(given[value.name], "shape", None)
        if value.shape is None or not isinstance(shape, tuple) or len(shape) != len(value.shape):
            continue
        sizes.update((str(name), n) for name, n in zip(value.shape, shape, strict=True))
    return sizes


def _collection(da: Any, delayed: Any, values: dict[int, Any], leaf: Value, sizes: dict[str, Any] | None) -> Any:
    """Return the collection of one output; without sizes, a Delayed."""
    made = values[leaf._key] if leaf._key in values else leaf.graph.run(leaf)  # a constant
    if sizes is None or not isinstance(made, da.Array):
        made = delayed(made)
        if sizes is not None:
            shape = tuple(n if isinstance(n, int) else sizes.get(str(n), np.nan) for n in leaf.shape or ())
            made = da.from_delayed(made, shape, leaf.dtype)
    return made


to_dask.__qualname__, submit.__qualname__ = "Graph.to_dask", "Graph.submit"
Graph.to_dask, Graph.submit = to_dask, submit  # type: ignore[method-assign, assignment]
