"""B21 in PyTensor and TensorFlow: a wrapped op against the binding that people write by hand, of the same function."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

WARM = 10  # turns before anything is timed: first calls trace, compile and define


def energy(x: Any) -> Any:
    return np.dot(x, x)


def slope(ct: Any, x: Any) -> Any:
    return 2 * ct * x


def declared() -> Any:
    """The same, declared."""
    op = pyop.op(energy, "float64[n] -> float64[]")
    op.vjp(slope)
    return op


def run(harness: Harness) -> list[Row]:
    """Each framework that is installed."""
    return [*pytensor_rows(harness), *tensorflow_rows(harness)]


def _row(harness: Harness, what: str, code: str, ours: Any, theirs: Any, names: dict[str, Any], unroll: int) -> Row:
    # TensorFlow's graphs run on threads of its own.
    times = harness.compare(
        {
            "wrapped": Statement(code, {**names, "f": ours}, unroll),
            "by hand": Statement(code, {**names, "f": theirs}, unroll),
        },
        clock=time.process_time_ns if "tf.function" in what else time.thread_time_ns,
        warm=WARM,
    )
    detail = f"{times.ns('wrapped') / 1e3:.1f} µs, by hand {times.ns('by hand') / 1e3:.1f} µs"
    return Row("B21", what, "≤ 1.1×", times.ratio("wrapped", "by hand"), 1.1, detail=detail)


def pytensor_rows(harness: Harness) -> list[Row]:
    """Compiled functions of one Op, and of its value and gradient."""
    if not importlib.util.find_spec("pytensor"):
        return [Row("B21", "PyTensor", "≤ 1.1×", None, 1.1, detail="needs PyTensor")]
    import pytensor
    import pytensor.tensor as pt
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    from pyop.interop.pytensor import wrap

    class Slope(Op):
        def make_node(self, ct: Any, x: Any) -> Any:
            return Apply(self, [ct, x], [x.type()])

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            output_storage[0][0] = slope(*inputs)

    class Energy(Op):
        def make_node(self, x: Any) -> Any:
            x = pt.as_tensor_variable(x)
            return Apply(self, [x], [pt.dscalar()])

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            output_storage[0][0] = np.asarray(energy(*inputs))

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
            return [Slope()(cotangents[0], inputs[0])]

        L_op = pullback

    x = pt.dvector("x")
    rows = []
    for size in (8, 100_000):
        names = {"x": np.linspace(0, 1, size)}
        for what, outputs in (
            ("a value", lambda y: y),
            ("value and gradient", lambda y: [y, pytensor.grad(y, x)]),
        ):
            ours, theirs = (pytensor.function([x], outputs(op(x))) for op in (wrap(declared()), Energy()))
            rows.append(_row(harness, f"op in PyTensor, {what}, {size:,} numbers", "f(x)", ours, theirs, names, 5))
    return rows


def tensorflow_rows(harness: Harness) -> list[Row]:
    """Calls at once and in a tf.function, with a tape and without."""
    if not importlib.util.find_spec("tensorflow"):
        return [Row("B21", "TensorFlow", "≤ 1.1×", None, 1.1, detail="needs TensorFlow")]
    import tensorflow as tf

    from pyop.interop.tensorflow import wrap

    @tf.custom_gradient
    def by_hand(x: Any) -> Any:
        y = tf.ensure_shape(tf.numpy_function(energy, [x], tf.float64), [])

        def gradient(ct: Any) -> Any:
            return tf.ensure_shape(tf.numpy_function(slope, [ct, x], tf.float64), x.shape)

        return y, gradient

    def with_tape(f: Any) -> Any:
        def both(x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return y, tape.gradient(y, x)

        return both

    rows, ours = [], wrap(declared())
    for size in (8, 100_000):
        names = {"x": tf.constant(np.linspace(0, 1, size))}
        forms = {
            "at once, a value": lambda f: f,
            "at once, value and gradient": with_tape,
            "tf.function, a value": lambda f: tf.function(lambda x: f(x)),
            "tf.function, value and gradient": lambda f: tf.function(with_tape(f)),
        }
        for what, made in forms.items():
            what = f"op in TensorFlow, {what}, {size:,} numbers"
            rows.append(_row(harness, what, "f(x)", made(ours), made(by_hand), names, 2))
    return rows
