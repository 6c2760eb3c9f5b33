"""Functions that do more than return results, in graphs: they write, draw, count, as often as at arrays.

Programs made by chance are in test_functions_made.py.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import pyop

X = np.array([0.5, 1.25, 2.0, -1.0])
DRAWS = np.random.default_rng(0)


class Raise(pyop.Function):
    """Adds one in place."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x += 1
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Scale(pyop.Function):
    """In two parts, in place, with a result beside."""

    @staticmethod
    def forward(x: Any, k: float = 3.0) -> Any:
        x *= k
        return x, x.sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return (g + h) * ctx.k, None


class Exchange(pyop.Function):
    """Writes into both of its arguments."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        kept = a.copy()
        a[...] = b * 2
        b[...] = kept
        ctx.mark_dirty(a, b)
        return b, a

    @staticmethod
    def backward(ctx: Any, gb: Any, ga: Any) -> Any:
        return gb, ga * 2


class Noise(pyop.Function):
    """Draws from a generator that others draw from."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mask = DRAWS.normal(size=x.shape)
        return x * ctx.mask

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.mask


class Counted(pyop.Function):
    calls = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Counted.calls += 1
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2.0


class Unknown(pyop.Function):
    """Of which nobody can see what it does, as it asks for numbers."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Counted.calls += 1
        return np.array([float(v) * 3.0 for v in x])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3.0


WAYS = {
    "compile": pyop.compile,
    "trace": lambda f: pyop.trace(f, "float64[4]").compile(),
    "run": lambda f: lambda x: pyop.trace(f, "float64[4]").run(feeds={"x": x}),
}


def observed(f: Any, calls: int = 3) -> list[Any]:
    """Results, arguments and effects of several calls."""
    global DRAWS
    DRAWS = np.random.default_rng(7)
    Counted.calls = 0
    found = []
    for k in range(calls):
        x = X + k
        result = f(x)
        leaves = result if isinstance(result, tuple) else (result,)
        found.append([*[np.asarray(y).tolist() for y in leaves], x.tolist(), Counted.calls])
    return [*found, DRAWS.bit_generator.state["state"]]


def test_the_first_example() -> None:
    def f(v: Any) -> Any:
        u = v * 2
        Raise.apply(u)
        return u * 10

    assert pyop.compile(f)(np.array([0.0, 1.0, 2.0])).tolist() == [10.0, 30.0, 50.0]
    g = pyop.grad(lambda v: np.sum(f(v) ** 2))
    for way in (g, pyop.compile(g)):
        assert way(np.array([0.0, 1.0, 2.0])).tolist() == [400.0, 1200.0, 2000.0]


def test_what_is_drawn_is_drawn_by_each_call() -> None:
    for way in WAYS.values():
        f = way(lambda x: (Noise.apply(x) - Noise.apply(x), Noise.apply(x)))
        assert observed(f) == observed(lambda x: (Noise.apply(x) - Noise.apply(x), Noise.apply(x)))


@pytest.mark.parametrize("kind", [Noise, Counted, Unknown])
def test_forward_runs_once_where_its_gradient_is_taken(kind: Any) -> None:
    def f(x: Any) -> Any:
        return np.sum(kind.apply(x * 2) ** 2)

    assert observed(pyop.compile(pyop.value_and_grad(f))) == observed(pyop.value_and_grad(f))
    traced = pyop.trace(lambda x: pyop.value_and_grad(f)(x), "float64[4]").compile()
    assert observed(traced) == observed(pyop.value_and_grad(f))
    with pytest.raises(NotImplementedError, match="has no jvp"):  # it runs itself, and says so as at arrays
        pyop.compile(lambda x: pyop.jvp(f, (x,), (x,)))(X)
    with pytest.raises(pyop.NoRule, match="stateful = False"):
        pyop.trace(lambda x: pyop.jvp(f, (x,), (x,)), "float64[4]")


def test_nobody_reads_it_and_it_runs() -> None:
    def f(x: Any) -> Any:
        Counted.apply(x)
        Unknown.apply(x)
        return x + 1

    for way in (pyop.compile, WAYS["trace"]):  # Graph.run runs what is fetched, and no more
        assert observed(way(f)) == observed(f)


def test_purity_may_be_declared() -> None:
    class Pure(Unknown):
        stateful = False

    class Stateful(pyop.Function):
        stateful = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    graph = pyop.trace(lambda x: Pure.apply(x) + Pure.apply(x), "float64[4]")
    assert graph.compile().report()["merged"] == 1
    assert not any(node.stateful for node in graph.nodes)
    assert any(node.stateful for node in pyop.trace(lambda x: Stateful.apply(x), "float64[4]").nodes)


def test_what_a_graph_cannot_follow_is_run_or_refused() -> None:
    class OfNumbers(pyop.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x[0] = float(x[1])
            ctx.mark_dirty(x)
            return x

    class Lost(pyop.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x += 1  # without a word
            return x * 2

    def f(kind: Any) -> Any:
        def g(x: Any) -> Any:
            u = x * 2
            y = kind.apply(u)
            return u + y

        return g

    for kind, match in ((OfNumbers, "mark_dirty"), (Lost, "writes into an argument")):
        compiled = pyop.compile(f(kind))
        with pytest.warns(pyop.RetraceWarning, match=match):
            assert compiled(X).tolist() == f(kind)(X).tolist()
        with pytest.raises(TypeError, match=match):
            pyop.trace(f(kind), "float64[4]")

    class Quiet(pyop.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x[0] = 7.0
            return np.array([float(v) for v in x])

    with pytest.raises(ValueError, match="read-only"):
        pyop.trace(lambda x: Quiet.apply(x * 2), "float64[4]").run(feeds={"x": X})
    two = pyop.compile(lambda x: Exchange.apply(x, x[:])[0])
    with pytest.warns(pyop.RetraceWarning, match="shares memory"):
        with contextlib.suppress(ValueError, RuntimeError):
            two(X.copy())


SIZE = 2
SCALE: Any = 2


def test_forward_that_returns_other_arrays_than_when_it_was_traced(monkeypatch):
    """It reads names that are bound anew: what the function around it has asked of the result holds no more."""

    class Cut(pyop.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:SIZE] * SCALE

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return np.concatenate([g * SCALE, np.zeros(4 - len(g))])

    def f(x: Any) -> Any:
        y = Cut.apply(x)
        return y.sum() / y.shape[0], str(y.dtype)

    def mean(x: Any) -> Any:
        return f(x)[0]

    compiled, gradient = pyop.compile(f), pyop.compile(pyop.grad(mean))
    graph = pyop.trace(mean, "float64[4]").compile()
    counts = np.arange(4)
    for size, scale in ((2, 2), (3, 2), (3, 1.5), (2, 2), (4, 0.5)):
        monkeypatch.setitem(globals(), "SIZE", size)
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert compiled(counts) == f(counts)
        assert gradient(X).tolist() == pyop.grad(mean)(X).tolist()
        if size == 2:
            assert graph(X) == mean(X)
        else:
            with pytest.raises(TypeError, match=r"forward of Cut returned float64\[\d\], and float64\[2\] for such"):
                graph(X)


def test_forward_that_has_effects_and_returns_other_arrays_is_an_error(monkeypatch):
    class Counted(pyop.Function):
        calls = 0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            Counted.calls += 1
            return x * SCALE

    compiled = pyop.compile(lambda x: Counted.apply(x).dtype)
    assert compiled(np.arange(4)) == np.dtype(int)
    monkeypatch.setitem(globals(), "SCALE", 1.5)
    with pytest.raises(TypeError, match="reads something that has changed since"):
        compiled(np.arange(4))


RESULTS = {
    "a scalar": lambda x: x.sum(),
    "an array": lambda x: x[:1].reshape(()),
    "a scalar and an array": lambda x: (x.sum(), x),
    "a constant": lambda x: np.float64(2),
    "an element": lambda x: x[0],
    "a number of Python": lambda x: 3.0,
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_without_a_dimension_are_what_forward_returns(name):
    class F(pyop.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return RESULTS[name](x)

    def returned(x: Any) -> Any:
        return F.apply(x * 2)

    def asked(x: Any) -> Any:
        y = F.apply(x * 2)
        y = y[0] if isinstance(y, tuple) else y
        return type(y).__name__, y * np.float32(2)

    for f in (returned, asked):
        compiled = pyop.compile(f)
        with contextlib.nullcontext() if "Python" not in name else pytest.warns(pyop.RetraceWarning, match="of Python"):
            assert repr(compiled(X)) == repr(f(X))
        assert repr(compiled(X)) == repr(f(X))


def test_a_number_of_python_that_nobody_knew_of_is_an_error():
    class Opaque(pyop.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return float(x.sum())

    assert Opaque.apply(X) == X.sum()
    with pytest.raises(TypeError, match=r"forward of Opaque returned 2\.75, a float of Python.*np\.float64"):
        pyop.compile(lambda x: Opaque.apply(x))(X)
