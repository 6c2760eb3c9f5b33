"""Call ops, plans and compiled functions from JAX: declared once, called from both.

`wrap` makes a function of JAX's arrays of a callable of pyop. It works under `jit`, `grad` and `vmap`, with nested
trees. XLA itself calls what needs no Python, without a copy (`jax_native.py`). An op of a Python function is a callback
(`jax_ops.py`). `jax_op` makes an op of a function of JAX.

Importing this imports jax, and no other framework.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

from .._core import CompiledFunction, Op, Plan
from .jax_errors import exception_of
from .jax_functions import JaxFunction, JaxPlan
from .jax_ops import JaxOp
from .jax_reverse import jax_op

__all__ = ["JaxFunction", "JaxOp", "JaxPlan", "exception_of", "jax_op", "wrap"]

# What JAX has compiled a call of is kept (`jax_native.py`), and keeps its wrapper. So a program that wraps anew in each
# trace finds that one, and keeps nothing more. A wrapper holds what it is of: its id is of nothing else.
_lock = threading.Lock()
_wrapped: WeakValueDictionary[tuple[int, str | None], Any] = WeakValueDictionary()


def wrap(function: Any, *, derivatives: str | None = None) -> Any:
    """Return a function of JAX's arrays that calls an op, a plan, or a compiled function of pyop.

    XLA passes its own buffers to a plan without Python steps, which reads and writes them. An op is called by
    `jax.pure_callback`, and by an ordered `jax.experimental.io_callback` if it is stateful: never dropped or merged.

    Parameters
    ----------
    function : Op, Plan or compiled function
        Arguments that are no arrays are static. A plan has its own dtypes and sizes, and no gradient here; where
        a size has a name, the call goes by Python.
    derivatives : {"vjp", "jvp"}, optional
        Of an op, by which of its rules JAX differentiates: it has one of the two for a function. By default
        ``"vjp"``, backwards, where the op has such a rule.

    Returns
    -------
    callable
        The same one for the same function, while it is in use. What an op with ``mutates=`` writes into is a copy,
        since JAX's arrays never change: it returns what the caller is to see of it.

    Raises
    ------
    TypeError
        `function` is none of these. At a call: a dtype of 64 bits that JAX would cut in silence, or results whose dtype
        or shape are known only after the call.

    Notes
    -----
    JAX raises ``JaxRuntimeError`` for what a function has raised: `exception_of` finds the exception itself, which is
    the ``__cause__`` where the call is not traced.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, numpy as np, pyop  # doctest: +SKIP
    >>> from pyop.interop.jax import wrap  # doctest: +SKIP
    >>> f = wrap(pyop.compile(lambda x: np.sin(x) ** 2))  # doctest: +SKIP
    >>> jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.arange(3, dtype=jnp.float32))  # doctest: +SKIP
    Array([ 0.       ,  0.9092974, -0.7568025], dtype=float32)
    """
    if derivatives not in (None, "vjp", "jvp"):
        raise ValueError(f"derivatives={derivatives!r} is neither 'vjp' nor 'jvp'")
    if not isinstance(function, (Op, Plan, CompiledFunction)):
        raise TypeError(
            f"expected an op, a plan or a compiled function, got {type(function).__name__} {function!r:.80}"
        )
    if derivatives is not None and not isinstance(function, Op):
        raise TypeError("derivatives= goes with an op: a compiled function is differentiated backwards")
    key = (id(function), derivatives)
    with _lock:
        wrapped = _wrapped.get(key)
    if wrapped is None:
        made = _made(function, derivatives)
        with _lock:
            wrapped = _wrapped.setdefault(key, made)
    return wrapped


def _made(function: Any, derivatives: str | None) -> Any:
    if isinstance(function, Op):
        return JaxOp(function, derivatives)
    if isinstance(function, Plan):
        return JaxPlan(function, repr(function))
    return JaxFunction(function, function.__name__.strip("<>"))
