"""Provide TensorFlow's ``contrib.framework.py_func``: nested arguments and results, keywords, shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core import Node
from ._tree import flatten
from .declare.contracts import ResultForm
from .declare.parameters import default_name
from .declare.rebuild import CallOnTree, call_on_tree
from .declare.spec import Spec
from .ops.py_func import make_function_op, output_spec

__all__ = ["py_func"]


def py_func(
    func: Callable[..., Any],
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    output_types: Any = None,
    output_shapes: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call ``func(*args, **kwargs)`` on nested arrays, now or as a node of a graph.

    Parameters
    ----------
    func : callable
    args : list or tuple
        Arrays, Values, and containers of them.
    kwargs : dict, optional
        The same, by keyword.
    output_types : tree of dtype, or callable
        The structure of the result. None or an empty container: no result. A callable is asked for the tree, with the
        arguments.
    output_shapes : tree of shapes, or callable, optional
        One shape for each dtype: a list of sizes, None for an unknown one, or None for any shape. Checked at every
        call.
    stateful : bool
        The function has side effects or hidden inputs.
    name : str, optional
        Of the node.

    Returns
    -------
    tree of ndarray or Value
        As `output_types`. Without a result: None, or the Node to run.

    Raises
    ------
    OutputError
        The function returned another structure, dtype or shape.
    TypeError
        `args` is not a list or tuple, `kwargs` is not a dict, or a type is no dtype.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.contrib.py_func(lambda x, *, k: {"y": x * k}, [np.ones(2)], {"k": 3.0},
    ...                      output_types={"y": np.float64}, output_shapes={"y": [2]})
    {'y': array([3., 3.])}
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func!r:.200} of type {type(func).__name__}.")
    if not isinstance(args, list | tuple):
        raise TypeError(f"args must be list and not {type(args).__name__}. args: {args!r:.80}")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(f"kwargs must be dict and not {type(kwargs).__name__}. kwargs: {kwargs!r:.80}")
    kwargs = {} if kwargs is None else kwargs
    leaves, structure = flatten((tuple(args), kwargs))
    call = call_on_tree(func, structure, (CallOnTree.ARRAY,) * len(leaves))
    types = output_types(*args, **kwargs) if _is_rule(output_types) else output_types
    shapes = output_shapes(*args, **kwargs) if _is_rule(output_shapes) else output_shapes
    label = default_name(func) if name is None else name
    outputs = _output_tree(types, shapes)
    result = make_function_op(call, outputs, ResultForm.TREE, stateful, label)(*leaves)
    return result if isinstance(result, Node) or flatten(outputs)[0] else None


def _is_rule(x: Any) -> bool:
    """Return whether `x` is a callable to ask for the tree, and not a dtype class."""
    return callable(x) and not isinstance(x, type)


def _output_tree(types: Any, shapes: Any) -> Any:
    if types is None:
        return ()
    type_leaves, structure = flatten(types)
    specs = [output_spec(leaf) for leaf in type_leaves]
    if shapes is not None:
        try:
            shape_leaves = structure.flatten_up_to(shapes)
        except (TypeError, ValueError) as error:
            raise type(error)(f"output_shapes must have the structure of output_types: {error}") from error
        specs = [
            Spec(spec.dtype, _shape(shape)) if shape is not None else spec
            for spec, shape in zip(specs, shape_leaves, strict=True)
        ]
    return structure.unflatten(specs)


def _shape(shape: Any) -> Any:
    if isinstance(shape, int) or not hasattr(shape, "__iter__"):
        raise TypeError(f"a shape is a list of sizes or None, got {type(shape).__name__} {shape!r:.80}")
    return tuple(shape)
