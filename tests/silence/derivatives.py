"""Derivatives of a program by its first argument, against finite differences; values and arguments to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .arguments import make
from .compare import differs, state_of
from .judge import LEFT_OUT, RIGHT, WRONG, Outcome, called, judged, worst
from .programs import Entry

STEP = 1e-3


def leaves(tree: Any) -> list[Any]:
    """The numbers and arrays of a result."""
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves(item)]
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in leaves(item)]
    if tree is None or isinstance(tree, str | bool | int):
        return []
    if type(tree).__module__.startswith("tests.silence"):
        names = [*getattr(tree, "__dict__", ()), *getattr(tree, "__slots__", ())]
        return [leaf for name in names for leaf in leaves(getattr(tree, name))]
    return [tree]


def loss_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """One number of all that a function returns, with another weight for each element."""

    def loss(*arguments: Any) -> Any:
        total = 0.0
        for k, leaf in enumerate(leaves(function(*arguments))):
            shape = np.shape(leaf)
            weights = (1.0 + k + 0.5 * np.arange(float(np.prod(shape, dtype=int)))).reshape(shape)
            total = total + np.sum(np.real(leaf) * weights)
        return total

    return loss


def differences(loss: Callable[..., Any], given: Callable[[], list[Any]]) -> np.ndarray:
    """Central differences of fourth order by the first argument."""
    first = given()[0]
    gradient = np.zeros(first.shape)
    for at in np.ndindex(first.shape):

        def moved(step: float, at: tuple[int, ...] = at) -> float:
            arguments = given()
            arguments[0][at] += step
            return float(loss(*arguments))

        gradient[at] = (8 * (moved(STEP) - moved(-STEP)) - (moved(2 * STEP) - moved(-2 * STEP))) / (12 * STEP)
    return gradient


def judge_derivative(entry: Entry, *, forward: bool, compiled: bool) -> Outcome:
    if not entry.smooth:
        return LEFT_OUT, ""
    function, _ = entry.made()
    loss = loss_of(function)
    outcomes = []
    run: Any = differentiated(loss, forward=forward)
    if compiled:
        run = pyop.compile(run)
    for seed in entry.calls[:2]:
        want = called(loss, make(entry.arguments, seed), lambda: None, seed)
        with np.errstate(all="ignore"):
            gradient = differences(loss, lambda seed=seed: make(entry.arguments, seed))
        given = make(entry.arguments, seed)
        before = state_of(given)
        direction = np.cos(np.arange(float(gradient.size))).reshape(gradient.shape)
        extra = [direction] if forward else []
        got = called(lambda *given, extra=extra: run(*extra, *given), given, lambda: None, seed)
        if got.error is None:
            got.result, derivative = got.result
        got.shared = want.shared = []
        # At arrays the function itself runs, so what it wrote before it is refused is written.
        outcome = judged(want, got, before if compiled else None, entry)
        if outcome[0] == RIGHT and got.error is None:
            expected = np.sum(gradient * direction) if forward else gradient
            outcome = near(derivative, expected)
            if different := differs(np.cos(np.arange(float(gradient.size))).reshape(gradient.shape), direction):
                outcome = WRONG, f"the tangent was written: {different}"
        outcomes.append(outcome)
        if outcome[0] != RIGHT:
            break
    return worst(outcomes)


def differentiated(loss: Callable[..., Any], *, forward: bool) -> Callable[..., Any]:
    if not forward:
        return pyop.value_and_grad(loss)

    def derivative(direction: Any, first: Any, *rest: Any) -> Any:
        return pyop.jvp(lambda first: loss(first, *rest), (first,), (direction,))

    return derivative


def near(got: Any, want: Any) -> Outcome:
    got = np.asarray(got)
    if got.shape == np.shape(want) and np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True):
        return RIGHT, ""
    return WRONG, f"derivative {got.ravel()[:4]}, by differences {np.ravel(want)[:4]}"
