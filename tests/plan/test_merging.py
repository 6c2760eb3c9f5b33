"""Which calls become one: held against the meaning written down in Python, and the time it takes to find out."""

from __future__ import annotations

import random
import struct
import time
from typing import Any

import numpy as np
import pytest

import pyop


def bits(x: Any) -> Any:
    """Equal for static arguments that no function could tell apart, and for no others."""
    if type(x) is float:
        return (float, struct.pack("d", x))
    if x is not LOOP and type(x) in (tuple, list):
        return (type(x), *map(bits, x))
    if type(x) is slice:
        return (slice, bits(x.start), bits(x.stop), bits(x.step))
    if type(x) in (int, str, bytes) or isinstance(x, np.dtype):
        return (type(x), x)
    return (type(x), id(x))


ARRAY, OBJECT, LOOP = np.ones(2), object(), [1.0]
LOOP.append(LOOP)  # type: ignore[arg-type]
STATICS: list[Any] = [
    *(0, 0.0, -0.0, False, 1, True, 1.0, "1", b"1", None, 2**80, 2.0**80, -1, -2, float("nan"), -float("nan"), 1j),
    *((1,), [1], (1.0,), (1, (2, [3.0])), (1, (2, [3])), (0.0,), (-0.0,), (), [], slice(1), slice(1.0), slice(0, 1)),
    *(np.dtype("l"), np.dtype("q"), np.dtype(">i8"), np.dtype("f8"), np.dtype([("a", "i4")]), np.dtype("M8[s]")),
    *(ARRAY, ARRAY.copy(), OBJECT, object(), np.float64(1), np.dtype("M8[ms]"), np.dtype([("b", "i4")]), LOOP),
]


def again(x: Any) -> Any:
    """The same once more, as another object where there is one."""
    if type(x) is float:
        return struct.unpack("d", struct.pack("d", x))[0]
    if x is not LOOP and type(x) in (tuple, list):
        return type(x)(map(again, x))
    if type(x) is slice:
        return slice(again(x.start), again(x.stop), again(x.step))
    return int(str(x)) if type(x) is int else x


@pytest.mark.parametrize("seed", range(12))
def test_calls_merge_that_no_function_could_tell_apart(seed: int) -> None:
    rng = random.Random(seed)
    functions = [pyop.op("float64[2] -> float64[2]", name=f"f{i}")(lambda x, *, k, j=0: x + 1) for i in range(3)]
    functions.append(pyop.op("float64[2] -> float64[_]")(lambda x, *, k, j=0: x + 1))
    statics = rng.sample(STATICS, rng.randint(2, 12))
    seen: dict[Any, Any] = {}  # what a call is → the key of its result
    with pyop.Graph() as graph:
        x = graph.input("float64[2]")
        values: list[tuple[Any, Any]] = [(x, "x")]
        merged = 0
        for _ in range(400):
            which = rng.randrange(len(functions))
            value, key = rng.choice(values[:5]) if rng.random() < 0.8 else rng.choice(values)
            given = {name: again(rng.choice(statics)) for name in rng.choice([("k",), ("k", "j"), ("j", "k")])}
            call = (which, key, *((name, bits(v)) for name, v in given.items()))
            merged += call in seen
            seen.setdefault(call, len(seen))
            values.append((functions[which](value, **given), seen[call]))
        graph.output([value for value, _ in values])
    assert merged > 20
    assert graph.compile().report()["merged"] == merged


def fan(n: int) -> pyop.Graph:
    def total(v: Any) -> Any:
        found = v[0]
        for i in range(1, n):
            found = found + v[i]
        return found

    return pyop.trace(total, f"float64[{n}]")


def seconds(graph: pyop.Graph, **options: Any) -> float:
    begun = time.perf_counter()
    graph.compile(**options)
    return time.perf_counter() - begun


def test_many_readers_of_one_value_are_not_compared_with_each_other() -> None:
    graph = fan(16000)
    best = min(seconds(graph) / seconds(graph, disable=["merge"]) for _ in range(3))
    assert best < 4, best  # one by one it was 25


@pytest.mark.parametrize("threads", [1, 2])
def test_results_that_are_two_arrays_as_written_are_two(threads: int) -> None:
    op = pyop.op("float64[n] -> float64[n]")(lambda x: x + 1)
    made = pyop.trace(
        lambda x: (x * 2, x * 2, (x * 2)[1:], op(x), op(x), (y := np.sin(x)), y, y[1:], np.sin(x)[::-1]), "float64[n]"
    ).compile(threads=threads)
    x = np.arange(4.0)
    found = made(x)
    for a in found[:5]:
        a += 100
    assert [a.tolist() for a in found[:5]] == [
        *[[100.0, 102.0, 104.0, 106.0]] * 2,
        [102.0, 104.0, 106.0],
        *[[101.0, 102.0, 103.0, 104.0]] * 2,
    ]
    assert found[5] is found[6]  # one array as written, and a view of it
    assert np.shares_memory(found[5], found[7])
    assert not np.shares_memory(found[5], found[8])
    out = tuple(np.empty_like(a) for a in found)
    made(x, out=out)
    assert out[0].tolist() == out[1].tolist() == [0.0, 2.0, 4.0, 6.0]


def test_the_marks_of_a_differentiation_leave_no_call() -> None:
    @pyop.op("float64[] -> float64[]")
    def opaque(x: Any) -> Any:
        return x * 2.0

    graph = pyop.trace(lambda x: pyop.grad(lambda y: pyop.stop_gradient(opaque(x)) * y)(x), "float64[]")
    names = [node.name for node in graph.nodes]
    assert any("stopped" in name for name in names)
    assert any("argument" in name for name in names)
    plan = graph.compile()
    assert plan.report()["instructions"] == 1
    assert plan(np.array(3.0)) == 6.0


@pytest.mark.parametrize("key", [[0, -1], np.array([0, -1]), "mask", slice(0, 2)], ids=str)
def test_results_that_are_written_twice_are_two_arrays(key: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        places = y > 1 if isinstance(key, str) else key
        return y, y[places], y[places]

    x = np.arange(4.0)
    _, a, b = f(x)
    for plan in (pyop.trace(f, pyop.Spec.of(x)).compile(), pyop.compile(f)):
        _, c, d = plan(x)
        assert np.array_equal(c, a)
        assert np.array_equal(d, b)
        assert c is not d
        assert np.shares_memory(c, d) == np.shares_memory(a, b)
