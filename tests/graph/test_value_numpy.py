"""Values under NumPy's functions, methods, operators and indices: a graph computes what NumPy computes, bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy_cases import A, B, Case, V, cases, i

import pyop
from pyop import Spec
from pyop.declare.dims import Dim

NAMES = {5: Dim("n"), 7: Dim("m")}


def named(x: np.ndarray) -> Spec:
    return Spec(x.dtype, tuple(NAMES.get(size, size) for size in x.shape))


def unknown(x: np.ndarray) -> Spec:
    return Spec()


class Feed:
    """A graph whose inputs are the arrays it was asked to replace."""

    def __init__(self, to_spec: Callable[[np.ndarray], Spec]) -> None:
        self.graph = pyop.Graph()
        self.to_spec = to_spec
        self.feeds: dict[Any, np.ndarray] = {}

    def values(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            value = self.graph.input(self.to_spec(x), name=f"x{len(self.feeds)}")
            self.feeds[value] = x
            return value
        if type(x) in (tuple, list):
            return type(x)(map(self.values, x))
        return x

    def run(self, fetches: Any) -> Any:
        return self.graph.run(fetches, self.feeds)


def quietly(function: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function()


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
        return
    a, b = np.asarray(got), np.asarray(expected)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    if b.dtype == object:
        assert a.tolist() == b.tolist()
    else:
        assert a.tobytes() == b.tobytes()


def check(function: Callable[..., Any], args: Any, kwargs: Any, to_spec: Callable[[np.ndarray], Spec]) -> None:
    expected = quietly(lambda: function(*args, **kwargs))
    feed = Feed(to_spec)
    values = feed.values(tuple(args))
    keywords = {key: feed.values(value) for key, value in kwargs.items()}
    result = function(*values, **keywords)
    if isinstance(expected, (tuple, list)):
        assert type(result) is type(expected)
    assert_same(quietly(lambda: feed.run(result)), expected)


# A ufunc called with numbers alone, or a function whose only arrays are inside a list NumPy does not look into, never
# reaches a Value.
CASES = [case for case in cases if any(isinstance(x, np.ndarray) for x in [*case.args, *case.kwargs.values()])] + [
    case for case in cases if case.args and isinstance(case.args[0], (list, tuple))
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_named_sizes(case: Case) -> None:
    check(case.func, case.args, case.kwargs, named)


@pytest.mark.parametrize("to_spec", [Spec.of, unknown])
def test_known_and_unknown(to_spec: Callable[[np.ndarray], Spec]) -> None:
    wrong = []
    for case in CASES:
        try:
            check(case.func, case.args, case.kwargs, to_spec)
        except TypeError as error:
            # NumPy itself wants to iterate over some arguments, and says no more than that it could not.
            if to_spec is Spec.of or not any(
                text in str(error) for text in ("known when the graph is built", "dispatcher")
            ):
                wrong.append(f"{case.id}: {error!r}")
        except Exception as error:
            wrong.append(f"{case.id}: {error!r}")
    assert not wrong, "\n".join(wrong)


EXPRESSIONS: list[Callable[..., Any]] = [
    lambda x, y: x.sum(),
    lambda x, y: x.prod(axis=1),
    lambda x, y: x.mean(axis=0, keepdims=True),
    lambda x, y: (x.std(), x.var(axis=1), x.min(), x.max(axis=0)),
    lambda x, y: (x.argmax(), x.argmin(axis=1), (x > 1).any(), (x > 1).all(axis=0)),
    lambda x, y: (x.cumsum(), x.cumprod(axis=1), x.T.dot(y)),
    lambda x, y: (x.reshape(-1), x.reshape(7, 5), x.reshape((7, -1)), x.ravel(), x.flatten()),
    lambda x, y: (x.transpose(), x.transpose(1, 0), x.transpose((0, 1)), x.T, x.mT, x.swapaxes(0, 1)),
    lambda x, y: (x.astype(np.float32), x.astype("i4"), x.copy(), x.clip(1, 2), x.clip(max=1.5), x.round(1)),
    lambda x, y: (x.conj(), x.conjugate(), x.real, x.imag, x.squeeze(), x[None].squeeze(0)),
    lambda x, y: (x.take([1, 2], axis=0), x.repeat(2), x.repeat(2, axis=1), x.argsort(axis=0), x.argpartition(2)),
    lambda x, y: (x.trace(), x.diagonal(), x.nonzero(), y.searchsorted([1.0]), x.compress([True, False, True], axis=0)),
    lambda x, y: (x.view(), x.view(np.int64), x.view(np.int32), (x > 1).view(np.uint8)),
    lambda x, y: (
        x[0],
        x[-1, 2],
        x[1:3],
        x[:, ::-1],
        x[..., None, 1],
        x[[0, 1]],
        x[[0, 1], [1, 2]],
        x[:, None, [0, 2]],
    ),
    lambda x, y: (x[x > 1], x[x[:, 0] > 1], x[x.argmax(axis=0)], x[y.argmax()], x[y.argmax() :], x[1, : y.argmin()]),
    lambda x, y: (x + y[:, None], 2 - x, x / 3, x // 2, x % 2, x**2, -x, abs(x), x @ x.T, divmod(x, 2), 2**x),
    lambda x, y: (
        x > 1,
        x >= y[:, None],
        x == x,
        x != 2,
        (x > 1) & (x < 2),
        (x > 1) | (x < 2),
        ~(x > 1),
        (x > 1) ^ (x < 2),
    ),
    lambda x, y: np.add(x, np.ones(7, np.float32)) + np.float32(2) * y[:, None],
    lambda x, y: np.where(x > 1, [1.0] * 7, 0) + np.arange(7) * x,
    lambda x, y: [row * 2 for row in np.moveaxis(x[:, :3], 1, 0)],
    lambda x, y: np.apply_along_axis(np.sort, 0, x),
]


ROWS = 19  # iterates, so that the first size has to be a number


@pytest.mark.parametrize("k", range(len(EXPRESSIONS)))
def test_expressions(k: int) -> None:
    check(EXPRESSIONS[k], (A, V), {}, Spec.of if k == ROWS else named)
    check(EXPRESSIONS[k], (A, V), {}, Spec.of)


SYMBOLIC: list[Callable[..., Any]] = [
    lambda x: x.reshape(x.shape[0] * x.shape[1]),
    lambda x: x.reshape(x.shape[1], x.shape[0], 1),
    lambda x: x[: x.shape[0] // 2],
    lambda x: np.broadcast_to(x[0], x.shape),
    lambda x: np.full_like(x, 3, shape=(2, x.shape[1])),
]


@pytest.mark.parametrize("k", range(len(SYMBOLIC)))
def test_symbolic_sizes_as_arguments(k: int) -> None:
    check(SYMBOLIC[k], (A,), {}, named)
    check(SYMBOLIC[k], (A.astype(np.float32),), {}, named)


@pytest.fixture
def x() -> Any:
    return pyop.Graph().input("float64[n, 3]", name="x")


def test_specs_by_rule(x: Any) -> None:
    assert str(np.mean(x, axis=0).spec) == "float64[3]"
    assert str((x.astype(np.float32) * 2).spec) == "float32[n,3]"
    assert str(np.concatenate([x, x]).spec) == "float64[2*n,3]"
    assert str(np.linalg.eigh(x.T @ x).eigenvalues.spec) == "float64[3]"
    assert str(np.frexp(x)[1].spec) == "int32[n,3]"
    assert np.apply_along_axis(np.sort, 0, x).spec == Spec()


def test_answered_at_once(x: Any) -> None:
    n = Dim("n")
    assert np.shape(x) == (n, 3)
    assert np.ndim(x) == 2
    assert np.size(x) == x.size == 3 * n
    assert np.size(x, 1) == 3
    assert np.size(x, axis=0) == n
    assert np.result_type(x, np.float32, 1) == np.float64
    assert np.can_cast(x.dtype, np.float32) is False
    assert not np.iscomplexobj(x)
    assert np.isrealobj(x)
    assert np.common_type(x) is np.float64
    assert np.min_scalar_type(x) == np.float64
    assert (x.itemsize, x.nbytes) == (8, 24 * n)
    square = pyop.Graph().input("float64[2, 2]")
    assert_same(np.triu_indices_from(square), np.triu_indices(2))
    assert len(square) == 2
    with pytest.raises(TypeError, match=r"np\.triu_indices_from .* shape is not known"):
        np.triu_indices_from(x)
    anything = pyop.Graph().input("_")
    for function in (np.shape, np.ndim, np.size, np.iscomplexobj, np.result_type):
        with pytest.raises(TypeError, match="not known when the graph is built"):
            function(anything)


NO_CALLER = r"writes into the argument 'x': a graph has no caller.*copy first"
REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: np.copyto(x, 1), NO_CALLER),
    (lambda x: np.put(x, 0, 1), NO_CALLER),
    (lambda x: np.place(x, x > 1, 1), NO_CALLER),
    (lambda x: np.putmask(x, x > 1, 1), NO_CALLER),
    (lambda x: np.fill_diagonal(x, 1), NO_CALLER),
    (lambda x: np.put_along_axis(x, i(1, 3), 1, 0), NO_CALLER),
    (lambda x: np.add.at(x, [0], 1), NO_CALLER),
    (lambda x: np.save("file.npy", x), r"np\.save needs numbers"),
    (lambda x: np.savez("file.npz", x), r"np\.savez needs numbers"),
    (lambda x: np.savetxt("file.txt", x), r"np\.savetxt needs numbers"),
    (lambda x: np.array2string(x), "needs numbers"),
    (lambda x: np.shares_memory(x, x), "no"),
    (lambda x: np.sum(x, out=np.zeros(())), r"out= cannot be used"),
    (lambda x: np.add(x, 1, out=np.zeros(3)), r"into a plain array"),
    (lambda x: np.add(np.ones(3), 1, out=x), NO_CALLER),
    (lambda x: x.sum(out=np.zeros(())), r"out= cannot be used"),
    (lambda x: np.median(x, overwrite_input=True), "immutable"),
    (lambda x: np.zeros(3, like=x), "like="),
    (lambda x: x.__setitem__(0, 1), NO_CALLER),
    (lambda x: x.__delitem__(0), r"np\.delete"),
    (lambda x: x.sort(), NO_CALLER),
    (lambda x: x.partition(1), NO_CALLER),
    (lambda x: x.fill(1), NO_CALLER),
    (lambda x: x.item(), r"no numbers until its graph runs"),
    (lambda x: x.tolist(), r"no numbers until its graph runs"),
    (lambda x: x.tobytes(), r"no numbers until its graph runs"),
    (lambda x: 1.0 in x, r"np\.any"),
    (lambda x: len(x), r"first size is symbolic \(n\)"),
    (lambda x: list(x), r"first size is symbolic \(n\)"),
    (lambda x: list(x[0, 0]), r"is not iterable"),
    (lambda x: bool(x.any()), "pyop"),
    (lambda x: float(x.sum()), "pyop"),
    (lambda x: np.asarray(x), "pyop"),
    (lambda x: np.sum(x, axis=np.argmax(x[0])) and None, "truth"),
    (lambda x: np.sort(x, axis=np.argmax(x[0])), "axis has to be a number when the graph is built"),
    (lambda x: np.split(x, np.argmax(x[0])), "known when the graph is built|concrete when the graph is built"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refused(x: Any, k: int) -> None:
    call, message = REFUSED[k]
    with pytest.raises(TypeError, match=message):
        call(x)


@pytest.mark.parametrize("name", ["data", "strides", "flags", "base", "ctypes"])
def test_no_memory(x: Any, name: str) -> None:
    # No AttributeError: NumPy's array has it, and hasattr() must not send the function another way.
    with pytest.raises(TypeError, match=f"Value.{name}: .*(use a pyop.op|use value.ravel)"):
        getattr(x, name)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: np.sum(x, axis=2), np.exceptions.AxisError),
        (lambda x: x + np.ones(4), ValueError),
        (lambda x: x @ np.ones((4, 2)), ValueError),
        (lambda x: x[:, 3], IndexError),
        (lambda x: x.reshape(-1, -1), ValueError),
        (lambda x: x.astype(np.int32, casting="safe"), TypeError),
        (lambda x: np.bitwise_and(x, 1), TypeError),
        (lambda x: np.linalg.inv(x.astype(np.float16)), TypeError),
    ],
)
def test_wrong_calls_fail_when_built(x: Any, call: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(x)


def test_arrays_of_objects() -> None:
    """What NumPy hands out of object arrays is anything; the graph does not promise a dtype."""
    things = np.array([1, 2.5, 3], object)
    check(lambda a: (a + 1, np.sum(a), a[0], a * a), (things,), {}, Spec.of)


def test_text() -> None:
    words = np.array(["ab", "c"])
    check(
        lambda a: (np.add(a, "xyz"), np.equal(a, "c"), a[0], np.concatenate([a, a]), np.strings.str_len(a)),
        (words,),
        {},
        Spec.of,
    )


def test_mask_is_kept_whole() -> None:
    check(lambda a, m: (a[m], np.where(m, a, 0), a[m, None], np.sum(a, where=m)), (A, B), {}, named)


def test_a_container_of_one_array_gives_that_array():
    x = np.array([0.0, 2.0, 0.0, 3.0])
    for function in (np.nonzero, lambda x: np.split(x, 1), lambda x: np.broadcast_arrays(x), lambda x: np.meshgrid(x)):
        (got,) = pyop.trace(function, "float64[n]").compile()(x)
        (want,) = function(x)
        assert isinstance(got, np.ndarray)
        assert np.array_equal(got, want)


def test_a_size_that_numbers_decide_says_so():
    with pytest.raises(TypeError, match="not known when the graph is built"):
        pyop.trace(lambda x: np.broadcast_to(np.unique(x), (2, *np.unique(x).shape)), "float64[n]")
