"""The front of the engine: `backward` and `grad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor

__all__ = ["backward", "grad"]


def _several(x: Any, what: str) -> tuple[Any, ...]:
    if isinstance(x, Tensor):
        return (x,)
    if isinstance(x, (tuple, list)):
        return tuple(x)
    raise TypeError(f"{what} must be a Tensor or a sequence of Tensors, not {type(x).__name__}")


def _seeds(seeds: Any, count: int) -> tuple[Any, ...]:
    if seeds is None:
        return (None,) * count
    if not isinstance(seeds, (tuple, list)):
        seeds = (seeds,)
    if len(seeds) != count:
        raise ValueError(f"{count} outputs need as many gradients to begin with, got {len(seeds)}")
    return tuple(seeds)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` by `inputs`; `.grad` of nothing is touched.

    Only what lies between outputs and inputs is run.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
    inputs : Tensor or sequence of Tensor
        Leaves or results of computations; all must require a gradient.
    grad_outputs : array_like or sequence of array_like, optional
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
        One for each of `inputs`, of its shape and dtype.

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
    """
    outputs = _several(outputs, "outputs")
    inputs = _several(inputs, "inputs")
    if allow_unused is None:
        allow_unused = materialize_grads
    elif materialize_grads and not allow_unused:
        raise ValueError("materialize_grads=True means that unused inputs are allowed: leave allow_unused out")
    result: tuple[Tensor | None, ...] = _core.run_backward(
        outputs,
        _seeds(grad_outputs, len(outputs)),
        inputs,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        False,
        allow_unused,
        materialize_grads,
    )
    return result


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves they were computed from.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
    grad_tensors : array_like or sequence of array_like, optional
        The gradients to begin with, of the tensors' shapes. May be None for a single real number.
    retain_graph : bool, optional
        Keep what was saved, for another run. Default: `create_graph`.
    create_graph : bool
        Record the backward pass itself, for derivatives of higher order.
    inputs : Tensor or sequence of Tensor, optional
        Only these get a gradient.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> x = pyop.Tensor(np.array([1.0, 2.0]), requires_grad=True)
    >>> pyop.autograd.backward([x * 2, x * 3], [np.ones(2), np.ones(2)])
    >>> x.grad
    Tensor([5., 5.])
    """
    tensors = _several(tensors, "tensors")
    _core.run_backward(
        tensors,
        _seeds(grad_tensors, len(tensors)),
        None if inputs is None else _several(inputs, "inputs"),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        True,
        False,
        False,
    )
