"""Use ops in TensorFlow: `wrap` makes a function of tensors of an op, and `op_of` the reverse.

>>> import numpy as np, pyop  # doctest: +SKIP
>>> import tensorflow as tf  # doctest: +SKIP
>>> from pyop.interop.tensorflow import wrap  # doctest: +SKIP
>>> @pyop.op("float64[n], float64[n] -> float64[]")  # doctest: +SKIP
... def dot(x, y):
...     return np.dot(x, y)
>>> @dot.vjp  # doctest: +SKIP
... def _(ct, x, y):
...     return ct * y, ct * x
>>> x = tf.Variable(np.arange(3.0))  # doctest: +SKIP
>>> with tf.GradientTape() as tape:  # doctest: +SKIP
...     value = tf.function(wrap(dot))(x, x)
>>> tape.gradient(value, x).numpy()  # doctest: +SKIP
array([0., 2., 4.])
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .._core import Op
from .hooks import Hooks
from .tensorflow_call import Call
from .tensorflow_graph import op_of

__all__ = ["TensorFlowOp", "op_of", "wrap"]


class TensorFlowOp:
    """Call an op of pyop from TensorFlow; `wrap` makes them.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.tensorflow import wrap
    >>> wrap(pyop.op(np.negative, "float64[n] -> float64[n]"))
    <TensorFlowOp 'negative': float64[n] -> float64[n]>
    """

    def __init__(self, op: Op, statics: dict[str, Any]) -> None:
        hooks = Hooks(op)
        unknown = set(statics) - set(hooks.statics)
        if unknown:
            raise TypeError(
                f"op {op.name!r} has no static parameter {', '.join(sorted(unknown))}; it has {list(hooks.statics)}"
            )
        # `tf.function` copies the attributes of what it wraps over its own.
        self._pyop_call = Call(hooks, statics)
        self.__name__ = op.name
        self.__doc__ = op.__doc__

    @property
    def op(self) -> Op:
        """Return the op that it calls."""
        return self._pyop_call.hooks.op

    @property
    def statics(self) -> dict[str, Any]:
        """Return the static arguments that are fixed."""
        return self._pyop_call.statics

    def __reduce__(self) -> Any:
        return TensorFlowOp, (self.op, self.statics)

    def __repr__(self) -> str:
        return f"<TensorFlowOp {self.op.name!r}: {self.op.spec}>"

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def __call__(self, *inputs: Any, **statics: Any) -> Any:
        """Return the results on tensors, in the containers that the op declares.

        Parameters
        ----------
        *inputs : tensor, variable, array, number, or the containers of these that the op takes
        **statics : object
            Static arguments.
        """
        if statics:
            return TensorFlowOp(self.op, self.statics | statics)(*inputs)
        hooks = self._pyop_call.hooks
        tree = hooks.in_tree
        plain = len(inputs) == tree.num_leaves and all(isinstance(x, tf.Tensor) for x in inputs)
        flat = list(inputs) if plain else tree.flatten_up_to(inputs)
        tensors = flat if plain else [_tensor(x, each.spec) for x, each in zip(flat, hooks.inputs, strict=True)]
        results = self._pyop_call(tensors)
        if hooks.out_tree is not None:
            return hooks.out_tree.unflatten(results)
        return results[0] if len(results) == 1 else tuple(results)


def _tensor(x: Any, spec: Any) -> Any:
    if isinstance(x, tf.Tensor):
        return x
    if type(x) in (bool, int, float, complex) and isinstance(spec.dtype, np.dtype):
        # A number of Python's takes the dtype that is declared, where it has its kind.
        if np.result_type(spec.dtype, x) == spec.dtype:
            return tf.constant(np.asarray(x, spec.dtype))
        return tf.constant(np.asarray(x))
    if isinstance(x, (list, tuple)) and not any(isinstance(part, (tf.Tensor, tf.Variable)) for part in x):
        x = np.asarray(x)  # TensorFlow would make float32 of it
    return tf.convert_to_tensor(x)


def wrap(op: Op, **statics: Any) -> TensorFlowOp:
    """Return a function of TensorFlow's tensors that calls an op.

    Parameters
    ----------
    op : Op
        With a fixed number of arrays. In graphs (`tf.function`, `tf.data`, Keras) the dtypes of its results are to be
        declared.
    **statics : object
        Static arguments that are fixed; others are passed by keyword when it is called.

    Returns
    -------
    TensorFlowOp
        Called with tensors, variables, arrays and numbers, in the containers that the op takes. A call with values runs
        at once, and raises what the function raises; in a graph it is a `tf.numpy_function`, stateful as the op is,
        with the shapes that are declared. Gradients are by the op's rules; without one, to ask for a gradient is an
        error. Arguments of ``mutates=`` are copied.

    Raises
    ------
    TypeError
        `op` is no op, takes any number of arrays, or has no such static parameter.

    Examples
    --------
    >>> import numpy as np, pyop  # doctest: +SKIP
    >>> from pyop.interop.tensorflow import wrap  # doctest: +SKIP
    >>> twice = wrap(pyop.op(lambda x: np.tile(x, 2), "float64[n] -> float64[2*n]"))  # doctest: +SKIP
    >>> twice(np.ones(2)).shape  # doctest: +SKIP
    TensorShape([4])
    """
    return TensorFlowOp(op, statics)
