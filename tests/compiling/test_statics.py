"""Static arguments, specs, and what cannot be compiled."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pyop

from .helpers import agree, named, same


def test_static_arguments():
    traced = []

    def f(x, n, how="add", *, axis=0):
        traced.append((n, how, axis))
        return np.sum(x, axis=axis) * n if how == "mul" else np.sum(x, axis=axis) + n

    compiled = pyop.compile(f, static=("n",))
    x = np.arange(6.0).reshape(2, 3)
    for args, kwargs in [((x, 2), {}), ((x, 2.0), {}), ((x, True), {}), ((x, 2, "mul"), {"axis": 1}), ((x, 2), {})]:
        agree(f, compiled, *args, **kwargs)
    assert compiled.cache_info()[:3] == (1, 4, 4)
    same(compiled(x, n=2, axis=(0, 1)), f(x, 2, axis=(0, 1)))
    same(compiled(x, n=2, axis=tuple(range(2))), f(x, 2, axis=(0, 1)))
    assert compiled.cache_info()[:3] == (2, 5, 5)
    for how in ("n", 1, -2):
        assert pyop.compile(f, static=how)(x, 3).shape == (3,)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), (1, 2.0)),
        (0.0, -0.0),
        (1, True),
        (frozenset({1}), frozenset({1.0})),
        ((0.0,), (-0.0,)),
        ("1", 1),
        (0j, complex(0.0, -0.0)),
    ],
)
def test_static_values_that_are_equal_but_not_alike(one, other):
    compiled = pyop.compile(lambda x, *, k: (x, repr(k)))
    x = np.ones(1)
    for k in (one, other, one, other):
        assert compiled(x, k=k)[1] == repr(k)
    assert compiled.cache_info()[:3] == (2, 2, 2)


def test_slices_are_static_though_not_hashable_everywhere():
    compiled = pyop.compile(lambda x, *, s: x[s])
    x = np.arange(5)
    for s in (slice(1, 3), slice(1, 3), slice(None, None, 2)):
        same(compiled(x, s=s), x[s])
    assert compiled.cache_info().plans == 2


def test_errors_say_what_to_do():
    class Model:
        pass

    x = np.ones(2)
    compiled = pyop.compile(lambda x, model: x)
    with pytest.raises(
        TypeError, match=r"argument model of lambda is of type Model, neither array nor number: .*static="
    ):
        compiled(x, Model())
    with pytest.raises(TypeError, match=r"argument x\['a'\] of lambda is of type object"):
        compiled({"a": object()}, x)
    with pytest.raises(TypeError, match=r"static argument 'k' .* is a list, which cannot be hashed .*tuple"):
        pyop.compile(lambda x, *, k: x)(x, k=[1])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'model'"):
        compiled(x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        compiled(x, x, z=1)
    with pytest.raises(ValueError, match="static='z' is not a parameter of f; it has 'x'"):
        pyop.compile(static="z")(functools.wraps(lambda x: x)(f := lambda x: x) and named(f))
    with pytest.raises(TypeError, match="compiled already"):
        pyop.compile(compiled)
    with pytest.raises(TypeError, match="decorate its methods"):
        pyop.compile(Model)
    with pytest.raises(ValueError, match="max_plans"):
        pyop.compile(lambda x: x, max_plans=0)
    with pytest.raises(ValueError, match="no pass 'nonsense'"):
        pyop.compile(lambda x: x, disable=["nonsense"])
    with pytest.raises(TypeError, match="required parameter `out`"):
        pyop.compile(lambda x, *, out: x)


def test_an_exception_of_the_function_is_its_own():
    error = KeyError("mine")

    def f(x):
        raise error

    compiled = pyop.compile(f)
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            compiled(np.ones(3))
        assert caught.value is error
    assert "while pyop.compile traced f(x: float64[3])" in error.__notes__
    assert compiled.cache_info().plans == 0


def test_control_flow_on_arrays_goes_its_way():
    absolute = pyop.compile(lambda x: x if x > 0 else -x)
    for x in (np.ones(()), -np.ones(()), np.ones(())):
        assert absolute(x) == 1
    assert absolute.cache_info().misses == 2


def test_where_numbers_of_arrays_are_asked_for_it_runs_itself_with_advice():
    def f(x):
        return x * x.tolist()[0]

    with pytest.warns(pyop.RetraceWarning, match=r"pyop\.op"):
        same(pyop.compile(f)(np.full(2, 3.0)), f(np.full(2, 3.0)))
    with pytest.raises(TypeError, match=r"pyop\.op") as caught:
        pyop.trace(f, "float64[2]")
    assert "an argument that decides" in caught.value.__notes__[0]


def test_named_sizes_make_one_plan():
    compiled = pyop.compile(lambda x, y: x @ y, "float64[n, m], float64[m]")
    for n, m in [(2, 3), (4, 1), (0, 2)]:
        x, y = np.ones((n, m)), np.ones(m)
        same(compiled(x, y), x @ y)
        same(compiled(y=y, x=x), x @ y)
    assert compiled.cache_info()[1:3] == (2, 2)  # by position, and by name
    with pytest.raises(pyop.InputError, match=r"float64\[m\]"):
        compiled(np.ones((2, 3)), np.ones(4))
    with pytest.raises(pyop.InputError, match="cast"):
        compiled(np.ones((2, 3), "f4"), np.ones(3))
    same(compiled([[1.0, 2.0]], [3, 4]), np.array([11.0]))


def test_specs_are_trees_and_leave_statics_out():
    @pyop.compile({"w": "float64[n]", "b": "float64[]"}, "float64[n]", static=["how"])
    def f(p, how, x):
        return getattr(np, how)(p["w"] * x) + p["b"]

    for n in (2, 3):
        p, x = {"b": 1.0, "w": np.ones(n)}, np.arange(float(n))
        for how in ("sum", "max"):
            same(f(p, how, x), np.asarray(getattr(np, how)(p["w"] * x) + 1.0))
    assert f.cache_info().plans == 2
    with pytest.raises(pyop.InputError, match=r"structure mismatch: .*\n  in argument 'p' of f"):
        f({"w": x}, "sum", x)
    with pytest.raises(TypeError, match=r"3 specs for .* which has 2 array parameters"):
        pyop.compile(lambda x, y: x, "f8, f8, f8")
    with pytest.raises(TypeError, match="compiled for 1 array argument, and 'y' is not among them"):
        pyop.compile(lambda x, y: x, "f8[n]")(x, x)
