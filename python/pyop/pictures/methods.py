"""Define the methods of Graph, Plan and Value that draw them, added to the types at the first use of one."""

from __future__ import annotations

import os
from typing import Any

from .._core import Plan, Value
from ..atomic_file import write_file
from ..graph.graph import Graph
from ..graph.html import clean
from .build import picture_of
from .text import dot, lines_of, mermaid

__all__: list[str] = []


def show(self: Any, profile: Any = None) -> None:
    """Print the boxes, a line each, bodies of loops and branches below theirs.

    The text is in colours where rich is installed and the output is a terminal.

    Parameters
    ----------
    profile : Profile, optional
        Adds the time that each took.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.trace(lambda x: np.sin(x) * 2.0, "float64[n]").compile().show()
    plan of graph lambda
      input   x             float64[n]
      group   sin multiply  float64[n]  <- x
      output  output        float64[n]  <- sin multiply
    """
    import sys

    picture = picture_of(self, profile)
    lines = list(lines_of(picture))
    kinds = max((len(box.kind) for _, box, _ in lines), default=0)
    names = min(max((len(box.label) for _, box, _ in lines), default=0), 40)
    specs = min(max((len(box.spec) for _, box, _ in lines), default=0), 30)
    console = None
    if sys.stdout is not None and sys.stdout.isatty():
        try:
            from rich.console import Console

            console = Console(highlight=False, soft_wrap=True)
        except ImportError:
            pass
    print(picture.title)
    colours = {"python": "red", "group": "green", "native": "green", "loop": "yellow", "branch": "yellow"}
    for depth, box, reads in lines:
        indent = "  " * (depth + 1)
        label = "".join(c if c.isprintable() else "?" for c in box.label[:200])
        text = f"{label:{names}}  {box.spec:{specs}}" if box.kind else label + ":"
        if reads:
            text += f"  <- {', '.join(dict.fromkeys(reads)):.120}"
        if box.time >= 0:
            from ..profiling.table import text_of_ns

            text += f"  {text_of_ns(box.time)}, {100 * box.share:.1f}%"
        kind = f"{box.kind:{kinds}}  " if box.kind else ""
        if console is None:
            print(f"{indent}{kind}{text}".rstrip())
        else:
            from rich.text import Text

            console.print(Text.assemble(indent, (kind, colours.get(box.kind, "cyan")), text.rstrip()))


def to_dot(self: Any) -> str:
    """Return the picture in the language of Graphviz.

    Returns
    -------
    str

    Examples
    --------
    >>> import pyop
    >>> pyop.trace(lambda x: x + 1.0, "float64[n]").to_dot().splitlines()[2]
    '  n0 [label="x\\\\nfloat64[n]", class="input", shape=ellipse];'
    """
    return dot(picture_of(self))


def to_mermaid(self: Any) -> str:
    """Return the picture as a flowchart of Mermaid.

    Returns
    -------
    str

    Examples
    --------
    >>> import pyop
    >>> print(pyop.trace(lambda x: x + 1.0, "float64[n]").to_mermaid().splitlines()[-1])
      n1 -->|"float64#91;n#93;"| n2
    """
    return mermaid(picture_of(self))


def to_html(self: Any, path: str | os.PathLike[str], profile: Any = None) -> None:
    """Write a page that shows it: to zoom, to search, with the source line of each box. It needs no network.

    Parameters
    ----------
    path : str or path-like
    profile : Profile, optional
        Adds the time that each box took.

    Examples
    --------
    >>> import os, tempfile, pyop
    >>> plan = pyop.trace(lambda x: x + 1.0, "float64[n]").compile()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan.to_html(os.path.join(folder, "plan.html"))
    """
    from .page import page

    text = page(picture_of(self, profile), profile)
    write_file(path, text.encode("utf-8", "replace"))


def _repr_svg_(self: Any) -> str:
    from .svg import svg

    return svg(picture_of(self))


def _repr_html_(self: Any) -> str:
    """Return the picture below the `repr`, for notebooks."""
    from .svg import svg

    said = f'<div style="font-family:monospace">{clean(repr(self))}</div>'
    return f'<div style="overflow:auto;max-height:40em">{said}{svg(picture_of(self))}</div>'


# The types come from elsewhere, without these (`__init__.py`).
for _kind in (Graph, Plan, Value):
    for _function in (show, to_dot, to_mermaid, to_html, _repr_svg_, _repr_html_):
        if _kind is not Value or _function.__name__.startswith("_repr"):
            setattr(_kind, _function.__name__, _function)
