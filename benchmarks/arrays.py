"""B17: what an array of another library costs as an argument, over an ndarray; what it costs to tell an ndarray."""

from __future__ import annotations

import ctypes
import statistics
from typing import Any

import numpy as np

import pyop

from .harness import Comparison, Harness, Row, Statement


class OfDlpack:
    """Has __dlpack__ and nothing else."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


class OfInterface:
    """Has __array_interface__ and nothing else."""

    def __init__(self, x: Any) -> None:
        self.kept, self.__array_interface__ = x, x.__array_interface__


def run(harness: Harness) -> list[Row]:
    """Eight float64 of each library, into an op; four ndarrays against three."""
    x = np.arange(8.0)
    other = np.ones(8)  # what it returns is not what is measured
    op = pyop.op(lambda x: other, "float64[n] -> float64[n]", name="takes")
    given = {"ndarray": x, **producers(x)}
    times = harness.compare({name: Statement("f(x)", {"f": op, "x": a}) for name, a in given.items()})
    rows = [over(times, name, "ndarray") for name in given if name != "ndarray"]
    if "torch" not in given:
        rows.insert(0, Row("B17", "torch into an op, over an ndarray", "≤ 120 ns", None, 120, detail="needs torch"))
    return [*rows, told(harness, x), one_more(harness, x)]


def over(times: Comparison, name: str, base: str) -> Row:
    """What an argument of this kind costs more."""
    limit = 120 if name == "torch" else 10**9
    budget = "≤ 120 ns" if name == "torch" else "recorded"
    detail = f"{times.ns(name):.0f} ns, {base} {times.ns(base):.0f} ns: {times.ratio(name, base):.1f}×"
    what = f"{name} into an op, over an ndarray"
    return Row("B17", what, budget, times.over(name, base), limit, unit="ns", detail=detail)


def told(harness: Harness, x: Any) -> Row:
    """Telling an ndarray from everything else, which is what ops pay for taking arrays of other libraries."""
    what = "an exact ndarray told, an argument"
    try:
        from pyop import _ctests
    except ImportError:
        why = "needs pyop._ctests: pip install -Ccmake.define.PYOP_TESTS=ON ."
        return Row("B17", what, "≤ 3 ns", None, 3, unit="ns", detail=why)
    times = [_ctests.bench_exact((x, x, x, x)) for _ in range(harness.rounds)]
    assert all(known for _, known in times)
    return Row("B17", what, "≤ 3 ns", statistics.median(ns for ns, _ in times), 3, unit="ns", detail="in C++")


def one_more(harness: Harness, x: Any) -> Row:
    """All that an ndarray costs as an argument: one more of a function, and of an op, that has one more."""
    names = ("a", "b", "c")
    ops = {
        n: pyop.op(eval(f"lambda {', '.join(names[:n])}: a"), ", ".join(["_"] * n) + " -> _", name=f"takes{n}")
        for n in (2, 3)
    }
    frozen = x.copy()
    frozen.flags.writeable = False  # lent as it is, so that no view is in the difference
    calls = {f"op {n}": Statement(f"f({', '.join('x' * n)})", {"f": ops[n], "x": frozen}) for n in (2, 3)}
    calls |= {
        f"bare {n}": Statement(f"f({', '.join('x' * n)})", {"f": ops[n].__wrapped__, "x": frozen}) for n in (2, 3)
    }
    times = harness.compare(calls)
    more = times.over("op 3", "op 2") - times.over("bare 3", "bare 2")
    detail = f"op of 3 {times.ns('op 3'):.0f} ns, of 2 {times.ns('op 2'):.0f} ns; without the function's own argument"
    return Row(
        "B17", "an ndarray told, matched and lent, an argument", "recorded", more, 10**9, unit="ns", detail=detail
    )


def producers(x: Any) -> dict[str, Any]:
    """The same numbers by every library that is here."""
    found: dict[str, Any] = {}
    try:
        import torch

        found["torch"] = torch.from_numpy(x.copy())
    except ImportError:
        pass
    found["__dlpack__ of a class"] = OfDlpack(x)
    found["__array_interface__ of a class"] = OfInterface(x)
    found["ctypes array"] = (ctypes.c_double * len(x))(*x)
    found["memoryview"] = memoryview(x.copy())
    try:
        import pyarrow

        found["pyarrow"] = pyarrow.array(x)
    except ImportError:
        pass
    try:
        import jax

        with jax.enable_x64(True):
            found["jax"] = jax.numpy.asarray(x)
    except (ImportError, AttributeError):
        pass
    try:
        import pandas

        found["pandas Series"] = pandas.Series(x)
    except ImportError:
        pass
    found["list"] = x.tolist()
    return found
