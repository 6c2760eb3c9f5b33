"""Turn a function of TensorFlow, a `tf.function` or a model, into an op of pyop, with its gradient by a tape.

The tape records while the function runs, when a gradient will be asked for. So a function that draws random numbers is
differentiated at those that it has drawn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .._core import Op
from .._tree import flatten, map_leaves
from ..gradients import saved
from ..ops.op import op as declare
from .derived import one_or_tuple

__all__ = ["op_of"]


def op_of(
    function: Callable[..., Any],
    spec: str | None = None,
    *,
    inputs: Any = None,
    outputs: Any = None,
    name: str | None = None,
    stateful: bool = True,
) -> Op:
    """Return an op that calls a function of TensorFlow's tensors.

    Parameters
    ----------
    function : callable
        A `tf.function`, a Keras model, or any function of tensors. It returns tensors, in any containers.
    spec : str, optional
        What the op declares, such as ``"float64[n] -> float64[]"``. TensorFlow casts nothing: the dtypes are those that
        the function takes and returns.
    inputs, outputs : optional
        Instead, as for `pyop.op`: for results in containers.
    name : str, optional
    stateful : bool, optional
        Whether it may return something else in another call: because it reads variables that are trained, or draws
        random numbers. Calls of what is not stateful are merged.

    Returns
    -------
    Op
        With the gradient of the arguments that TensorFlow derives; variables are constants to it.

    Raises
    ------
    TypeError
        `function` cannot be called, or when it is called: it returns something else than tensors.

    Examples
    --------
    >>> import numpy as np, pyop, tensorflow as tf  # doctest: +SKIP
    >>> from pyop.interop.tensorflow import op_of  # doctest: +SKIP
    >>> energy = op_of(tf.function(lambda x: tf.reduce_sum(x**2)), "float64[n] -> float64[]")  # doctest: +SKIP
    >>> pyop.grad(energy)(np.arange(3.0))  # doctest: +SKIP
    array([0., 2., 4.])
    """
    if not callable(function):
        raise TypeError(f"expected a function of tensors, got {type(function).__name__} {function!r:.80}")

    def run(*arrays: Any) -> Any:
        tensors = [tf.convert_to_tensor(x) for x in arrays]
        if saved._boxes.innermost is None:
            return map_leaves(_array, function(*tensors))
        with tf.GradientTape(persistent=True) as tape:
            for x in tensors:
                if _is_float(x):
                    tape.watch(x)
            results = function(*tensors)
        return saved.saved(map_leaves(_array, results), (tape, tensors, flatten(results)[0]))

    def rule(ct: Any, *arrays: Any, saved: Any, needs: Any) -> Any:
        tape, tensors, results = saved
        seeds = [tf.cast(tf.convert_to_tensor(c), y.dtype) for c, y in zip(flatten(ct)[0], results, strict=True)]
        which = [k for k, x in enumerate(tensors) if needs[k] and _is_float(x)]
        pairs = [(y, c) for y, c in zip(results, seeds, strict=True) if _is_float(y)]
        gradients: list[Any] = [None] * len(tensors)
        if pairs and which:
            raw_gradients = tape.gradient(
                [y for y, _ in pairs],
                [tensors[k] for k in which],
                output_gradients=[c for _, c in pairs],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            for k, g in zip(which, raw_gradients, strict=True):
                gradients[k] = _array(tf.convert_to_tensor(g))  # which may be of IndexedSlices
        return one_or_tuple(gradients)

    run.__name__ = getattr(function, "__name__", None) or getattr(function, "name", None) or type(function).__name__
    made = declare(run, spec, inputs=inputs, outputs=outputs, stateful=stateful, name=name)
    n = len(made.spec.inputs) if made.spec.inputs is not None else 1
    names = [f"x{k}" for k in range(n)]
    kinds = inspect.Parameter
    positional = [kinds(each, kinds.POSITIONAL_OR_KEYWORD) for each in ("ct", *names)]
    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*positional, kinds("saved", kinds.KEYWORD_ONLY), kinds("needs", kinds.KEYWORD_ONLY)]
    )
    made.vjp(rule)
    return made


def _is_float(x: Any) -> bool:
    return bool(x.dtype.is_floating or x.dtype.is_complex)


def _array(x: Any) -> Any:
    if not isinstance(x, (tf.Tensor, tf.Variable)):
        raise TypeError(f"a function of TensorFlow returns tensors, got {type(x).__name__} {x!r:.80}")
    return x.numpy()
