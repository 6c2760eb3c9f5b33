"""Forward mode: tangents that travel along with the computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from .._tree import map_leaves
from ..refusals import call_watched, refusal
from .linear import Alias

__all__ = ["jvp"]


def _dual(primal: Any, tangent: Any) -> Tensor:
    if not isinstance(primal, Tensor):
        primal = Tensor(primal)
    if tangent is not None and not isinstance(tangent, Tensor):
        tangent = np.asarray(tangent)
    if tangent is not None and tangent.shape != primal.shape:
        raise ValueError(f"a tangent has the shape of its primal, {primal.shape}, and not {tangent.shape}")
    if primal.dtype.kind not in "fc" and tangent is not None:
        raise TypeError(f"only floating-point and complex numbers have tangents, not {primal.dtype}")
    if isinstance(primal, Tensor) and primal._tangent is not None:
        raise refusal(
            "a primal belongs to a run of forward mode on another thread, whose tangent is not followed here: use "
            "pyop.jvp, or take this derivative on that thread"
        )
    # An alias, so that a Tensor that is given twice may have two tangents, and none keeps one afterwards.
    dual: Tensor = Alias.apply(primal)
    _core.begin_tangent(dual, tangent)
    dual._argument = True
    return dual


def jvp(func: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Return the value of a function, and its derivative along a direction.

    Parameters
    ----------
    func : callable
        Of Tensors.
    primals : Tensor or sequence of Tensor
        Where.
    tangents : array_like or sequence of array_like
        Along which direction: one for each of `primals`, of its shape; None for zero.

    Returns
    -------
    value, tangent : Tensor
        Or containers of Tensors, as `func` returns them.

    Raises
    ------
    NotImplementedError
        A Function on the way has no jvp, or `jvp` is called inside of `jvp`.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> class Square(pyop.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_forward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def jvp(ctx, t):
    ...         return 2 * ctx.saved_tensors[0] * t
    >>> pyop.autograd.jvp(Square.apply, pyop.Tensor(np.array(3.0)), 1.0)
    (Tensor(9.), Tensor(6.))
    """
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    if not isinstance(tangents, Sequence) or len(tangents) != len(primals):
        raise ValueError(f"{len(primals)} primals need as many tangents")
    if _core.forward_running():
        raise NotImplementedError("forward mode inside forward mode is not supported: use jvp of grad, or grad of jvp")

    def run() -> tuple[Any, Any]:
        duals = tuple([_dual(p, t) for p, t in zip(primals, tangents, strict=True)])
        outputs = call_watched(func, duals, {})
        for dual in duals:
            dual._argument = False
        taken: dict[int, Any] = {}  # by the id of the output, which may stand in several places

        def tangent_of(output: Any) -> Any:
            if not isinstance(output, Tensor):
                return None
            if id(output) not in taken:
                taken[id(output)] = _core.take_tangent(output)
            tangent = taken[id(output)]
            if tangent is None:
                return Tensor(np.zeros(output.shape, output.dtype))
            return tangent if isinstance(tangent, Tensor) else Tensor(tangent)

        return outputs, map_leaves(tangent_of, outputs)

    pair: tuple[Any, Any] = _core.call_moving(run, (), {})
    return pair
