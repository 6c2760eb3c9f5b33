"""Define `stop_gradient`, which makes an array count as constant."""

from __future__ import annotations

from typing import Any

from .._core import Tensor, Value, fill_up_call
from .._tree import map_leaves
from ..declare.spec import Spec
from ..gradients.rule import nondifferentiable
from ..gradients.unbroadcast import primitive
from ..graph.forms import pass_on

__all__ = ["stop_gradient", "stopped"]


@primitive(lambda x: x if isinstance(x, Spec) else Spec.of(x))
def stopped(x: Any) -> Any:
    """Return the array itself, through which no derivative passes. No call of it is left in a plan."""
    return x


pass_on(stopped)
nondifferentiable(stopped)
fill_up_call("stopped", stopped)


def stop_gradient(x: Any) -> Any:
    """Return the same array, which counts as constant in every derivative.

    A function that is differentiated may need a number itself (for ``math.exp``, a loop, a table, another library).
    This call states that its derivative is not wanted; without it such a use is refused. On plain arrays and numbers it
    does nothing.

    Parameters
    ----------
    x : tree of array
        Arrays, Tensors, Values, or containers of them. Everything else is returned as it is.

    Returns
    -------
    tree of array
        Like `x`; over the same memory.

    See Also
    --------
    no_grad : a block in which nothing is recorded.

    Examples
    --------
    >>> import math, numpy as np, pyop
    >>> def scaled(x):
    ...     return x[1] * math.exp(pyop.stop_gradient(x[0]))
    >>> pyop.grad(scaled)(np.array([0.0, 2.0]))
    array([0., 1.])
    >>> pyop.grad(lambda x: x * pyop.stop_gradient(x))(3.0)
    array(3.)
    """
    return map_leaves(_stop, x)


def _stop(x: Any) -> Any:
    from ..autograd.batched import Batched, is_batched

    kind = type(x)
    if kind is Tensor:
        return x.detach()
    if kind is Value:
        made = stopped(x)
        made._show(x, False, False)
        return made
    if is_batched(x):
        return Batched(_stop(x.array), x.dim, x.level, x.ndim == 0)
    return x
