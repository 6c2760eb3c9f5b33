"""Check plain functions for `pyop.check`: whether they may be compiled and differentiated as they are."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tree import flatten, map_leaves

__all__ = ["PlainChecks"]


class PlainChecks:
    """Run the checks of one function on one example; each method returns a remark, or raises what `fail` makes."""

    WHAT = ("purity", "writes", "numbers", "compiled", "globals", "gradient")

    def __init__(self, fn: Callable[..., Any], arguments: tuple[Any, ...], fail: Callable[[str], Exception]) -> None:
        self.fn = fn
        self.arguments = arguments
        self.fail = fail
        self.first: list[Any] = []

    def fresh(self) -> tuple[Any, ...]:
        """Return copies of the arguments, in memory of their own."""
        return tuple([map_leaves(np.copy, x) for x in self.arguments])

    def purity(self) -> str | None:
        self.first = bits(self.fn(*self.fresh()))
        if bits(self.fn(*self.fresh())) != self.first:
            raise self.fail(
                "two calls on the same arguments differ: a plan runs the recorded calls again, see stateful="
            )
        return None

    def writes(self) -> str | None:
        given = self.fresh()
        self.fn(*given)
        changed = [k for k, (a, b) in enumerate(zip(given, self.arguments, strict=True)) if bits(a) != bits(b)]
        return f"writes into argument {', '.join(map(str, changed))}, and so will its plan" if changed else None

    def numbers(self) -> str | None:
        """Raise if a number leaves the record: then it decides for one call, and not for the plan."""
        from .. import trace
        from ..declare.spec import Spec

        try:
            trace(self.fn, *[map_leaves(Spec.of, x) for x in self.arguments])
        except Exception as error:
            raise self.fail(f"pyop.trace refuses it: {error}") from error
        return None

    def compiled(self) -> str | None:
        from .. import CompiledFunction, RetraceWarning, compile  # noqa: A004

        with warnings.catch_warnings():
            warnings.simplefilter("error", RetraceWarning)
            compiled = self.fn if isinstance(self.fn, CompiledFunction) else compile(self.fn)
            for _ in range(2):  # traced, and by its guard
                if bits(compiled(*self.fresh())) != self.first:
                    raise self.fail("compiled it returns something else")
        return None

    def globals(self) -> str | None:
        """Return a remark on globals that trace freezes, and compile reads in every call; None if there are none."""
        try:
            read = inspect.getclosurevars(inspect.unwrap(self.fn))
        except TypeError:
            return "its code cannot be read"
        state = {**read.globals, **read.nonlocals}
        names = [name for name, x in state.items() if isinstance(x, (np.ndarray, np.generic, int, float, list, dict))]
        if not names:
            return None
        return f"reads {', '.join(sorted(names))}: pyop.trace freezes what is there, pyop.compile notices a change"

    def gradient(self) -> str | None:
        from ..gradients.table import NoRule
        from ..transforms.transforms import vjp

        which = [k for k, x in enumerate(self.arguments) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        if not which:
            return "no argument is an array of real numbers"

        def f(*xs: Any) -> list[Any]:
            full = list(self.fresh())
            for k, x in zip(which, xs, strict=True):
                full[k] = x
            return [y for y in flatten(self.fn(*full))[0] if np.result_type(y).kind == "f"]

        rng = np.random.default_rng(0)
        points = [self.arguments[k] for k in which]
        try:
            values, pull = vjp(f, *points)
        except NoRule as error:
            return str(error)
        if not values:
            return "no result has real numbers"
        cts = [np.asarray(rng.standard_normal(np.shape(y)), np.result_type(y)) for y in values]
        pulled = pull(cts)
        step = 1e-6 if all(x.dtype.itemsize >= 8 for x in points) else 1e-3
        for _ in range(3):
            ts = [np.asarray(rng.standard_normal(x.shape), x.dtype) for x in points]
            up, down = (f(*[np.copy(x + s * step * t) for x, t in zip(points, ts, strict=True)]) for s in (1, -1))
            slopes = [(np.asarray(a) - b) / (2 * step) for a, b in zip(up, down, strict=True)]
            wanted, measured = inner(cts, slopes), inner(pulled, ts)
            size = sum(float(np.sum(np.abs(c * s))) for c, s in zip(cts, slopes, strict=True))
            if not abs(measured - wanted) <= (1e-4 if step == 1e-6 else 1e-2) * max(size, 1.0):
                raise self.fail(
                    f"the gradient does not agree with central differences: along one direction {measured:.8g}, and by "
                    f"differences {wanted:.8g}"
                )
        return None


def bits(x: Any) -> list[Any]:
    """Return the dtypes, shapes and bytes of all leaves, to compare."""
    leaves = [np.asarray(leaf) for leaf in flatten(x)[0]]
    return [(a.dtype.str, a.shape, a.tolist() if a.dtype.hasobject else a.tobytes()) for a in leaves]


def inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Return the sum of the products of all elements."""
    return sum(float(np.vdot(x, y)) for x, y in zip(xs, ys, strict=True))
