"""Tangents through derivatives: a pullback is linear in its cotangents and moves with its primals, by every rule."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pyop
from pyop._tree import flatten
from pyop.gradients import table

from .cases import cases
from .test_rules import Problem, inner, is_differentiable

rng = np.random.default_rng(17)


def like(x: Any) -> Any:
    noise = rng.standard_normal(x.shape)
    return noise + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else noise


class Drawn(Problem):
    """A problem whose tangents are drawn here: those of the other module stay what they are."""

    def __init__(self, case: Any) -> None:
        self.case = case
        leaves = table.leaves(case.args, case.kwargs)
        self.which = [k for k, leaf in enumerate(leaves) if is_differentiable(leaf)]
        self.arrays = [leaves[k] for k in self.which]
        self.tangents = [like(x) for x in self.arrays]


PROBLEMS = [(case, Drawn(case)) for case in cases]


def pulled(problem: Problem) -> Any:
    """The pullback of a case as a function of its arrays and of the cotangents."""
    n = len(problem.arrays)

    def pull(*given: Any) -> Any:
        return pyop.vjp(problem, *given[:n])[1](list(given[n:]))

    return pull


@pytest.mark.parametrize(("case", "problem"), PROBLEMS, ids=[case.id for case, _ in PROBLEMS])
def test_by_cotangents(case: Any, problem: Problem) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outputs = problem(*problem.arrays)
        cts, moves = [like(y) for y in outputs], [like(y) for y in outputs]
        given = (*problem.arrays, *cts)
        tangents = (*[None] * len(problem.arrays), *moves)
        try:
            found = flatten(pyop.jvp(pulled(problem), given, tangents)[1])[0]
        except pyop.NoRule:  # of the functions that the rule is written with
            assert not case.second
            return
        right = flatten(pulled(problem)(*problem.arrays, *moves))[0]
        for got, want in zip(found, right, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("case", "problem"), [pair for pair in PROBLEMS if pair[0].second], ids=[c.id for c, _ in PROBLEMS if c.second]
)
def test_by_primals(case: Any, problem: Problem) -> None:
    """Forward over reverse is reverse over reverse, as second derivatives are symmetric."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cts = [like(y) for y in problem(*problem.arrays)]
        pull = pulled(problem)
        tangents = (*problem.tangents, *[None] * len(cts))
        try:
            found = flatten(pyop.jvp(pull, (*problem.arrays, *cts), tangents)[1])[0]
        except (pyop.NoRule, NotImplementedError):
            return
        along = [like(x) for x in problem.arrays]
        back = pyop.vjp(lambda *xs: pull(*xs, *cts), *problem.arrays)[1](tuple(along))
        left, right = inner(found, along), inner(problem.tangents, flatten(back)[0])
        assert np.isclose(left, right, rtol=1e-6, atol=1e-8)


X, Y, T = np.array([1.0, 2.0]), np.array([0.5, -1.0]), np.array([1.0, 10.0])
SCALARS = (2, 2.0, 2j, True, np.float32(2), np.complex128(2j), np.int64(2), np.array(2j))
OPERATIONS = {
    "c * s": lambda c, s: c * s,
    "s * c": lambda c, s: s * c,
    "c + s": lambda c, s: c + s,
    "s - c": lambda c, s: s - c,
    "c - s": lambda c, s: c - s,
    "c / s": lambda c, s: c / s,
    "s / c": lambda c, s: s / c,
    "s ** c": lambda c, s: s**c,
    "c ** s": lambda c, s: c**s,
}


@pytest.mark.parametrize("text", OPERATIONS)
@pytest.mark.parametrize("c", SCALARS, ids=repr)
def test_scalars_beside_numbers(c: Any, text: str) -> None:
    """``2j * np.float64(3)`` is a complex of Python, which is no Tensor unless somebody makes one of it."""

    def f(x: Any) -> Any:
        return np.real(OPERATIONS[text](c, np.sum(x)) * (0.5 - 1j))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, tangent = pyop.jvp(f, (X,), (T,))
        h = 1e-6
        assert np.isclose(tangent, (f(X + h * T) - f(X - h * T)) / (2 * h), rtol=1e-6)
        assert np.isclose(value, f(X))
        assert np.isclose(pyop.grad(f)(X) @ T, tangent)


def twice(x: Any) -> Any:
    y = np.sin(x)
    return y, [y, {"again": y}], x, x


def test_results_that_are_one_object() -> None:
    for jvp in (pyop.jvp, pyop.compile(lambda x, t: pyop.jvp(twice, (x,), (t,)))):
        _, found = jvp(twice, (X,), (T,)) if jvp is pyop.jvp else jvp(X, T)
        for tangent in flatten(found)[0][:3]:
            assert np.array_equal(tangent, np.cos(X) * T)
        for tangent in flatten(found)[0][3:]:
            assert np.array_equal(tangent, T)
    same = pyop.autograd.jvp(lambda x: (x, x), pyop.Tensor(X), T)[1]
    assert all(np.array_equal(t.numpy(), T) for t in same)


def test_arguments_and_tangents_that_are_one_object() -> None:
    f = lambda x, y: np.sum(x * x * y)
    for jvp in (pyop.jvp, lambda f, p, t: pyop.compile(lambda: pyop.jvp(f, p, t))()):
        assert jvp(f, (X, X), (T, None))[1] == np.sum(2 * X * X * T)
        assert jvp(f, (X, X), (None, T))[1] == np.sum(X * X * T)
        assert np.isclose(jvp(f, (X, X), (T, T))[1], np.sum(3 * X * X * T))


@pytest.mark.parametrize("compiled", [False, True])
def test_hessian_vector_products_by_several_arguments(compiled: bool) -> None:
    f = lambda x, y: np.sum((x + y) ** 2 + x * y)
    made = pyop.compile if compiled else lambda g: g
    for which, tangents in (((0, 1), (T, None)), ((0, 1), (None, T)), ((1, 0), (T, T)), ((0,), (T, T))):
        g = pyop.grad(f, which)
        found = made(lambda x, y, g=g, ts=tangents: pyop.jvp(g, (x, y), ts)[1])(X, Y)
        moves = [np.zeros(2) if t is None else t for t in tangents]
        right = [2 * moves[0] + 2 * moves[1] + moves[1 - k] for k in which]
        for got, want in zip(flatten(found)[0], right, strict=True):
            assert np.array_equal(got, want)


def test_perturbations_are_kept_apart() -> None:
    inner = lambda x: pyop.jvp(lambda y: x + y, (1.0,), (1.0,))[1]
    assert pyop.jvp(lambda x: x * inner(x), (2.0,), (1.0,))[1] == 1.0
    assert pyop.grad(lambda x: x * inner(x))(2.0) == 1.0
    assert pyop.jvp(lambda x: x * pyop.grad(lambda y: x * y)(3.0), (2.0,), (1.0,))[1] == 4.0
