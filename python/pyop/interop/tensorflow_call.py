"""Call an op on TensorFlow's tensors: at once where these have values, as a node where a graph is traced.

A call at once uses no step of TensorFlow's, so the function's exception is raised unchanged. In a graph it is a
`tf.numpy_function`, whose failures TensorFlow turns into errors of its own.

Results never share memory with arguments, or with anything that the function keeps: tensors do not change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..gradients.table import NoRule
from .derived import PullBack
from .hooks import Hooks
from .own_arrays import own, writable_copy

try:
    from tensorflow.python.eager import record as _record
except ImportError:  # of another version: then by tf.custom_gradient
    _record = None

__all__ = ["Call"]

# Of graphs: nobody says when a gradient is asked for no more. What has gone is computed once more, if it may be.
_recent: deque[Any] = deque(maxlen=8)
_BUFFERS = frozenset("biufc")


class Call:
    """Call an op with its static arguments on flat tensors.

    Parameters
    ----------
    hooks : Hooks
    statics : dict
    """

    def __init__(self, hooks: Hooks, statics: dict[str, Any]) -> None:
        self.hooks = hooks
        self.statics = statics
        self.written = tuple(k for k, each in enumerate(hooks.inputs) if each.written)
        pull = hooks.op.__wrapped__
        self.pull = pull if isinstance(pull, PullBack) and pull.hooks.saves else None
        self._pulls: dict[Any, Call] = {}
        # One object for all nodes: TensorFlow keeps it for ever.
        self._of_graph = _plain_function(self._run_in_graph)

    def __call__(self, tensors: list[Any]) -> list[Any]:
        """Return the results, whose gradients are known to TensorFlow."""
        eager = tf.executing_eagerly() and all(hasattr(x, "numpy") for x in tensors)
        if eager and _record is not None:
            return self._recorded(tensors)
        varying = [k for k, x in enumerate(tensors) if _is_float(x)]
        call = self._eager if eager else self._node
        if not varying:
            return call(tensors)[0]

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def differentiable(*parts: Any) -> Any:
            full = list(tensors)
            for k, x in zip(varying, parts, strict=True):
                full[k] = x
            results, context, kept = call(full)

            def gradient(*cts: Any) -> list[Any]:
                return self._pullback(full, results, context, cts, varying, kept)

            return results, gradient

        return list(differentiable(*[tensors[k] for k in varying]))

    def _pullback(
        self, tensors: list[Any], results: list[Any], context: Any, cts: Sequence[Any], varying: list[int], kept: Any
    ) -> list[Any]:
        """Return the gradients by the op's rule; `kept` keeps alive what the context stands for."""
        hooks = self.hooks
        if not hooks.differentiable:
            if tf.executing_eagerly():
                hooks.rule()  # which says what to do
            # A `tf.function` makes nodes of gradients that nobody asks for: it is an error when they run.
            types = [tensors[k].dtype for k in varying]
            return list(tf.numpy_function(self._refuse, [tensors[k] for k in varying], types, stateful=False))
        needs = tuple(k in varying for k in range(len(tensors)))
        key = (needs, len(results))
        call = self._pulls.get(key)
        if call is None:
            call = self._pulls[key] = Call(Hooks(hooks.vjp_op(needs, len(results))), self.statics)
        seeds = [
            tf.zeros_like(y) if ct is None else tf.convert_to_tensor(ct) for ct, y in zip(cts, results, strict=True)
        ]
        extra = [*(results if hooks.reads_results else ()), *(() if context is None else (context,))]
        return call([*seeds, *tensors, *extra])

    def _refuse(self, *arrays: Any) -> Any:
        self.hooks.rule()
        raise NoRule(f"op {self.hooks.name!r} has no rule for reverse mode")

    # --- at once

    def _recorded(self, tensors: list[Any]) -> list[Any]:
        """Record a call with values as `tf.custom_gradient` does, without its inspection of the function."""
        if not _record.could_possibly_record():  # no tape and no accumulator, or they are stopped
            return self._eager(tensors)[0]
        with _record.VariableWatcher() as watcher:
            results, context, kept = self._eager(tensors)
        read = watcher.watched_variables()
        if read:
            names = ", ".join(sorted({str(v.name) for v in read}))
            raise TypeError(
                f"the function of op {self.hooks.name!r} reads a tf.Variable, {names}, whose gradient a tape would "
                "lose: pass it as an argument, or call with tape.stop_recording()"
            )

        varying = [k for k, x in enumerate(tensors) if _is_float(x)]
        if not varying:
            return results

        def gradient(*cts: Any) -> list[Any]:
            return self._pullback(tensors, results, context, cts, varying, kept)

        # The results are new tensors, so they need no identity to be told from what the function was given.
        _record.record_operation("PyopOp", results, [tensors[k] for k in varying], gradient)
        return list(results)

    def _eager(self, tensors: list[Any]) -> tuple[list[Any], Any, Any]:
        raw_results, context = self._run([_array(x) for x in tensors])
        results = [tf.constant(y) for y in raw_results]
        return results, None if context is None else tf.constant(context), context

    def _run(self, arrays: list[Any]) -> tuple[list[Any], Any]:
        for k in self.written:
            arrays[k] = writable_copy(arrays[k])
        hooks, statics = self.hooks, self.statics
        if self.pull is not None:
            pull = self.pull
            arguments = arrays[pull.n_out :][: pull.n_in]
            arrays[-1] = pull.hooks.context(np.asarray(arrays[-1]).flat[0], arguments, statics)
        if not hooks.saves:
            return own(hooks.call(arrays, statics)), None
        results, kept = hooks.forward(*arrays, **statics)
        context = kept.context
        del kept  # it holds the results
        return own(results), context

    # --- as a node

    def _node(self, tensors: list[Any]) -> tuple[list[Any], Any, Any]:
        hooks = self.hooks
        specs = self.infer(tensors)
        types = [dtype for dtype, _ in specs] + [tf.int64] * hooks.saves
        raw_results = tf.numpy_function(self._of_graph, tensors, types, stateful=hooks.stateful, name=_name(hooks.name))
        context = tf.ensure_shape(raw_results[-1], [1]) if hooks.saves else None
        results = [
            y if shape is None else tf.ensure_shape(y, shape) for y, (_, shape) in zip(raw_results, specs, strict=False)
        ]
        return results, context, None

    def _run_in_graph(self, *arrays: Any) -> list[Any]:
        results, context = self._run([np.asarray(x) for x in arrays])
        if context is not None:
            _recent.append(context)
            results.append(np.array(context))
        return results

    def infer(self, tensors: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return TensorFlow's dtypes and the shapes of the results; None for sizes known only after the call."""
        kinds = [
            (np.dtype(x.dtype.as_numpy_dtype), None if x.shape.rank is None else tuple(x.shape.as_list()))
            for x in tensors
        ]
        specs = self.hooks.infer(kinds, self.statics)
        for k, (dtype, _) in enumerate(specs):
            if dtype is None:
                raise TypeError(
                    f"result {k} of op {self.hooks.name!r} is declared without a dtype, which a graph of TensorFlow "
                    "asks for: declare it, 'float64[n] -> float64[n]'"
                )
        return [(tf.as_dtype(dtype), None if shape is None else list(shape)) for dtype, shape in specs]


def _is_float(x: Any) -> bool:
    return bool(x.dtype.is_floating or x.dtype.is_complex)


def _array(x: Any) -> Any:
    """Return the tensor's own memory as an array where it has a buffer."""
    if np.dtype(x.dtype.as_numpy_dtype).kind in _BUFFERS:
        try:
            return np.asarray(memoryview(x))
        except (TypeError, BufferError):  # of another device, or of what has no buffer
            pass
    return np.asarray(x.numpy())


def _plain_function(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arrays: Any) -> Any:
        return method(*arrays)

    return call


def _name(name: str) -> str:
    """Return a name for TensorFlow: letters, digits and few signs, with a letter or a digit first."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.-/") else "_" for c in name)
    return plain if plain[:1].isalnum() else f"op{plain}"
