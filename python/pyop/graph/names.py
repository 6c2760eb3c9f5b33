"""Find nodes and outputs of a graph by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._core import GraphError, Node, Value
from .._tree import flatten
from .cells import shown_place
from .node_call import unwrapped

__all__ = ["fetched_by_name", "listing", "node_by_name", "output_names"]


def output_names(graph: Any) -> list[str]:
    """Return the names of a graph's outputs, in order: their keys, fields and positions in the result.

    >>> import pyop
    >>> from pyop.graph.names import output_names
    >>> output_names(pyop.trace(lambda x: {"a": x, "b": (x + 1, x)}, "float64[n]"))
    ['a', 'b.0', 'b.1']
    """
    places, structure = graph._outputs
    if structure.is_leaf:
        return ["output"]
    names: dict[int, str] = {}
    for name, k in _walk("", structure.unflatten([_Leaf(k) for k in range(len(places))])):
        names.setdefault(k, name)
    return [names.get(k, f"output {k}") for k in range(len(places))]


class _Leaf:
    def __init__(self, number: int) -> None:
        self.number = number


def _walk(name: str, tree: Any) -> Iterator[tuple[str, int]]:
    if isinstance(tree, _Leaf):
        yield name, tree.number
        return
    parts: Any = ()
    if isinstance(tree, Mapping):
        parts = tree.items()
    elif hasattr(tree, "_fields") and isinstance(tree, tuple):
        parts = zip(getattr(tree, "_fields"), tree, strict=True)  # noqa: B009
    elif isinstance(tree, list | tuple):
        parts = enumerate(tree)
    elif hasattr(tree, "__dataclass_fields__"):
        held, structure = flatten(tree, lambda x: x is not tree)
        parts = zip((path[1:] for path in structure.leaf_paths()), held, strict=True)
    for key, part in parts:
        yield from _walk(f"{name}.{key}" if name else str(key), part)


def node_by_name(graph: Any, name: str) -> Node:
    """Return the node of a name; KeyError that lists similar names if there is none.

    >>> import pyop
    >>> from pyop.graph.names import node_by_name
    >>> node_by_name(pyop.trace(lambda x: x + 1, "float64[n]"), "add").kind
    'py'
    """
    matches: list[Node] = [node for node in graph.nodes if node.name == name]
    if len(matches) > 1:  # copies of other graphs' nodes may keep their names
        raise KeyError(
            f"graph {graph.name!r} has {len(matches)} nodes named {name!r}: take one by its number, {matches}"
        )
    if not matches:
        raise KeyError(f"graph {graph.name!r} has no node named {name!r}{_near(name, [n.name for n in graph.nodes])}")
    return matches[0]


def fetched_by_name(graph: Any, name: str) -> Value:
    """Return the output of that name, or else the Value.

    >>> import pyop
    >>> from pyop.graph.names import fetched_by_name
    >>> g = pyop.trace(lambda x: {"level": x + 1}, "float64[n]")
    >>> fetched_by_name(g, "level").name, fetched_by_name(g, "x").name
    ('add', 'x')
    """
    values: dict[Any, Value] = {}
    names = []
    if graph._outputs is not None:
        leaves, _ = graph._output_leaves()
        for known, leaf in zip(output_names(graph), leaves, strict=True):
            names.append(known)
            if known == name and isinstance(leaf, Value):
                values[leaf._key] = leaf
    for node in graph.nodes:
        for value in node.outputs:
            names.append(value.name)
            if value.name == name:
                values[value._key] = value
    if len(values) > 1:
        texts = ", ".join(f"{value!r} of {shown_place(value.node.origin)}" for value in values.values())
        raise GraphError(f"{name!r} may be any of several in graph {graph.name!r}: {texts}; fetch the Value itself")
    if not values:
        raise GraphError(f"graph {graph.name!r} has nothing named {name!r} to fetch{_near(name, names)}")
    return values.popitem()[1]


def listing(graph: Any) -> str:
    """Return the names of a graph, a line a node, and those of its outputs.

    >>> import pyop
    >>> from pyop.graph.names import listing
    >>> print(listing(pyop.trace(lambda x: {"level": x + 1}, "float64[n]", name="g")))
    <pyop.Graph 'g' of 2 nodes>
      x    float64[n]
      add  float64[n] = add(x)
      level: add
    """
    nodes = graph.nodes
    width = min(max((len(node.name) for node in nodes), default=0), 40)
    lines = [repr(graph)]
    for node in nodes[:200]:
        call = f" = {unwrapped_name(node)}({', '.join([value.name for value in node.inputs])})" if node.inputs else ""
        lines.append(
            f"  {node.name:{width}}  {', '.join([str(value.spec) for value in node.outputs])}{call:.200}".rstrip()
        )
    if len(nodes) > 200:
        lines.append(f"  … {len(nodes) - 200} more: show() prints all")
    if graph._outputs is not None:
        leaves, _ = graph._output_leaves()
        lines += [f"  {name}: {leaf.name}" for name, leaf in zip(output_names(graph), leaves, strict=True)]
    return "\n".join(lines)


def unwrapped_name(node: Node) -> str:
    """Return the name of the function that a node calls."""
    function = unwrapped(node.function)
    return str(getattr(function, "__name__", type(function).__name__.lower()))


def _near(name: str, names: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, dict.fromkeys(names), n=5, cutoff=0.5)
    some = near or list(dict.fromkeys(names))[:8]
    return f"; {'near are' if near else 'it has'} {some}" if some else "; it is empty"
