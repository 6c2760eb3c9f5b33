"""B14: value and gradient of an expression of 20 operations, compiled, against the autograd package and PyTensor.
B30: value and gradient of this and of other functions, compiled, over the function compiled alone, autograd and JAX
beside.

Peers that are not installed are named in rows that say "not measured".
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement
from .losses import EXPRESSIONS, MODELS, Loss, expression

# How many times faster than each peer the budget asks for.
OVER_FORWARD = 2.5  # at most, a value and gradient over the value
TIMES_AUTOGRAD = 3.0  # at 10^6 elements
BUDGETS = {10: {"autograd": 50.0, "PyTensor": 1.0}, 1_000: {"autograd": 5.0}, 1_000_000: {"autograd": 1.5}}
Function = Callable[..., Any]


def with_autograd() -> Function:
    """A function of three arrays that returns the value and the three gradients."""
    numbers = importlib.import_module("autograd.numpy")
    made: Function = importlib.import_module("autograd").value_and_grad(expression(numbers), (0, 1, 2))
    return made


def with_pytensor() -> Function:
    """The same, run by PyTensor's virtual machine in C."""
    pytensor = importlib.import_module("pytensor")
    tensor = importlib.import_module("pytensor.tensor")
    mode = importlib.import_module("pytensor.compile.mode").Mode(linker="cvm", optimizer="fast_run")
    inputs = [tensor.dvector(name) for name in "xyz"]
    value = expression(tensor)(*inputs)
    made: Any = pytensor.function(inputs, [value, *tensor.grad(value, inputs)], mode=mode)
    made.trust_input = True
    return made  # type: ignore[no-any-return]


PEERS = {"autograd": with_autograd, "PyTensor": with_pytensor}


def run(harness: Harness) -> list[Row]:
    """Every size against every peer."""
    plan = pyop.trace(pyop.value_and_grad(expression(np), (0, 1, 2)), *["float64[n]"] * 3).compile()
    peers: dict[str, Function | str] = {}
    for name, make in PEERS.items():
        try:
            peers[name] = make()
        except ImportError as error:
            peers[name] = f"{name} is not installed ({error})"
    rows = []
    for size, budgets in BUDGETS.items():
        if not (harness.quick and size > 1_000):
            rows += _rows(harness, size, budgets, plan, peers)
    for loss in EXPRESSIONS + MODELS:
        for size in BUDGETS:
            if not (harness.quick and size > 1_000):
                rows += _over_forward(harness, loss, size)
    return rows


def _over_forward(harness: Harness, loss: Loss, size: int) -> list[Row]:
    f = loss.written(np)
    arrays = loss.arrays(np.random.default_rng(0), size)
    names = {f"a{k}": a for k, a in enumerate(arrays)}
    call = f"f({', '.join(names)})"
    plans = {
        "value": pyop.trace(f, *loss.specs).compile(),
        "gradient": pyop.trace(pyop.value_and_grad(f, loss.argnums), *loss.specs).compile(),
    }
    candidates = {name: Statement(call, {"f": plan, **names}, unroll=1) for name, plan in plans.items()}
    value, gradients = plans["gradient"](*arrays)
    np.testing.assert_array_equal(value, plans["value"](*arrays))
    for name, make in {"autograd": _autograd_of, "JAX": _jax_of}.items():
        if size == 10 and name == "autograd":
            continue  # B14 has it
        try:
            peer, given = make(loss, arrays)
        except ImportError:
            continue
        found, rest = peer(*given)
        np.testing.assert_allclose(value, found, rtol=1e-9)
        for ours, theirs in zip(gradients, rest, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
        candidates[name] = Statement(
            f"wait({call})", {"f": peer, "wait": _waits(name), **dict(zip(names, given, strict=True))}, unroll=1
        )
    clock = time.process_time_ns if "JAX" in candidates else time.thread_time_ns
    times = harness.compare(candidates, clock)
    detail = f"{times.ns('gradient'):,.0f} ns, value alone {times.ns('value'):,.0f} ns"
    for name in ("autograd", "JAX"):
        if name in candidates:
            detail += f", {name} {times.ns(name):,.0f} ns"
    ratio = times.ratio("gradient", "value")
    what = f"compiled value_and_grad of {loss.name}, {size:,} float64, over the compiled value"
    rows = [Row("B30", what, f"≤ {OVER_FORWARD:g}", ratio, OVER_FORWARD, detail=detail)]
    if size == 1_000_000 and loss in EXPRESSIONS and "autograd" in candidates:
        what, faster = f"the same of {loss.name}, over autograd", 1 / times.ratio("gradient", "autograd")
        limit = 1 / TIMES_AUTOGRAD
        rows.append(Row("B30", what, f"≤ 1/{TIMES_AUTOGRAD:g}", 1 / faster, limit, detail=f"{faster:.1f} times faster"))
    return rows


def _autograd_of(loss: Loss, arrays: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
    numbers = importlib.import_module("autograd.numpy")
    return importlib.import_module("autograd").value_and_grad(loss.written(numbers), loss.argnums), arrays


def _jax_of(loss: Loss, arrays: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    numbers = importlib.import_module("jax.numpy")
    made = jax.jit(jax.value_and_grad(loss.written(numbers), loss.argnums))
    return made, tuple(map(numbers.asarray, arrays))


def _waits(name: str) -> Function:
    """What a call of a peer ends with: JAX returns before it has computed."""
    return importlib.import_module("jax").block_until_ready if name == "JAX" else lambda found: found  # type: ignore[no-any-return]


def _rows(
    harness: Harness, size: int, budgets: dict[str, float], plan: pyop.Plan, peers: dict[str, Function | str]
) -> list[Row]:
    rng = np.random.default_rng(0)
    arrays = {name: rng.random(size) for name in "xyz"}
    candidates = {"plan": Statement("f(x, y, z)", {"f": plan, **arrays}, unroll=1)}
    value, gradients = plan(**arrays)
    for name in budgets:
        peer = peers[name]
        if callable(peer):
            found, *rest = peer(*arrays.values())
            theirs = rest[0] if name == "autograd" else rest
            np.testing.assert_allclose(value, found, rtol=1e-10)
            for ours, other in zip(gradients, theirs, strict=True):
                np.testing.assert_allclose(ours, other, rtol=1e-10, atol=1e-12)
            candidates[name] = Statement("f(x, y, z)", {"f": peer, **arrays}, unroll=1)
    times = harness.compare(candidates)
    rows = []
    for name, times_faster in budgets.items():
        what = f"compiled value_and_grad of 20 operations, {size:,} float64, over {name}"
        measured = name in candidates
        ratio = times.ratio("plan", name) if measured else None
        detail = str(peers[name])
        if ratio is not None:
            detail = f"{times.ns('plan'):,.0f} ns, {name} {times.ns(name):,.0f} ns: {1 / ratio:.1f} times faster"
        budget = f"≤ 1/{times_faster:g}" if times_faster != 1 else "≤ 1"
        rows.append(Row("B14", what, budget, ratio, 1 / times_faster, detail=detail))
    return rows
