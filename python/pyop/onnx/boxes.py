"""Carry objects that are no arrays through a graph: a missing result, a sequence, a map.

Values of a graph are arrays. ONNX has sequences, optionals and maps too, and a PythonOp may leave a result out. Those
travel as an object array of rank 0 with one `Boxed` in it, which is taken out again where the graph ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tree import TreeDef

__all__ = ["Boxed", "Unboxing", "box", "unbox"]


class Boxed:
    """Hold one object that is no array."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Boxed({self.value!r})"


def box(value: Any) -> np.ndarray[Any, Any]:
    """Return an array that carries any object, to feed a sequence, a map or None to a loaded graph.

    Parameters
    ----------
    value : object
        For a sequence a list of arrays, for a map a dict, for an absent optional None.

    Returns
    -------
    ndarray
        Of dtype object and shape ``()``.

    Examples
    --------
    >>> import numpy as np, pyop.onnx
    >>> pyop.onnx.box([np.zeros(2), np.zeros(3)]).shape
    ()
    """
    array = np.empty((), object)
    array[()] = Boxed(value)
    return array


def unbox(array: Any) -> Any:
    """Return the object in a box; anything else as it is."""
    if type(array) is np.ndarray and array.ndim == 0 and array.dtype == object:
        inside = array.item()
        if type(inside) is Boxed:
            return inside.value
    return array


class Unboxing:
    """Take objects out of their boxes while a TreeDef rebuilds containers."""

    __slots__ = ("structure",)

    def __init__(self, structure: TreeDef) -> None:
        self.structure = structure

    def unflatten(self, leaves: Any) -> Any:
        """Rebuild containers, as `TreeDef.unflatten`."""
        return self.structure.unflatten([unbox(leaf) for leaf in leaves])
