"""The surface of an ndarray is in one table, and everything that stands for an array has all of it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import pyop
from pyop._core import Tensor, Value
from pyop.autograd.batched import BatchedArray, BatchedScalar
from pyop.functions.surface import COMPARISONS, OPERATORS, SIGNS, SURFACE
from pyop.graph.symbolic_number import Number

KINDS = [Value, Tensor, BatchedArray]
PUBLIC = {name for kind in (np.ndarray, np.generic) for name in dir(kind) if not name.startswith("_")}


def test_every_name_of_numpy_is_in_the_table():
    # A release of NumPy that has one more asks for a decision: a function, a write, numbers, memory, ...
    assert PUBLIC - SURFACE.keys() == set()
    assert [name for name in SURFACE if not hasattr(np.ndarray, name)] == []


def test_what_numpy_calls_is_called_here():
    for name, entry in SURFACE.items():
        if not name.startswith("__"):
            assert callable(getattr(np.ndarray, name)) != entry.attribute, name


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_every_name(kind):
    assert [name for name in SURFACE if not hasattr(kind, name)] == []


@pytest.mark.parametrize("name", [name for name, entry in SURFACE.items() if entry.sort == "call"])
def test_calls_are_the_same_for_all_kinds(name):
    # But for what one of them can do better: these say so by name.
    better = {
        "copy": {Value, Tensor},
        "conj": {Value},
        "real": {BatchedArray},
        "imag": {BatchedArray},
        "__deepcopy__": {Tensor},
    }
    found = {}
    for kind in KINDS:
        part = inspect.getattr_static(kind, name, None) or getattr(kind, name)
        found[kind] = getattr(part, "fget", part)
    others = {kind for kind, part in found.items() if part is not SURFACE[name].function}
    assert others == better.get(name, set())


@pytest.mark.parametrize("name", [name for name, entry in SURFACE.items() if entry.sort == "call"])
def test_calls_take_what_those_of_numpy_take(name):
    real = getattr(np.ndarray, name, None)
    try:
        theirs = inspect.signature(real)
    except (TypeError, ValueError):
        pytest.skip("NumPy does not say what it takes")
    ours = inspect.signature(SURFACE[name].function)
    if any(p.kind is p.VAR_KEYWORD for p in ours.parameters.values()):
        return
    assert [n for n in theirs.parameters if n != "self"] == [n for n in ours.parameters if n != "self"]


@pytest.mark.parametrize("kind", [*KINDS, BatchedScalar, Number])
def test_every_operator_is_there(kind):
    for name in (*SIGNS, *COMPARISONS, *OPERATORS, *(f"r{name}" for name in OPERATORS)):
        assert hasattr(kind, f"__{name}__"), name
    for name in OPERATORS if kind in KINDS else ():
        assert hasattr(kind, f"__i{name}__"), name


A = np.arange(12.0).reshape(3, 4) - 5
CALLS = {
    **{
        name: lambda x, name=name: getattr(x, name)() for name in ("sum", "ravel", "flatten", "conj", "squeeze", "copy")
    },
    **{name: lambda x, name=name: getattr(x, name)(axis=1) for name in ("max", "argmin", "cumsum", "std", "argsort")},
    "reshape": lambda x: x.reshape(4, 3),
    "reshape of a tuple": lambda x: x.reshape((2, -1)),
    "transpose": lambda x: x.transpose(1, 0),
    "clip": lambda x: x.clip(-1, max=3),
    "compress": lambda x: x.compress([True, False, True], axis=0),
    "choose": lambda x: (x > 0).choose([x, -x]),
    "take": lambda x: x.take([0, 5]),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "T": lambda x: x.T + x.mT,
    "parts": lambda x: x.real + x.imag,
    "reversed": lambda x: np.stack(list(reversed(x))),
    "device": lambda x: x.to_device(x.device).__array_namespace__().negative(x),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("way", [pyop.compile, lambda f: lambda x: f(Tensor(x)).numpy(), lambda f: mapped(f)])
def test_results_are_those_of_numpy(name, way):
    np.testing.assert_array_equal(way(CALLS[name])(A.copy()), CALLS[name](A))


def mapped(f):
    return lambda x: pyop.vmap(f)(np.stack([x, x]))[1]
