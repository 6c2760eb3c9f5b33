"""Show places as readers know them, and find the line of theirs that a warning is about.

A cell of a notebook is shown by its number, not by the temporary file that it is compiled as.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any

__all__ = ["OWN", "named_place", "place_in", "shown_file", "shown_place", "warn"]

OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep


def shown_file(file: str) -> str:
    """Return ``In [3]`` for the file of a cell, other files as they are.

    >>> from pyop.graph.cells import shown_file
    >>> shown_file("model.py")
    'model.py'
    """
    ipython = sys.modules.get("IPython")  # where it is not loaded, nobody runs cells
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", None)
    if not isinstance(cells, dict) or file not in cells:
        return file
    return f"In [{cells[file]}]"


def shown_place(origin: str) -> str:
    """Return ``file:line`` with the file as `shown_file` gives it.

    >>> from pyop.graph.cells import shown_place
    >>> shown_place("model.py:12")
    'model.py:12'
    """
    file, colon, line = origin.rpartition(":")
    return shown_file(file) + colon + line if colon and line.isdecimal() else origin


def place_in(code: CodeType, line: int | None = None) -> str:
    """Return the place of a function, or of a line of it, as ``file:line``.

    >>> from pyop.graph.cells import place_in
    >>> place_in(compile("0", "model.py", "eval"), 12)
    'model.py:12'
    """
    return f"{shown_file(code.co_filename)}:{code.co_firstlineno if line is None else line}"


def named_place(name: str, function: Callable[..., Any]) -> str:
    """Return a function's name and, if it has code, its place, whatever wraps it.

    >>> import math
    >>> from pyop.graph.cells import named_place
    >>> named_place("sin", math.sin), named_place("f", lambda x: x)[:3]
    ('sin', 'f (')
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{name} ({place_in(code)})" if isinstance(code, CodeType) else name


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that has called pyop, however many frames of pyop's there are between.

    Which ones there are goes by the kind of call, so no `stacklevel` is right for all, and one too many is a frame of
    whoever runs the line: IPython's, or runpy's.

    >>> import warnings
    >>> from pyop.graph.cells import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("look out", UserWarning)
    >>> "graph/cells.py" in caught[0].filename
    False
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
