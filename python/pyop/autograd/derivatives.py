"""Provide the engine's entry points: `backward` and `grad`."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from .._tree import TreeDef, flatten

__all__ = ["backward", "grad"]


def _several(x: Any, what: str) -> tuple[tuple[Any, ...], TreeDef | None]:
    """Return the Tensors among `x`, and their structure unless that is a flat sequence."""
    if isinstance(x, Tensor):
        return (x,), None
    if isinstance(x, (tuple, list)) and all(isinstance(item, Tensor) for item in x) and type(x) in (tuple, list):
        return tuple(x), None
    leaves, tree = flatten(x)
    if tree.is_leaf:
        raise TypeError(f"{what} must be a Tensor or a container of Tensors, not {type(x).__name__}")
    for path, leaf in zip(tree.leaf_paths(), leaves, strict=True):
        if not isinstance(leaf, Tensor):
            raise TypeError(f"{what} must be Tensors, but {what}{path} is {type(leaf).__name__}")
    return tuple(leaves), tree


def _seeds(seeds: Any, count: int, tree: TreeDef | None) -> tuple[Any, ...]:
    if seeds is None:
        return (None,) * count
    if tree is not None:
        return tuple(tree.flatten_up_to(seeds))
    if not isinstance(seeds, (tuple, list)):
        seeds = (seeds,)
    if len(seeds) != count:
        raise ValueError(f"{count} outputs need as many gradients to begin with, got {len(seeds)}")
    return tuple(seeds)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of `outputs` by `inputs`, without changing any `.grad`.

    Only the nodes between outputs and inputs run.

    Parameters
    ----------
    outputs : Tensor or container of Tensor
    inputs : Tensor or container of Tensor
        Leaves or results of computations; all must require a gradient.
    grad_outputs : array_like or container of array_like, optional
        The gradients to begin with, of the outputs' shapes. May be None for an output that is a single real number.
    retain_graph : bool, optional
        Keep what was saved, for another run. Default: `create_graph`.
    create_graph : bool
        Record the backward pass itself, for derivatives of higher order.
    allow_unused : bool, optional
        None for an input that no output was computed from, instead of an error. Default: `materialize_grads`.
    materialize_grads : bool
        Zeros for such an input.

    Returns
    -------
    tuple of Tensor or None
        One for each of `inputs`, of its shape and dtype; for containers in containers, for a dict, a named tuple or a
        dataclass, the same containers.

    Raises
    ------
    RuntimeError
        An input is unused or needs no gradient, what was saved is freed already, or a shape is wrong.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> x = pyop.Tensor(np.array(3.0), requires_grad=True)
    >>> (slope,) = pyop.autograd.grad(x * x, [x], create_graph=True)
    >>> slope.numpy(), pyop.autograd.grad(slope, [x])[0].numpy()
    (array(6.), array(2.))
    >>> pyop.autograd.grad(x * x, {"position": x})
    {'position': Tensor(6.)}
    """
    outputs, output_tree = _several(outputs, "outputs")
    inputs, input_tree = _several(inputs, "inputs")
    if allow_unused is None:
        allow_unused = materialize_grads
    elif materialize_grads and not allow_unused:
        raise ValueError("materialize_grads=True means that unused inputs are allowed: leave allow_unused out")
    result: tuple[Tensor | None, ...] = _core.run_backward(
        outputs,
        _seeds(grad_outputs, len(outputs), output_tree),
        inputs,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        False,
        allow_unused,
        materialize_grads,
    )
    return result if input_tree is None else input_tree.unflatten(result)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves they were computed from.

    Parameters
    ----------
    tensors : Tensor or container of Tensor
    grad_tensors : array_like or container of array_like, optional
        The gradients to begin with, of the tensors' shapes. May be None for a single real number.
    retain_graph : bool, optional
        Keep what was saved, for another run. Default: `create_graph`.
    create_graph : bool
        Record the backward pass itself, for derivatives of higher order.
    inputs : Tensor or container of Tensor, optional
        Only these get a gradient.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> x = pyop.Tensor(np.array([1.0, 2.0]), requires_grad=True)
    >>> pyop.autograd.backward([x * 2, x * 3], [np.ones(2), np.ones(2)])
    >>> x.grad
    Tensor([5., 5.])
    """
    tensors, tree = _several(tensors, "tensors")
    _core.run_backward(
        tensors,
        _seeds(grad_tensors, len(tensors), tree),
        None if inputs is None else _several(inputs, "inputs")[0],
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        True,
        False,
        False,
    )
