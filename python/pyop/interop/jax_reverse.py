"""Turn functions of JAX into ops with their gradient, called on the memory of NumPy's arrays where JAX takes it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .._core import Op
from ..ops.op import op as declare
from .jax_arrays import checked

__all__ = ["jax_op"]


def jax_op(function: Callable[..., Any], declaration: Any = None, **options: Any) -> Op:
    """Return an op of a function of JAX, with its gradient by `jax.vjp`.

    Parameters
    ----------
    function : callable
        Of JAX's arrays; under `jax.jit` or not, which it is put under here.
    declaration : str, optional
        As `pyop.op` takes it.
    **options : object
        Further ones of `pyop.op`: ``name``, ``inputs``, ``outputs``.

    Returns
    -------
    Op

    Raises
    ------
    TypeError
        At a call: an argument of 64 bits, which JAX would cut in silence while its types of 64 bits are off.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, pyop  # doctest: +SKIP
    >>> from pyop.interop.jax import jax_op  # doctest: +SKIP
    >>> f = jax_op(lambda x: jnp.sum(jnp.sin(x)), "float32[n] -> float32[]")  # doctest: +SKIP
    >>> pyop.grad(f)(np.zeros(3, np.float32))  # doctest: +SKIP
    array([1., 1., 1.], dtype=float32)
    """
    if not callable(function):
        raise TypeError(f"expected a function of JAX's arrays, got {type(function).__name__} {function!r:.80}")
    name = options.pop("name", None) or getattr(function, "__name__", type(function).__name__).strip("<>")
    jitted = jax.jit(function)

    @functools.wraps(function)
    def call(*arrays: Any) -> Any:
        return _from_jax(jitted(*_to_jax(name, arrays)), arrays)

    @jax.jit
    def pull(cotangents: Any, arrays: Any) -> Any:
        which = [k for k, x in enumerate(arrays) if jax.numpy.issubdtype(x.dtype, jax.numpy.inexact)]

        def moving(*values: Any) -> Any:
            full = list(arrays)
            for k, x in zip(which, values, strict=True):
                full[k] = x
            return function(*full)

        results, back = jax.vjp(moving, *[arrays[k] for k in which])
        wanted = jax.tree_util.tree_map(_cotangent, results, cotangents)
        each: list[Any] = [None] * len(arrays)
        for k, g in zip(which, back(wanted), strict=True):
            each[k] = _conj(g)
        return tuple(each)

    made = declare(call, declaration, name=name, **options)

    def gradient(ct: Any, *arrays: Any) -> Any:
        flat = jax.tree_util.tree_map(lambda c: _to_jax(name, [c])[0], ct)
        gradients = pull(flat, tuple(_to_jax(name, arrays)))
        parts = [None if g is None else _from_jax(g, arrays) for g in gradients]
        return parts[0] if len(parts) == 1 else tuple(parts)

    made.vjp(gradient)
    return made


def _conj(x: Any) -> Any:
    return jax.numpy.conj(x) if jax.numpy.issubdtype(x.dtype, jax.numpy.complexfloating) else x


def _cotangent(y: Any, ct: Any) -> Any:
    if not jax.numpy.issubdtype(y.dtype, jax.numpy.inexact):
        return np.zeros(y.shape, jax.dtypes.float0)
    return _conj(ct)


def _to_jax(name: str, arrays: Any) -> list[Any]:
    arrays = [np.asarray(x) for x in arrays]
    checked(f"op {name!r} of JAX", [str(k) for k in range(len(arrays))], arrays)
    return [jax.numpy.asarray(x) for x in arrays]


def _from_jax(tree: Any, arrays: Any) -> Any:
    def one(y: Any) -> Any:
        made = np.asarray(y)
        if any(np.may_share_memory(made, x) for x in arrays if isinstance(x, np.ndarray)):
            made = made.copy()
        return made

    return jax.tree_util.tree_map(one, tree)
