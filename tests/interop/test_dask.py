"""Ops over the chunks of dask arrays: values, laziness, keys, errors."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyop

da = pytest.importorskip("dask.array")
from dask.base import tokenize  # noqa: E402

from pyop.interop.dask import wrap  # noqa: E402


@pyop.op("(n),(n)->()", dtype="float64")
def dot(a: Any, b: Any) -> Any:
    return np.dot(a, b)


@pyop.op("(n),(m)->(n,m),()", dtype="T")
def outer_and_sum(a: Any, b: Any) -> Any:
    return np.outer(a, b), np.sum(a) + np.sum(b)


@pyop.op("(3),(3)->(3)", dtype="float64")
def cross(a: Any, b: Any) -> Any:
    return np.cross(a, b)


@pyop.op("()->()", dtype="float64")
def scaled(x: Any, *, by: float = 2.0) -> Any:
    return x * by


chunks_of = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)


@given(
    loops=st.lists(chunks_of, max_size=2), ones=st.sets(st.integers(0, 1)), n=st.integers(0, 4), seed=st.integers(0, 99)
)
@settings(max_examples=60, deadline=None)
def test_any_chunks_give_what_the_op_gives(loops: list[Any], ones: set[int], n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(map(sum, loops))
    a = rng.normal(size=(*shape, n))
    b = rng.normal(size=(*(1 if axis in ones else size for axis, size in enumerate(shape)), n + 1))
    x = da.from_array(a, chunks=(*loops, (n,)))
    y = da.from_array(b, chunks=tuple(1 if axis in ones else -1 for axis in range(len(shape))) + (-1,))
    for got, wanted in zip(wrap(outer_and_sum)(x, y), outer_and_sum(a, b), strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        np.testing.assert_array_equal(got.compute(scheduler="sync"), wanted)


def test_the_op_is_not_called_before_it_is_computed() -> None:
    calls = []

    @pyop.op("(n)->()", dtype="float64")
    def seen(a: Any) -> Any:
        calls.append(a.shape)
        return a.sum()

    y = wrap(seen)(da.ones((4, 3), chunks=(2, 3)))
    assert not calls
    assert (y.dtype, y.shape, y.chunks) == (np.float64, (4,), ((2, 2),))
    assert y.compute(scheduler="sync").tolist() == [3.0] * 4
    assert calls == [(3,)] * 4


def test_fixed_sizes_other_arrays_and_single_ones() -> None:
    a, b = np.arange(12.0).reshape(4, 3), np.array([1.0, 0.0, 2.0])
    np.testing.assert_array_equal(wrap(cross)(da.from_array(a, chunks=(1, 3)), b).compute(), cross(a, b))
    plain = wrap(cross)(a, b)
    assert type(plain) is np.ndarray
    assert wrap(scaled)(da.from_array(np.float64(3.0))).compute() == 6.0


def test_chunks_of_unknown_size() -> None:
    a = np.arange(12.0).reshape(4, 3)
    x = da.from_array(a, chunks=(2, 3))
    chosen = x[x[:, 0] > 2]
    np.testing.assert_array_equal(wrap(cross)(chosen, x[0]).compute(), cross(a[1:], a[0]))


def test_masked_chunks_are_refused() -> None:
    x = da.from_array(np.ma.masked_array(np.ones((2, 3)), mask=np.eye(2, 3, dtype=bool)), chunks=(1, 3))
    with pytest.raises(pyop.InputError, match="masked"):
        wrap(dot)(x, x).compute(scheduler="sync")


def ops_of_one_name() -> tuple[Callable[..., Any], Callable[..., Any]]:
    first = pyop.op(lambda x: x * 2, "()->()", dtype="float64", name="f")
    second = pyop.op(lambda x: x * 3, "()->()", dtype="float64", name="f")
    return first, second


def test_keys_say_what_is_computed() -> None:
    x = da.ones(4, chunks=2)
    assert wrap(scaled)(x).name == wrap(scaled)(x).name
    assert wrap(scaled)(x).name != wrap(scaled)(x, by=3.0).name
    first, second = ops_of_one_name()
    y, z = wrap(first)(x), wrap(second)(x)
    assert y.name != z.name
    assert (y + z).compute(scheduler="sync").tolist() == [5.0] * 4


def test_ops_themselves_have_tokens_of_their_own() -> None:
    first, second = ops_of_one_name()
    assert tokenize(first) != tokenize(second)
    assert tokenize(dot) == tokenize(dot)


def test_calls_of_a_stateful_op_are_never_one() -> None:
    rng = np.random.default_rng(0)
    noisy = pyop.op(lambda x: x + rng.normal(), "()->()", dtype="float64", stateful=True)
    x = da.ones(2, chunks=2)
    y, z = wrap(noisy)(x), wrap(noisy)(x)
    a, b = da.compute(y, z, scheduler="sync")
    assert not np.array_equal(a, b)


def test_static_arguments_and_pickles() -> None:
    from pyop.interop.core_dims import LoopCall

    assert wrap(scaled)(da.ones(3, chunks=1), by=5.0).compute().tolist() == [5.0] * 3
    again = pickle.loads(pickle.dumps(LoopCall(scaled, {"by": 4.0})))
    assert again(np.ones(1)).tolist() == [4.0]


def test_an_error_of_the_function_is_its_own() -> None:
    @pyop.op("()->()", dtype="float64")
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        wrap(broken)(da.ones(2, chunks=1)).compute(scheduler="sync")


def test_what_cannot_be_mapped_is_said_when_it_is_written() -> None:
    x = da.ones((4, 4), chunks=(4, 2))
    with pytest.raises(
        ValueError, match=r"core dimension 'n' of argument 0 of dot is in 2 chunks.*x\.rechunk\(\{-1: -1\}\)"
    ):
        wrap(dot)(x, x)
    with pytest.raises(pyop.InputError, match=r"dot cannot be mapped by dask: .* not float64"):
        wrap(dot)(x.astype("f4").rechunk(4), x.rechunk(4))
    with pytest.raises(pyop.InputError, match="n is 4 already, not 3"):
        wrap(dot)(x.rechunk(4), np.ones(3))
    with pytest.raises(ValueError, match="its core dimensions alone are 1"):
        wrap(dot)(da.from_array(np.float64(1.0)), x)
    with pytest.raises(TypeError, match="takes 2 arrays"):
        wrap(dot)(x)
    with pytest.raises(TypeError, match='give dtype=, "T"'):
        wrap(pyop.op(lambda x: x, "(n)->(n)"))(x.rechunk(4))
    with pytest.raises(TypeError, match="declare it as a gufunc"):
        wrap(pyop.op(lambda x: x, "float64[n] -> float64[n]"))
    with pytest.raises(TypeError, match="takes an op, got function"):
        wrap(lambda x: x)  # type: ignore[arg-type]
