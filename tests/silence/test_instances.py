"""Objects that are containers come and go as they are: no code of their class runs, and nothing is lost."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyop

X = np.array([1.0, 2.0, 3.0])


@dataclass
class Doubling:
    a: Any
    b: Any = 2.0
    c: Any = field(default=5.0, init=False)

    def __post_init__(self) -> None:
        self.a = self.a * 2
        self.calls = 0
        self.lock = None


@dataclass(frozen=True, slots=True)
class Frozen:
    a: Any
    b: Any = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", self.a * 2)


class Half:
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return 2.0 if owner is None else owner.__dict__["stored"] / 2

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__["stored"] = value * 4


@dataclass
class Described:
    a: Any
    b: Any = Half()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value + 1 if name == "a" else value)


class _Pair(NamedTuple):
    a: Any
    b: Any = 2.0


class Pair(_Pair):
    def __new__(cls, a: Any, b: Any = 2.0) -> Any:
        return super().__new__(cls, a * 2, b)


KINDS = [Doubling, Frozen, Described, Pair]


def seen(x: Any) -> Any:
    held = list(tuple.__iter__(x)) if isinstance(x, tuple) else []
    held += [vars(x)] if hasattr(x, "__dict__") else [(x.a, x.b)]
    return type(x), repr(held)


@pytest.mark.parametrize("kind", KINDS)
def test_results_and_arguments(kind: Any) -> None:
    def made(x: Any) -> Any:
        return kind(x)

    def taken(m: Any) -> Any:
        return m.a * m.b + getattr(m, "calls", 0)

    compiled_made, compiled_taken = pyop.compile(made), pyop.compile(taken)
    for x in (X, X + 1, X):
        assert seen(compiled_made(x)) == seen(made(x))
        given = kind(x)
        if kind is Doubling:
            given.calls = 7
        assert np.array_equal(compiled_taken(given), taken(given))
        assert seen(given)[0] is kind


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind: Any) -> None:
    def loss(m: Any) -> Any:
        return np.sum(m.a**2) * m.b

    given = kind(X)
    for derivative in (pyop.grad(loss), pyop.compile(pyop.grad(loss))):
        found = derivative(given)
        assert type(found) is kind
        assert np.array_equal(found.a, 2 * given.a * given.b)
        assert getattr(found, "calls", 0) == 0
    value, tangent = pyop.jvp(loss, (given,), (given,))
    assert value == loss(given)
    assert np.isclose(tangent, 3 * value) or kind is Described  # whose `b` is held as four times as much


def test_attributes_beside_the_fields() -> None:
    given = Doubling(X)
    given.scale = X * 3  # type: ignore[attr-defined]
    f = pyop.compile(lambda m: m.a * m.scale)
    assert np.array_equal(f(given), given.a * X * 3)
    given.scale = 2.0  # type: ignore[attr-defined]
    assert np.array_equal(f(given), given.a * 2)

    def marked(x: Any) -> Any:
        made = Doubling(x)
        made.mark, made.total = "new", x.sum()  # type: ignore[attr-defined]
        return made

    for x in (X, X + 1):
        assert seen(pyop.compile(marked)(x)) == seen(marked(x))


def test_what_the_function_was_given_is_what_it_returns() -> None:
    def same(m: Any) -> Any:
        return m, m.a + 1

    for given in (Doubling(X), {"a": X}, [X]):
        g = pyop.compile(same if isinstance(given, Doubling) else lambda m: (m, 1))
        with pytest.warns(pyop.RetraceWarning, match="that it was given or holds"):
            assert g(given)[0] is given

    def twice(x: Any) -> Any:
        made = [x * 2]
        return made, {"again": made}

    with pytest.warns(pyop.RetraceWarning, match="or twice"):
        first, second = pyop.compile(twice)(X)
    assert second["again"] is first
    assert pyop.compile(lambda m: (m, m[0]))((X,))[0][0] is X  # of tuples nobody can tell


def test_a_dataclass_that_is_more_than_its_attributes_is_no_container() -> None:
    @dataclass
    class Table(dict):  # type: ignore[type-arg]
        a: Any = 1.0

    with pytest.raises(TypeError, match="Table"):
        pyop.compile(lambda t: t.a * 2)(Table())
    with pytest.raises(TypeError, match="Table"):
        pyop.compile(lambda x: Table(x))(X)


def test_objects_beside_the_fields() -> None:
    class Solver:
        factor = 3.0

    given = Doubling(X)
    given.solver = Solver()  # type: ignore[attr-defined]
    f = pyop.compile(lambda m: m.a * m.solver.factor)
    assert np.array_equal(f(given), given.a * 3)
    given.solver.factor = 4.0  # type: ignore[attr-defined]
    assert np.array_equal(f(given), given.a * 4)
    assert np.array_equal(pyop.grad(lambda m: np.sum(m.a * m.solver.factor))(given).a, [4.0, 4.0, 4.0])

    def made(x: Any) -> Any:
        kept = Doubling(x)
        kept.solver = Solver()  # type: ignore[attr-defined]
        return kept

    g = pyop.compile(made)
    with pytest.warns(pyop.RetraceWarning, match="holds a Solver"):
        first = g(X)
    assert g(X).solver is not first.solver


def test_replace_and_copies() -> None:
    def step(m: Any) -> Any:
        return dataclasses.replace(m, a=m.a + 1)

    given = Frozen(X)
    assert seen(pyop.compile(step)(given)) == seen(step(given))
