"""Signs beside cotangents (gradients/signed.py) change no bit of a gradient, and no warning but its name of a sum."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyop
from pyop.transforms import reverse

# Of one and of two operands; those whose rules take signs, and some whose rules do not.
UNARY = [
    np.negative,
    np.square,
    np.sqrt,
    np.exp,
    np.log,
    np.sin,
    np.cos,
    np.tanh,
    np.reciprocal,
    np.arctan,
    np.absolute,
]
BINARY = [np.add, np.subtract, np.subtract, np.multiply, np.divide, np.hypot, np.maximum, np.arctan2]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, 0.5]


def program(rng: np.random.Generator, n_inputs: int, steps: int) -> Callable[..., Any]:
    """A function of some arrays, by chance; shapes as they broadcast."""
    plan = []
    for k in range(steps):
        n = n_inputs + k
        which = rng.integers(10)
        if which < 6:
            plan.append((BINARY[rng.integers(len(BINARY))], rng.integers(n), rng.integers(n), None))
        elif which < 8:
            plan.append((UNARY[rng.integers(len(UNARY))], rng.integers(n), None, None))
        else:
            number = [-1.0, 0.0, 2.0, -0.5, 1.0][rng.integers(5)]
            plan.append((BINARY[rng.integers(len(BINARY))], rng.integers(n), None, number))
    with_mean = rng.integers(2)

    def f(*arrays: Any) -> Any:
        values = list(arrays)
        for ufunc, a, b, number in plan:
            if number is not None:
                values.append(ufunc(number, values[a]))
            else:
                values.append(ufunc(values[a]) if b is None else ufunc(values[a], values[b]))
        last = values[-1] - values[-2]
        return np.mean(last) - np.sum(values[-3]) if with_mean else np.sum(last * values[n_inputs])

    return f


def bits(x: Any) -> tuple[Any, ...]:
    """Dtype, shape and elements, all NaNs alike."""
    x = np.asarray(x)
    return x.dtype, x.shape, [repr(v) for v in np.where(np.isnan(x), np.nan, x).ravel()]


def results(plan: Any, arrays: list[Any]) -> tuple[list[Any], list[str]]:
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        value, gradients = plan(*arrays)
    names = [str(w.message).replace("subtract", "add") for w in caught]
    return [bits(x) for x in (value, *gradients)], sorted(names)


def check(seed: int, monkeypatch: pytest.MonkeyPatch, specs: bool = False) -> None:
    rng = np.random.default_rng(seed)
    n_inputs = int(rng.integers(1, 4))
    f = program(rng, n_inputs, int(rng.integers(3, 28)))
    dtype = [np.float64, np.float64, np.float32, np.float16, np.longdouble][rng.integers(5)]
    shapes = [(5,)] * n_inputs if specs else [[(5,), (3, 5), (3, 1), ()][rng.integers(4)] for _ in range(n_inputs)]
    with np.errstate(all="ignore"):
        arrays = [np.array(rng.choice(SPECIAL + list(rng.normal(size=8)), shape), dtype) for shape in shapes]
    declared = [f"{np.dtype(dtype)}[n]"] * n_inputs if specs else [f"{x.dtype}{list(x.shape)}" for x in arrays]
    transformed = pyop.value_and_grad(f, tuple(range(n_inputs)))
    graph = pyop.trace(transformed, *declared)
    with monkeypatch.context() as patched:
        patched.setattr(reverse, "_signed", lambda *args: None)
        before = pyop.trace(transformed, *declared)
    expected, warned = results(before.compile(), arrays)
    for plan in (graph.compile(), graph.compile(disable=["fuse"]), graph.compile(threads=2)):
        found, also = results(plan, arrays)
        assert found == expected, f"seed {seed}"
        # What differs by its sign alone is computed once, and warns once.
        assert set(also) == set(warned), f"seed {seed}"
        assert len(also) <= len(warned), f"seed {seed}"


@pytest.mark.parametrize("seed", range(120))
def test_bits_and_warnings_are_those_of_negations(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(seed, monkeypatch, specs=bool(seed % 2))


@pytest.mark.campaign
def test_bits_and_warnings_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1000, 5000):
        check(seed, monkeypatch, specs=bool(seed % 2))


def test_signs_cost_no_nodes() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum((x * y - x / y) * (x - np.cos(y)))

    text = str(pyop.trace(pyop.grad(f, (0, 1)), "float64[n]", "float64[n]").compile().explain())
    assert "subtract" in text
    assert "negative" not in text


def test_a_sum_of_negated_cotangents_that_is_zero() -> None:
    # d/dx of -(y x) - (z x): -(y) + -(z) is +0 where these cancel; -(y + z) would be -0.
    def f(x: Any, y: Any, z: Any) -> Any:
        return np.sum(y - y * x) - np.sum(z * x)

    x, y = np.ones(3), np.array([1.0, -2.0, 0.0])
    found = pyop.trace(pyop.grad(f), *["float64[n]"] * 3).compile()(x, y, -y)
    expected = pyop.grad(f)(x, y, -y)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", ["complex128", "int64", "object"])
def test_other_dtypes_keep_their_way(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(np.real(x * (y - x) / (y + 2)))

    x, y = np.linspace(1, 2, 4).astype("complex128" if dtype == "complex128" else "float64"), np.arange(4).astype(dtype)
    with monkeypatch.context() as patched:
        patched.setattr(reverse, "_signed", lambda *args: None)
        expected = pyop.compile(pyop.grad(f))(x, y)
    np.testing.assert_array_equal(pyop.compile(pyop.grad(f))(x, y), expected)


def test_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(-x) / (1.0 - x * x))

    x = np.linspace(0.1, 0.6, 5)
    graph = pyop.trace(pyop.grad(lambda x: np.sum(pyop.grad(f)(x) ** 2)), "float64[n]")
    np.testing.assert_allclose(graph.compile()(x), pyop.grad(lambda x: np.sum(pyop.grad(f)(x) ** 2))(x), rtol=1e-12)
