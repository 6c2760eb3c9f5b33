"""pyop.vjp of an op at arrays keeps no record; what it gives is what a record of the same call gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyop
from pyop._core import is_recording
from pyop.autograd import detect_anomaly

KEPT = np.array([5.0, 6.0, 7.0])


@pyop.op("float64[n], float64[n] -> float64[n]")
def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x * y


@product.vjp
def _product(ct: Any, x: Any, y: Any) -> Any:
    return ct * y, ct * x


@pyop.op("float64[n], float64[n] -> float64[n]")
def total(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x + y


@total.vjp
def _total(ct: Any, x: Any, y: Any) -> Any:
    return ct, ct


@pyop.op("float64[n], float64[n] -> float64[n]")
def first(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x


@first.vjp
def _first(ct: Any, x: Any, y: Any) -> Any:
    return KEPT, None


@pyop.op("float64[n], float64[n] -> int64[n]")
def compared(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x > y) * 1


@compared.vjp
def _compared(ct: Any, x: Any, y: Any) -> Any:
    raise AssertionError("integers have no cotangents")


OPS = [product, total, first, compared]
CTS: dict[str, Any] = {
    "array": np.array([1.0, 10.0, 100.0]),
    "float32": np.array([1.0, 10.0, 100.0], np.float32),
    "integers": np.array([1, 10, 100]),
    "scattered": np.arange(6.0)[::2],
    "nothing": None,
}


def by_record(op: Any) -> Any:
    return lambda *xs: op(*xs)


@pytest.mark.parametrize("ct", CTS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_it_is_what_a_record_gives(op: Any, ct: str) -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0])
    (value, pullback), (wanted, by_tape) = pyop.vjp(op, x, y), pyop.vjp(by_record(op), x, y)
    np.testing.assert_array_equal(value, wanted)
    assert (value is x) == (wanted is x)
    for _ in range(2):
        found, right = pullback(CTS[ct]), by_tape(CTS[ct])
        assert [(g.dtype, g.tolist()) for g in found] == [(g.dtype, g.tolist()) for g in right]
        for g in found:  # the caller's own
            g += 1
            assert not any(np.shares_memory(g, other) for other in (x, y, value, KEPT, CTS["array"]))
        assert not np.shares_memory(*found)
    assert (x.tolist(), KEPT.tolist(), CTS["array"].tolist()) == ([1, 2, 3], [5, 6, 7], [1, 10, 100])


def test_derivatives_of_the_pullback() -> None:
    x, y, ct = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0]), np.array([1.0, 10.0, 100.0])
    pullback = pyop.vjp(product, x, y)[1]
    pull = lambda ct: np.sum(pullback(ct)[0]) + np.sum(pullback(ct)[1] ** 2)
    right = y + 2 * ct * x**2
    for _ in range(2):
        np.testing.assert_allclose(pyop.grad(pull)(ct), right)
        np.testing.assert_allclose(pyop.jvp(pull, (ct,), (np.ones(3),))[1], right.sum())
        np.testing.assert_allclose(pyop.vmap(lambda c: pullback(c)[0])(np.array([ct, 2 * ct])), [ct * y, 2 * ct * y])
        np.testing.assert_array_equal(pullback(ct)[0], ct * y)
    np.testing.assert_allclose(pyop.grad(lambda x: np.sum(pyop.vjp(product, x, y)[1](ct)[1]))(x), ct)


def test_a_pullback_that_is_compiled_follows_what_it_was_taken_at() -> None:
    x, y, ct = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0]), np.array([1.0, 10.0, 100.0])
    pullback = pyop.vjp(product, x, y)[1]
    compiled = pyop.compile(lambda c: pullback(c * 2)[0])
    for _ in range(2):
        np.testing.assert_array_equal(compiled(ct), 2 * ct * y)
    y[0] = 7.0
    with pytest.raises(RuntimeError, match="written into by another array"):
        compiled(ct)


@pytest.mark.parametrize("ct", ["array", "float32"])
def test_an_argument_that_is_written_into_before_the_pullback(ct: str) -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0])
    pullback = pyop.vjp(product, x, y)[1]
    y[0] = 7.0
    with pytest.raises(RuntimeError, match=r"array of shape \(3,\), has been written into by another array"):
        pullback(CTS[ct])
    y[0] = 3.0
    assert pullback(CTS[ct])[0].tolist() == [3, 40, 500]


def test_an_argument_that_the_op_writes_into_by_another_name() -> None:
    x = np.array([1.0, 2.0, 3.0])

    @pyop.op("float64[n] -> float64[n]")
    def writing(y: np.ndarray) -> np.ndarray:
        x[0] += 1
        return y * 1

    writing.vjp(lambda ct, y: ct)
    pullback = pyop.vjp(writing, x)[1]
    with pytest.raises(RuntimeError, match="written into by another array"):
        pullback(np.ones(3))


def test_what_a_rule_returns_is_held_against_the_arguments() -> None:
    returned: list[Any] = [None]
    op = pyop.op("float64[n], float64[n] -> float64[n]")(lambda x, y: x * y)
    op.vjp(lambda ct, x, y: returned[0])
    x = np.ones(3)
    for found in ((np.ones(2), np.ones(3)), (np.ones(3),), (object(), np.ones(3)), 1.0):
        returned[0] = found
        messages = []
        for f in (op, by_record(op)):
            with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
                pyop.vjp(f, x, x)[1](x)
            messages.append((caught.type, str(caught.value)))
        assert messages[0] == messages[1]
    returned[0] = (np.float32([1, 2, 3]), [1, 2, 3])
    assert [g.dtype for g in pyop.vjp(op, x, x)[1](x)] == [float, float]


def test_it_runs_as_a_transformation_does() -> None:
    seen: list[Any] = []

    @pyop.op("float64[n] -> float64[n]")
    def asking(x: np.ndarray) -> np.ndarray:
        seen.append((type(x), is_recording()))
        return x * 2

    asking.vjp(lambda ct, x: (seen.append((type(ct), is_recording())), ct * 2)[1])
    for f in (asking, by_record(asking)):
        pyop.vjp(f, np.ones(3))[1](np.ones(3))
    assert seen[:2] == seen[2:]
    with detect_anomaly():
        assert pyop.vjp(asking, np.ones(3))[1](np.ones(3))[0].tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="argument 0"):
        pyop.vjp(total, np.arange(3), np.arange(3))
