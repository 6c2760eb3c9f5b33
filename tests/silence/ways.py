"""The ways of running a program."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import pyop

from .arguments import make
from .compare import SCALARS
from .derivatives import judge_derivative
from .judge import LEFT_OUT, Outcome, history, judge_calls
from .mapped import everything, judge_mapped
from .programs import Entry


def arrays_only(entry: Entry) -> bool:
    return all(type(a) is np.ndarray for a in make(entry.arguments, 1))


def eager(entry: Entry) -> Outcome:
    """An op without a declaration, which gives one array."""
    first = history(entry)[0]
    single = first.error is not None or isinstance(first.result, np.ndarray | np.generic | float | complex)
    if not (single and arrays_only(entry)):
        return LEFT_OUT, ""
    return judge_calls(entry, lambda function, given: pyop.op(function, name="f"), loosely=True)


def compiled(entry: Entry) -> Outcome:
    return judge_calls(entry, lambda function, given: pyop.compile(function))


def unoptimized(entry: Entry) -> Outcome:
    return judge_calls(entry, lambda function, given: pyop.compile(function, optimize=False))


def planned(entry: Entry) -> Outcome:
    """A graph of one's own, whose results are arrays, and which is what one call writes down."""
    if entry.name.startswith(("captured.", "keepers.")):
        return LEFT_OUT, ""
    results = [leaf for call in history(entry) if call.error is None for leaf in everything(call.result)]
    if not arrays_only(entry) or not all(isinstance(leaf, (np.ndarray, *SCALARS)) for leaf in results):
        return LEFT_OUT, ""

    def plan(function: Callable[..., Any], given: list[Any]) -> Any:
        return pyop.trace(function, *(pyop.Spec.of(a) for a in given)).compile()

    return judge_calls(entry, plan)


class Kin(np.ndarray):
    """A subclass with a rule of its own: sums are halved."""

    def sum(self, *args: Any, **keywords: Any) -> Any:
        return np.asarray(self).sum(*args, **keywords) * 0.5


def masked(a: np.ndarray) -> Any:
    return np.ma.masked_array(a, mask=np.arange(a.size).reshape(a.shape) % 3 == 1)


def series(a: np.ndarray) -> Any:
    import pandas

    return pandas.Series(a, index=[f"r{k}" for k in range(len(a))])


def of(kind: Callable[[np.ndarray], Any], fits: Callable[[np.ndarray], bool]) -> Callable[[Entry], Outcome]:
    """Compiled, with arrays in a container that has rules of its own."""

    def judge(entry: Entry) -> Outcome:
        given = make(entry.arguments, 1)
        places = {k for k, a in enumerate(given) if type(a) is np.ndarray and a.flags.c_contiguous and fits(a)}
        if not places:
            return LEFT_OUT, ""

        def arguments(seed: int) -> list[Any]:
            made = make(entry.arguments, seed)
            return [kind(a) if k in places else a for k, a in enumerate(made)]

        twice = replace(entry, calls=entry.calls[:2])
        return judge_calls(twice, lambda function, given: pyop.compile(function), arguments)

    return judge


def has_rows(a: np.ndarray) -> bool:
    return a.ndim == 1 and a.dtype.kind in "biufc" and bool(importlib.util.find_spec("pandas"))


WAYS: dict[str, Callable[[Entry], Outcome]] = {
    "op": eager,
    "compile": compiled,
    "unoptimized": unoptimized,
    "plan": planned,
    "reverse": lambda entry: judge_derivative(entry, forward=False, compiled=False),
    "reverse, compiled": lambda entry: judge_derivative(entry, forward=False, compiled=True),
    "forward": lambda entry: judge_derivative(entry, forward=True, compiled=False),
    "forward, compiled": lambda entry: judge_derivative(entry, forward=True, compiled=True),
    "vmap": lambda entry: judge_mapped(entry, compiled=False),
    "vmap, compiled": lambda entry: judge_mapped(entry, compiled=True),
    "masked": of(masked, lambda a: a.ndim > 0),
    "series": of(series, has_rows),
    "subclass": of(lambda a: a.view(Kin), lambda a: a.ndim > 0),
}
