"""T1: a NumPy expression of 20 operations on Tensors, forward and backward; the autograd package and torch beside, and
the same operations recorded by the table of rules instead of those that are built in."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import pyop
from pyop.autograd.recording import array_ufunc

from .harness import Harness, Row, Statement


def expression(xp: Any, x: Any, y: Any) -> Any:
    """20 operations."""
    a = x * y
    b = xp.exp(-a * 0.1) - y / (1.0 + x * x)
    c = xp.sqrt(b * b + 1.0) * xp.tanh(a)
    d = xp.log(c * c + 2.0) + xp.cos(b) * x
    return d.sum()


def imported(name: str) -> ModuleType | None:
    """A peer, if it is installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def recording(xp: Any, x: Any, y: Any) -> Callable[[], None]:
    """Forward and backward, for what records as it goes."""

    def run() -> None:
        expression(xp, x, y).backward()
        x.grad = y.grad = None

    return run


def by_table(ufunc: np.ufunc, *inputs: Any) -> Any:
    """A ufunc on Tensors as what is not built in is recorded: without NumPy's protocol, which that goes through too."""
    return array_ufunc(ufunc, "__call__", *inputs)


def built_in(harness: Harness, n: int) -> Row:
    """A chain of ufuncs as they are built in, and by the table of rules; derivatives too."""
    ufuncs = [np.multiply, np.exp, np.negative, np.divide, np.square, np.add, np.sqrt, np.tanh, np.log, np.cos]
    x = pyop.Tensor(np.linspace(0.1, 1, n), requires_grad=True)
    y = pyop.Tensor(np.linspace(1, 2, n), requires_grad=True)

    def chain(call: Callable[..., Any]) -> Callable[[], None]:
        def run() -> None:
            z = x
            for ufunc in ufuncs:
                z = call(ufunc, z, y) if ufunc.nin == 2 else call(ufunc, z)
            z.backward(seed)
            x.grad = y.grad = None

        return run

    seed = np.ones(n)
    ways = {"built in": chain(lambda ufunc, *inputs: ufunc(*inputs)), "table": chain(by_table)}
    times = harness.compare({name: Statement("f()", {"f": f}, unroll=1) for name, f in ways.items()})
    what = f"10 built-in operations on Tensors of {n:,}, forward and backward, over the table of rules"
    detail = f"{times.ns('built in') / 1000:.1f} µs, by the table {times.ns('table') / 1000:.1f} µs"
    return Row(
        "T2",
        what,
        "≤ 1/2" if n <= 10 else "≤ 1×",
        times.ratio("built in", "table"),
        0.5 if n <= 10 else 1,
        detail=detail,
    )


def rows(harness: Harness, n: int) -> list[Row]:
    """One size."""
    x, y = np.linspace(0.1, 1, n), np.linspace(1, 2, n)
    ways: dict[str, Callable[[], Any]] = {
        "numpy": lambda: expression(np, x, y),
        "pyop": recording(np, pyop.Tensor(x, requires_grad=True), pyop.Tensor(y, requires_grad=True)),
    }
    if (package := imported("autograd")) is not None:
        xp: Any = importlib.import_module("autograd.numpy")
        gradient = package.grad(lambda x, y: expression(xp, x, y), (0, 1))
        ways["autograd"] = lambda: gradient(x, y)
    if (torch := imported("torch")) is not None:
        torch.set_num_threads(1)
        ways["torch"] = recording(torch, *(torch.tensor(a, requires_grad=True) for a in (x, y)))
    times = harness.compare({name: Statement("f()", {"f": f}, unroll=1) for name, f in ways.items()})
    what = f"20 operations on Tensors of {n:,}, forward and backward"
    detail = f"{times.ns('pyop') / 1000:.1f} µs, NumPy forward {times.ns('numpy') / 1000:.1f} µs"
    found = [Row("T1", f"{what}, over NumPy forward", "≤ 4×", times.ratio("pyop", "numpy"), 4, detail=detail)]
    for name, limit, budget in (("autograd", 1 / 5, "≤ 1/5"), ("torch", 1 / 5, "≤ 1/5")):
        if n > 1000:
            limit, budget = 1.0, "≤ 1×"
        if name in times.samples:
            ratio, detail = times.ratio("pyop", name), f"{name} {times.ns(name) / 1000:.1f} µs"
        else:
            ratio, detail = None, f"{name} is not installed"
        found.append(Row("T1", f"{what}, over {name}", budget, ratio, limit, detail=detail))
    return found


def run(harness: Harness) -> list[Row]:
    """Small, where the overhead shows, and large, where it must not."""
    sizes = (10,) if harness.quick else (10, 1000, 100_000)
    return [row for n in sizes for row in (*rows(harness, n), built_in(harness, n))]
