"""What NumPy's functions and methods return, and what is done with it: value, exact type and error are NumPy's, or the
error is pyop's own.

Each function of `tests.numpy_cases`, and each method of an array that needs no argument, with arrays, and with numbers,
scalars and arrays of no dimension in their place; each with every use. Three calls with other values.
"""

from __future__ import annotations

import json
import numbers
import operator
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy_cases import cases

import pyop

KINDS = (bool, int, float, complex, str, tuple, list, np.ndarray, np.generic, np.bool_, np.floating, np.integer)
KINDS += (np.float64, np.float32, np.int64, numbers.Number, numbers.Real, numbers.Integral, type(None))


def matched(r):
    match r:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case np.generic():
            return "scalar"
        case [_, *_] | (_, *_):
            return "several"
        case np.ndarray():
            return "array"
    return "other"


def among_objects(r):
    held = np.empty(2, object)
    held[0] = r
    return held


def first(r):
    return r[0] if isinstance(r, (tuple, list)) and r else r


USES: dict[str, Callable[[Any], Any]] = {
    "returned": lambda r: r,
    "nested": lambda r: {"a": [r, (r, 1)]},
    "name of the type": lambda r: type(r).__name__,
    "names of the types": lambda r: [type(part).__name__ for part in r] if isinstance(r, (tuple, list)) else type(r),
    "class": lambda r: first(r).__class__.__name__,
    "isinstance": lambda r: [isinstance(r, kind) for kind in KINDS],
    "is True": lambda r: (r is True, first(r) is True, r is False, r is None),
    "index": lambda r: ["a", "b", "c", "d"][first(r)],
    "bool": lambda r: bool(first(r)),
    "not": lambda r: not first(r),
    "int": lambda r: int(first(r)),
    "float": lambda r: float(first(r)),
    "operator.index": lambda r: operator.index(first(r)),
    "str": lambda r: str(r),
    "format": lambda r: f"{first(r):.3f}",
    "%": lambda r: "%s" % (r,),  # noqa: UP031
    "==": lambda r: (first(r) == 1, first(r) == first(r)),
    "<": lambda r: first(r) < 2,
    "+": lambda r: first(r) + 1,
    "+ itself": lambda r: first(r) + first(r),
    "~": lambda r: ~first(r),
    "* list": lambda r: first(r) * [1, 2],
    "json": lambda r: json.dumps(r),
    "objects": among_objects,
    "key": lambda r: {first(r): 1}[first(r)],
    "match": matched,
    "attributes": lambda r: [hasattr(r, name) for name in ("node", "spec", "shape", "__len__", "is_integer", "_value")],
    "length": lambda r: len(r),
    "isscalar": lambda r: (np.isscalar(r), np.ndim(first(r)), callable(r)),
}


def shown(result: Any) -> Any:
    if isinstance(result, dict):
        return type(result), {key: shown(part) for key, part in result.items()}
    if isinstance(result, (list, tuple)):
        return type(result), [shown(part) for part in result]
    if isinstance(result, np.ndarray):
        return type(result), result.dtype, result.shape, [shown(part) for part in result.ravel().tolist()]
    return type(result), repr(result)


def outcome(f: Callable[..., Any], args: list[Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return "returns", shown(f(*args))
        except Exception as error:
            return "raises", type(error), str(error)


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc"


def others(x: Any) -> list[Any]:
    """Arrays or numbers of one kind, with other values."""
    kind = type(x)
    doubled = ~x if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "b" else x + x
    if isinstance(x, bool):
        return [x, not x, x]
    return [x, x * 0, doubled if kind is np.ndarray else kind(doubled)]


def as_numbers(x: Any) -> list[Any]:
    """A number, a scalar and an array of no dimension in the place of an array."""
    one = x.ravel()[0] if isinstance(x, np.ndarray) and x.size else None
    if one is None:
        return []
    return [one.item(), one, np.array(one)]


Made = tuple[str, Callable[..., Any], list[list[Any]]]


def calls() -> Iterator[Made]:
    """Functions, and the arguments of three calls."""
    for case in cases:
        if "empty" in case.id or any(isinstance(x, str) for x in case.kwargs.values()):
            continue
        given = [k for k, x in enumerate(case.args) if is_array(x)]
        if not given:
            continue
        variants = [[case.args[k] for k in given]]
        variants += [list(v) for v in zip(*(as_numbers(case.args[k]) for k in given), strict=False)]
        for values in variants:

            def call(*arrays: Any, case: Any = case, given: list[int] = given) -> Any:
                args = list(case.args)
                for k, x in zip(given, arrays, strict=True):
                    args[k] = x
                return case.func(*args, **case.kwargs)

            yield f"{case.id} of {[type(x).__name__ for x in values]}", call, [*zip(*map(others, values), strict=True)]  # type: ignore[misc]
    for x in (np.array([1.5, -2.0, 3.0]), np.array([[1, 0], [2, 3]]), np.array([True, False]), np.float32(1.5)):
        for name in dir(type(x)):
            if name.startswith("_") or name in ("fill", "sort", "partition", "resize", "setflags", "data", "ctypes"):
                continue
            try:
                method = getattr(x, name)
                found = method() if callable(method) else method
            except (TypeError, ValueError):
                continue
            if found is not None and name not in ("base", "flags", "flat", "device", "dumps"):
                get = (lambda x, name=name: getattr(x, name)()) if callable(method) else operator.attrgetter(name)
                yield f"{type(x).__name__}.{name} of {x!r}", get, [[y] for y in others(x)]


MADE = list(calls())


def differs(made: Made, use: str, options: dict[str, Any]) -> str | None:
    """The first call that is neither as NumPy's nor an error."""
    name, call, values = made
    go_on = USES[use]

    def f(*arrays: Any) -> Any:
        return go_on(call(*arrays))

    compiled = pyop.compile(f, **options)
    for args in values:
        want = outcome(f, [x.copy() if isinstance(x, np.ndarray) else x for x in args])
        got = outcome(compiled, [x.copy() if isinstance(x, np.ndarray) else x for x in args])
        if got[0] == want[0] == "returns" and got != want:
            return f"{name}, {use}, {options}, {args}: {got[1]}, right is {want[1]}"
        # What nobody reads is not computed, and raises nothing (docs/compiling.md).
        if got[0] == "returns" != want[0] and outcome(call, [*args])[0] == "returns":
            return f"{name}, {use}, {options}, {args}: {got[1]}, where NumPy raises {want[1:]}"
    return None


def test_kinds_are_those_of_numpy():
    chance = random.Random(0)
    found = [
        differs(chance.choice(MADE), chance.choice([*USES]), chance.choice([{}, {"fallback": True}]))
        for _ in range(700)
    ]
    assert not [x for x in found if x]


@pytest.mark.campaign
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fallback", [False, True])
def test_all_kinds_are_those_of_numpy(use, fallback):
    found = [differs(made, use, {"fallback": fallback}) for made in MADE]
    assert not [x for x in found if x], "\n".join(x for x in found if x)
