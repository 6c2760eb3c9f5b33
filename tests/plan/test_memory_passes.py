"""The passes that save memory: the order of the calls, conversions left out, results over dead inputs."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import pyop

SIZE = 1 << 15


def running(f: Any, *specs: str, **options: Any) -> pyop.Plan:
    return pyop.trace(f, *specs).compile(**options)


def peak(plan: pyop.Plan, *arrays: Any) -> int:
    """Bytes allocated at once by a call, at most."""
    pyop.debug.pool_trim()
    tracemalloc.start()
    try:
        plan(*arrays)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("spec", [f"float64[{SIZE}]", "float64[n]"])
def test_temporaries_are_made_shortly_before_they_are_read(spec: str, swapped: bool) -> None:
    rolled = pyop.op(lambda x, *, by: np.roll(x, by), "float64[n] -> float64[n]")
    add = pyop.op(lambda a, b: a + b, "float64[n], float64[n] -> float64[n]")

    def program(x: Any) -> Any:
        parts = [rolled(x, by=k) for k in range(20)]
        total = parts[0]
        for part in parts[1:]:
            total = add(part, total) if swapped else add(total, part)
        return total

    x = np.arange(float(SIZE))
    ordered, written = running(program, spec), running(program, spec, disable=["schedule"])
    assert ordered(x).tobytes() == written(x).tobytes() == program(x).tobytes()
    array = x.nbytes
    assert peak(ordered, x) < 5 * array
    assert peak(written, x) > 19 * array


def test_views_keep_what_they_are_of() -> None:
    calls: list[str] = []

    def noted(name: str, result: Any) -> Any:
        calls.append(name)
        return result

    large = pyop.op(lambda x, *, k: noted(f"large {k}", np.tile(x, 100)), "float64[n] -> float64[100*n]")
    total = pyop.op(lambda x, *, k: noted(f"total {k}", x.sum()), "float64[n] -> float64[]")

    def program(x: Any) -> Any:
        views = [large(x, k=k).reshape(100, -1)[0] for k in range(3)]
        return [total(view, k=k) for k, view in enumerate(views)]

    plan = running(program, "float64[n]")
    plan(np.ones(8))
    assert calls == [f"{name} {k}" for k in range(3) for name in ("large", "total")]
    calls.clear()
    running(program, "float64[n]", disable=["schedule"])(np.ones(8))
    assert calls == [f"{name} {k}" for name in ("large", "total") for k in range(3)]


def test_stateful_calls_keep_their_order() -> None:
    calls: list[int] = []
    large = pyop.op(lambda x: np.tile(x, 100), "float64[n] -> float64[100*n]")
    say = pyop.op(lambda x, *, k: (calls.append(k), x[:2])[1], "float64[n] -> float64[2]", stateful=True)

    def program(x: Any) -> Any:
        temporaries = [large(x + k) for k in range(6)]
        said = [say(temporaries[k], k=k) for k in (3, 1, 5, 0, 2, 4)]
        return sum(said[::-1][1:], said[-1])

    running(program, "float64[n]")(np.ones(8))
    assert calls == [3, 1, 5, 0, 2, 4]


def test_what_is_written_in_a_good_order_stays_as_it_is() -> None:
    calls: list[int] = []
    say = pyop.op(lambda x, *, k: (calls.append(k), x + 1)[1], "float64[n] -> float64[n]")

    def program(x: Any) -> Any:
        parts = [say(x, k=k) for k in range(4)]
        return parts[::-1]

    running(program, "float64[n]")(np.ones(3))
    assert calls == [0, 1, 2, 3]


def fates(f: Any, spec: str, **options: Any) -> list[str]:
    return [node.fate for node in running(f, spec, **options).explain().nodes]


CASTS = {
    "the same dtype": (lambda x: np.exp(x).astype("f8") * 2, "float64[n, m]", 1),
    "there and back": (lambda x: (x + 1).astype("f8").astype("f4") * 2, "float32[n, m]", 2),
    "integers there and back": (lambda x: (x + 1).astype("f8").astype("i4") * 2, "int32[n, m]", 2),
    "through a view": (lambda x: (x + 1).astype("f8").T[1:] * 2, "float64[n, m]", 1),
    "one after the other": (lambda x: (x + 1).astype("f8").astype("f8") * 2, "float64[n, m]", 2),
}


@pytest.mark.parametrize("name", CASTS)
def test_conversions_that_change_nothing_are_left_out(name: str) -> None:
    f, spec, n = CASTS[name]
    assert fates(f, spec).count("gone") == n
    assert fates(f, spec, disable=["casts"]).count("gone") == 0
    x = np.arange(12, dtype=spec.partition("[")[0]).reshape(3, 4)
    for each in (x, x.T, x[::-1, ::2], np.broadcast_to(x[0], (3, 4))):
        for options in ({}, {"disable": ["casts"]}):
            got, want = running(f, spec, **options)(each), f(each)
            assert (got.tobytes(), got.dtype, got.strides) == (want.tobytes(), want.dtype, want.strides)


KEPT = {
    "a result": (lambda x: (x + 1).astype("f8"), "float64[n]"),
    "a view that is a result": (lambda x: (x + 1).astype("f8")[1:], "float64[n]"),
    "that rounds": (lambda x: (x + 1).astype("f4").astype("f8") * 2, "float64[n]"),
    "long integers": (lambda x: (x + 1).astype("f8").astype("i8") * 2, "int64[n]"),
    "that warns": (lambda x: (x + 1).astype("c16").astype("f8") * 2, "float64[n]"),
    "to another order": (lambda x: (x + 1).astype("f8", order="F") * 2, "float64[n, m]"),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_conversions_that_somebody_can_tell_are_kept(name: str) -> None:
    f, spec = KEPT[name]
    assert "gone" not in fates(f, spec)
    x = np.arange(2**60, 2**60 + 6).astype(spec.partition("[")[0])
    x = x.reshape(2, 3) if "m" in spec else x
    got, want = running(f, spec)(x), f(x)
    assert (got.tobytes(), got.dtype, got.strides) == (want.tobytes(), want.dtype, want.strides)


def test_a_copy_that_nobody_sees_is_the_array() -> None:
    # A sum that depends on how the array lies in memory.
    f = lambda x: (np.sum(x.copy()), np.sum(np.copy(x)), np.sum(x.astype("f8")), x.astype("f8", copy=False).sum())
    plan = running(f, "float64[n, m]")
    x = np.random.default_rng(0).normal(size=(400, 301))
    for each in (x, x.T, x[:, ::2], x[::-1], np.broadcast_to(x[0], x.shape), np.broadcast_to(x[:, :1], x.shape)):
        assert plan(each) == f(each)
    assert peak(plan, x) < x.nbytes / 8 < x.nbytes < peak(running(f, "float64[n, m]", disable=["casts"]), x)

    kept = running(lambda x: x.copy(), "float64[n, m]")
    result = kept(x)
    assert not np.shares_memory(result, x)
    result[:] = 0
    assert x.any()


@pytest.mark.parametrize("threads", [1, 2])
def test_results_over_dead_inputs(threads: int) -> None:
    places: list[int] = []

    def made(x: Any) -> Any:
        result = np.concatenate([x, x])
        places.append(result.ctypes.data)
        return result

    make = pyop.op(made, "float64[n] -> float64[2*n]")
    look = pyop.op(lambda x: (places.append(x.ctypes.data), x.sum())[1], "float64[n] -> float64[]")
    write = pyop.op(lambda x: (places.append(x.ctypes.data), x.__iadd__(1))[1], "float64[n] -> float64[n]", mutates="x")
    x = np.arange(float(SIZE))
    for f in (lambda x: look(np.exp(make(x) * -1)), lambda x: look(write(make(x)))):
        for disable in [], ["in-place"]:
            places.clear()
            assert running(f, "float64[n]", threads=threads, disable=disable)(x) == f(x)
            del places[len(places) // 2 :]  # of the plain call
            assert len(set(places)) == (1 if not disable else 2)


def test_a_function_that_writes_does_not_see_its_other_argument_change() -> None:
    def into(x: Any, y: Any) -> Any:
        y += 1
        return x * y

    op = pyop.op(into, "float64[n], float64[n] -> float64[n]", mutates="y")
    x = np.ones(SIZE)
    for threads in (1, 2):
        plan = running(lambda x: (lambda t: op(t, t))(np.exp(x)), "float64[n]", threads=threads)
        np.testing.assert_array_equal(plan(x), np.exp(x) * (np.exp(x) + 1))


def test_each_pass_has_a_switch() -> None:
    f = lambda x: np.sum((x.copy().T[1:] + 1.0).astype("f8") * 2.0 + np.zeros(2), axis=0)
    x = np.arange(6.0).reshape(2, 3)
    for name in pyop.Graph.passes():
        assert running(f, "float64[2, 3]", disable=[name])(x).tolist() == f(x).tolist()
        assert name in str(running(f, "float64[2, 3]", disable=[name]).explain())
    assert running(f, "float64[2, 3]", optimize=False)(x).tolist() == f(x).tolist()
