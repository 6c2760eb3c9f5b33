"""B14: value and gradient of an expression of 20 operations, compiled, against the autograd package and PyTensor.

Peers that are not installed are named in rows that say "not measured".
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

# How many times faster than each peer the budget asks for.
BUDGETS = {10: {"autograd": 50.0, "PyTensor": 1.0}, 1_000: {"autograd": 5.0}, 1_000_000: {"autograd": 1.5}}
Function = Callable[..., Any]


def expression(xp: Any) -> Function:
    """20 operations and a sum, in the functions of a module."""

    def f(x: Any, y: Any, z: Any) -> Any:
        waves = xp.tanh(x * y + z) * xp.exp(-x) + xp.sin(y) * xp.cos(z)
        return xp.sum(waves - x / (1.0 + y * y) + xp.sqrt(z * z + 1.0) * x - y * 0.5)

    return f


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
    return rows


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
