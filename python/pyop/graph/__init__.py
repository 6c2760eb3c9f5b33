"""Graphs, and NumPy on the Values in them."""

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    # Pickles of earlier versions name the class here.
    if name != "Graph":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from . import graph

    return getattr(graph, name)
