"""pyop.compile: a compiled function does what the function does, for whatever it is called with."""

from __future__ import annotations

import ctypes
import functools
import math
import operator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pyop

from .helpers import Pair, State, agree, same


def mixed(p, x=2.0, *rest, k=1, mode="add"):
    """Uses everything: a tree, a number or array, more of them, static arguments."""
    total = p["w"] * x + k
    for r in rest:
        total = total + r if mode == "add" else total * r
    return {"total": total, "again": (p["n"], total, None), "mode": mode, "k": k, "x": x}


DTYPES = ["bool", "int8", "int64", "uint8", "float32", "float64", "complex64"]

arrays = st.builds(
    lambda dtype, shape, start: (np.arange(start, start + math.prod(shape)) % 5).astype(dtype).reshape(shape),
    st.sampled_from(DTYPES),
    st.sampled_from([(), (1,), (3,), (2, 3), (0,)]),
    st.integers(0, 3),
)
# No complex ones: times NumPy's scalars, which for a plan are arrays, they remain Python's.
numbers = st.sampled_from([0, 1, 2, -3, 100, 300, 2**70, 0.0, -0.0, 1.5, math.inf, 1e300, True])
scalars = st.sampled_from([np.float32(2.5), np.float64(1.5), np.int8(7), np.bool_(True), np.uint64(3)])
leaves = st.one_of(arrays, numbers, scalars)
calls = st.tuples(
    st.fixed_dictionaries({"w": leaves, "n": st.one_of(leaves, st.none(), st.tuples(leaves, leaves))}),
    st.lists(leaves, max_size=3),
    st.fixed_dictionaries(
        {}, optional={"k": st.sampled_from([1, 1.0, True, 2, -0.0, 0.0]), "mode": st.sampled_from(["add", "mul"])}
    ),
)


@settings(deadline=None, max_examples=120)
@given(st.lists(calls, min_size=2, max_size=8), st.sampled_from([1, 3, 64]))
def test_any_sequence_of_calls_agrees_with_numpy(sequence, max_plans):
    compiled = pyop.compile(mixed, max_plans=max_plans)
    for p, rest, static in [*sequence, *sequence]:
        agree(mixed, compiled, p, *rest, **static)
    assert compiled.cache_info().plans <= max_plans


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(arrays, arrays), min_size=2, max_size=8))
def test_flat_arrays_of_any_kind_in_turn(sequence):
    def f(a, b):
        return a + b, a * b

    compiled = pyop.compile(f, max_plans=3)
    for a, b in [*sequence, *reversed(sequence)]:
        agree(f, compiled, a, b)


def test_trees_of_every_kind():
    def f(tree):
        return State(tree[0].a + tree[1]["k"].x, [tree[0].b, (tree[1]["k"].v,), {}])

    compiled = pyop.compile(f)
    for n in (1, 2, 1):
        a = np.ones(n)
        agree(f, compiled, (Pair(a, a * 2), {"k": State(a * 3, a * 4)}))
    assert compiled.cache_info()[:3] == (1, 2, 2)
    agree(f, compiled, [Pair(a, a * 2), {"k": State(a * 3, a * 4)}])  # a list is not a tuple
    assert compiled.cache_info().plans == 3


def test_the_order_of_keys_counts():
    def f(d):
        return functools.reduce(operator.sub, d.values()), list(d)

    compiled = pyop.compile(f)
    a, b = np.array([1.0]), np.array([10.0])
    for d in ({"a": a, "b": b}, {"b": b, "a": a}, {"a": a, "b": b}):
        agree(f, compiled, d)


def test_numbers_that_are_needed_are_told_apart_to_the_last_bit():
    def f(x, z):
        return x + (1.0 if np.copysign(1.0, complex(z).imag) > 0 else -1.0)

    compiled = pyop.compile(f)
    for z in (0j, complex(0.0, -0.0), 0j):
        same(compiled(np.zeros(2), z), f(np.zeros(2), z))


def test_a_call_with_no_keywords_may_say_so():
    class Argument(ctypes.Structure):
        _fields_ = [("array", ctypes.py_object)]

    vectorcall = ctypes.pythonapi.PyObject_Vectorcall
    vectorcall.restype = ctypes.py_object
    vectorcall.argtypes = (ctypes.py_object, ctypes.POINTER(Argument), ctypes.c_size_t, ctypes.py_object)
    compiled = pyop.compile(lambda x: x + 1.0)
    same(vectorcall(compiled, ctypes.pointer(Argument(np.zeros(2))), 1, ()), np.ones(2))
