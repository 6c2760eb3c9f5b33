"""B21, B35: ops and plans that JAX calls, against a hand-written pure_callback and an empty jit."""

from __future__ import annotations

import importlib.util
import time

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """The rows of this suite."""
    calls = "wrapped op of 8 float64 in JAX, jitted, over a hand-written pure_callback"
    native = "native plan of 8 float64 in JAX, a call, over an empty jit"
    large = "native plan of 64 MiB in JAX, over JAX's own x * 2, processor time"
    if not importlib.util.find_spec("jax"):
        return [
            Row("B21", calls, "≤ 1.1×", None, 1.1, detail="JAX is not installed"),
            Row("B35", native, "≤ 1.5×", None, 1.5, detail="JAX is not installed"),
        ]
    import jax
    import jax.numpy as jnp

    from pyop.interop.jax import wrap

    jax.config.update("jax_enable_x64", True)
    x = jnp.arange(8.0)

    def double(x):
        return x * 2

    spec = jax.ShapeDtypeStruct((8,), np.float64)
    names = {
        "hand": jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x) * 2, spec, x)),
        "op": jax.jit(wrap(pyop.op(double, "float64[n] -> float64[n]"))),
        "empty": jax.jit(lambda x: x + 0.0),
        "plan": jax.jit(wrap(pyop.compile(double))),
        "x": x,
    }

    def statement(name: str, unroll: int = 5) -> Statement:
        return Statement(f"{name}(x).block_until_ready()", {name: names[name], "x": x}, unroll)

    small = harness.compare({k: statement(k) for k in ("hand", "op", "empty", "plan")}, time.perf_counter_ns)
    n = 1 << 12 if harness.quick else 1 << 23
    big = jnp.arange(float(n))
    plan = pyop.trace(double, f"float64[{n}]").compile()
    compared = harness.compare(
        {
            "jax": Statement("f(x).block_until_ready()", {"f": jax.jit(wrap(plan)), "x": big}, 1),
            "own": Statement("f(x).block_until_ready()", {"f": jax.jit(double), "x": big}, 1),
            "hand": Statement(
                "f(x).block_until_ready()",
                {"f": jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x) * 2, big, x)), "x": big},
                1,
            ),
        },
        time.process_time_ns,  # XLA's own runs on all cores, and a copy would be work of one
    )
    ns = {name: f"{small.ns(name) / 1000:.1f} µs" for name in small.samples}
    return [
        Row("B21", calls, "≤ 1.1×", small.ratio("op", "hand"), 1.1, detail=f"{ns['op']}, by hand {ns['hand']}"),
        Row("B35", native, "≤ 1.5×", small.ratio("plan", "empty"), 1.5, detail=f"{ns['plan']}, empty {ns['empty']}"),
        Row(
            "B35",
            large,
            "no copy",
            compared.ratio("jax", "own"),
            1.5,
            detail=f"{compared.ns('jax') / 1e6:.1f} ms, a pure_callback {compared.ns('hand') / 1e6:.1f} ms",
        ),
    ]
