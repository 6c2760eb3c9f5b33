"""pyop.compile: a compiled function does what the function does, for whatever it is called with."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import inspect
import math
import operator
import pickle
import sys
import threading
import warnings
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyop

DTYPES = ["bool", "int8", "int64", "uint8", "float32", "float64", "complex64"]


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class State:
    x: Any
    v: Any


@pyop.compile
def of_module(x, *, k=1):
    """Doubles."""
    return x * 2 * k


def same(got: Any, want: Any) -> None:
    """Equal trees of equal arrays, where NumPy's scalars may be arrays of no dimension."""
    if isinstance(want, np.ndarray | np.generic):
        assert isinstance(got, np.ndarray | np.generic)
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)
    elif dataclasses.is_dataclass(want):
        assert type(got) is type(want)
        same(vars(got), vars(want))
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, tuple | list):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
    else:
        assert type(got) is type(want)
        assert got == want or (got != got and want != want)


def outcome(f: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or that it raises: which of two errors comes first is not promised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        try:
            return f(*args, **kwargs)
        except (ArithmeticError, LookupError, ValueError, TypeError):
            return "raises"


def agree(f: Any, compiled: Any, *args: Any, **kwargs: Any) -> None:
    want, got = outcome(f, *args, **kwargs), outcome(compiled, *args, **kwargs)
    same(got, want)


# --- the guard: any sequence of calls gives what NumPy gives


def mixed(p, x=2.0, *rest, k=1, mode="add"):
    """Uses everything: a tree, a number or array, more of them, static arguments."""
    total = p["w"] * x + k
    for r in rest:
        total = total + r if mode == "add" else total * r
    return {"total": total, "again": (p["n"], total, None), "mode": mode, "k": k, "x": x}


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


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.pow, operator.mod, operator.lt])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "float64", "complex64"])
def test_python_numbers_are_weak_as_in_numpy(op, dtype):
    x = np.array([1, 2, 3], dtype)
    for direct in (op, lambda x, t: op(t, x), lambda x, t: op(x, t * 0.5) + t):
        compiled = pyop.compile(direct)
        for t in (2, 3, 2.0, -1.5, 0.5, 300, -2, 2j):
            agree(direct, compiled, x, t)


def test_numbers_computed_with_are_inputs_and_numbers_decided_by_are_static():
    smooth = pyop.compile(lambda x, t: np.sin(2 * t) * x + t**2 * np.where(x > t, x, t))
    branching = pyop.compile(lambda x, t: x if t > 1 else -x)
    for t in (0.5, 1.5, 2.5):
        same(smooth(np.ones(2), t), np.sin(2 * t) + t**2 * np.where(np.ones(2) > t, 1.0, t))
        same(branching(np.ones(2), t), np.ones(2) if t > 1 else -np.ones(2))
    # `t**2` may be complex for all that is known: the number is needed there.
    assert smooth.cache_info().plans == 3
    assert pyop.compile(lambda x, t: math.sin(t) * x)(np.ones(1), 1.0) == math.sin(1.0)
    loop = pyop.compile(lambda x, n: sum(x * i for i in range(n)))
    assert [float(loop(np.ones(()), n)) for n in (3, 4, 3)] == [3.0, 6.0, 3.0]
    assert loop.cache_info()[:3] == (1, 2, 2)
    linear = pyop.compile(lambda t, y, k: np.cos(t * k) * y + t / 2.0)
    for t in (0.0, 0.25, 7.5):
        same(linear(t, np.ones(3), 2.0), np.cos(t * 2.0) * np.ones(3) + t / 2.0)
    assert linear.cache_info().plans == 1


def test_arithmetic_of_python_floats_is_pythons():
    def f(t, k):
        return [t + k, t - k, t * 2, 1.5 * t, 1 / k, t / k, -t, +t, abs(t), (t + 1) * (k - 1) / 3.0]

    compiled = pyop.compile(f)
    plan = compiled.plan_for(1.0, 2.0)
    assert plan.report()["native"] == plan.report()["instructions"]
    every = [0.0, -0.0, 1.0, -2.5, 1e308, 5e-324, math.inf, -math.inf, math.nan, 0.1, 1e16]
    for t in every:
        for k in every:
            want, got = outcome(f, t, k), outcome(compiled, t, k)
            assert repr(got) == repr(want)  # no warnings: pytest makes them errors
    assert compiled.cache_info().plans == 1


def test_a_number_that_comes_back_is_a_python_number():
    compiled = pyop.compile(lambda x, t, n: (t, n, t + 1.0, x, [t * 2.0]))
    x = np.ones(2)
    for t in (1.0, 2.5):
        got = compiled(x, t, 3)
        assert got[3] is x
        same(got, (t, 3, t + 1.0, x, [t * 2.0]))
    assert compiled.cache_info().plans == 1


# --- trees, statics, results


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


def test_results_that_are_no_arrays_or_not_computed():
    table = np.arange(3)

    def f(x, y):
        z = x + 1
        return {"none": None, "text": "a", "pair": (z, z), "same": x, "table": table, "n": np.float32(2)}

    compiled = pyop.compile(f)
    x = np.zeros(2)
    first, second = compiled(x, x), compiled(x, x)
    same(first, f(x, x))
    assert first["same"] is x
    assert first["pair"][0] is first["pair"][1]
    first["table"][:] = 9
    same(second["table"], np.arange(3))
    same(compiled(x, x)["table"], np.arange(3))
    assert pyop.compile(lambda x: None)(x) is None
    assert pyop.compile(lambda x: ())(x) == ()
    assert pyop.compile(lambda: 3)() == 3


def test_results_that_cannot_be_told_apart_are_refused():
    for result, path in [({1}, ""), ({"a": [object()]}, r"\['a'\]\[0\], ")]:
        with pytest.raises(TypeError, match=rf"f returned {path}an object of type (set|object): what is compiled"):
            pyop.compile(_named(lambda x, result=result: result))(np.ones(1))

    def generator(x):
        yield x

    with pytest.raises(TypeError, match="generator is a generator or coroutine function"):
        pyop.compile(generator)


def test_named_sizes_come_back_as_numbers():
    compiled = pyop.compile(lambda x: (x.sum(), x.shape, {"twice": 2 * x.shape[0]}), "float64[n, 3]")
    for n in (2, 5):
        same(compiled(np.ones((n, 3))), (np.asarray(3.0 * n), (n, 3), {"twice": 2 * n}))
    assert compiled.cache_info().plans == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x[n:],
        lambda x, n: x[[n, 1], None],
        lambda x, n: np.roll(x, n),
        lambda x, n: np.add.reduce(x, initial=n),
        lambda x, n: x.reshape(n, -1),
        lambda x, n: np.full(3, n) + x[:3],
        lambda x, n: np.linspace(0, n, 6) * x,
        lambda x, n: np.pad(x, (n, 0)),
        lambda x, n: np.concatenate([x, [n]]),
        lambda x, n: np.add(x, n, dtype="float32"),
        lambda x, n: np.polyval([n, 1], x),
        lambda x, n: {f"k{n}": x, n: max(n, 2)},
        lambda x, n: divmod(x, n),
        lambda x, n: np.isclose(x, n),
    ],
)
def test_wherever_a_number_is_needed_it_is_known(f):
    compiled = pyop.compile(f)
    for n in (2, 3, 2, 2.0):
        agree(f, compiled, np.arange(6.0), n)


def test_results_are_memory_of_their_own():
    compiled = pyop.compile(lambda x: (x + 1.0, x + 1.0, np.exp(x)))
    a, b, c = compiled(np.zeros(3))
    a[:] = 7
    same(b, np.ones(3))
    d = compiled(np.ones(3))[2]
    same(c, np.ones(3))
    assert not np.shares_memory(c, d)
    assert all(r.flags.writeable for r in (a, b, c, d))


def test_out_goes_to_the_plan():
    x = np.arange(3.0)
    compiled = pyop.compile(lambda x, y, *, k=1: (x + y) * k)
    out = np.empty(3)
    assert compiled(x, x, out=out) is out
    same(out, x * 2)
    assert compiled(x, x, k=3, out=out) is out
    assert compiled(x, out=out, y=x, k=2) is out
    same(out, x * 4)
    with pytest.raises(pyop.InputError, match="out="):
        compiled(x, x, out=np.empty(4))
    both = pyop.compile(lambda x: {"a": x + 1, "b": [x * 2]})
    outs = np.empty(3), np.empty(3)
    got = both(x, out=outs)
    assert got["a"] is outs[0]
    assert got["b"][0] is outs[1]


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
    [((1, 2), (1, 2.0)), (0.0, -0.0), (1, True), (frozenset({1}), frozenset({1.0})), ((0.0,), (-0.0,)), ("1", 1)],
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
        pyop.compile(static="z")(functools.wraps(lambda x: x)(f := lambda x: x) and _named(f))
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


def _named(f: Any) -> Any:
    f.__name__ = "f"
    return f


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


def test_control_flow_on_arrays_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"np\.where") as caught:
        pyop.compile(lambda x: x if x > 0 else -x)(np.ones(()))
    assert "pyop.compile traced lambda(x: float64[]); an argument that decides" in caught.value.__notes__[0]


# --- specs


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


# --- methods and other callables


class Model:
    def __init__(self, k: float) -> None:
        self.k = k

    @pyop.compile
    def scaled(self, x, *, shift=0.0):
        return x * self.k + shift

    @classmethod
    @pyop.compile
    def twice(cls, x):
        return x * 2

    @staticmethod
    @pyop.compile
    def thrice(x):
        return x * 3


def test_methods_have_plans_for_each_instance_and_do_not_keep_it():
    Model.scaled.clear_cache()
    a, b = Model(2.0), Model(3.0)
    x = np.arange(3.0)
    for _ in range(2):
        same(a.scaled(x), x * 2)
        same(b.scaled(x, shift=1.0), x * 3 + 1)
        same(Model.scaled(b, x), x * 3)
    assert Model.scaled.cache_info()[:3] == (3, 3, 3)
    same(a.twice(x), x * 2)
    same(Model.thrice(x), a.thrice(x))
    ref = weakref.ref(a)
    del a
    assert ref() is None
    assert Model.scaled.cache_info().plans == 2
    same(pickle.loads(pickle.dumps(b)).scaled(x), x * 3)


def test_instances_that_cannot_be_held_weakly():
    class Slotted:
        __slots__ = ("k",)

        @pyop.compile
        def f(self, x):
            return x * self.k

    made = []
    for k in range(4):
        made.append(Slotted())
        made[-1].k = k
        assert made[-1].f(np.ones(1)) == k


def test_other_callables():
    x = np.arange(3.0)
    same(pyop.compile(functools.partial(np.multiply, 2.0))(x), x * 2)
    same(pyop.compile(np.sin)(x), np.sin(x))
    same(pyop.compile(Model(4.0).thrice.__wrapped__)(x), x * 3)

    class Callable:
        def __call__(self, x):
            return x + 1

    same(pyop.compile(Callable())(x), x + 1)
    assert pyop.compile(lambda x, *rest: sum(rest, x))(x, x, x).tolist() == [0.0, 3.0, 6.0]


def test_it_looks_like_its_function():
    assert (of_module.__name__, of_module.__doc__, of_module.__module__) == ("of_module", "Doubles.", __name__)
    assert list(inspect.signature(of_module).parameters) == ["x", "k"]
    assert pickle.loads(pickle.dumps(of_module)) is of_module
    assert copy.copy(of_module) is copy.deepcopy(of_module) is of_module
    assert repr(of_module).startswith("<pyop.compile of <function of_module")
    with pytest.raises(pickle.PicklingError, match="import path"):
        pickle.dumps(pyop.compile(functools.partial(np.multiply, 2.0)))


# --- arguments that are nearly arrays


def test_what_numpy_can_view_is_compiled_and_what_has_rules_of_its_own_is_not(tmp_path):
    compiled = pyop.compile(lambda x, y: x * y)
    x = np.arange(1.0, 4.0)
    mapped = np.memmap(tmp_path / "m", np.float64, "w+", shape=3)
    mapped[:] = x
    for other in (mapped, memoryview(x), x.astype(">f8")):
        same(compiled(x, other), x * x)
    plans = compiled.cache_info().plans
    masked = np.ma.masked_array(x, [True, False, False])
    assert compiled(x, masked).mask.tolist() == [True, False, False]

    class Quantity(np.ndarray):
        def __mul__(self, other):
            return "times"

    assert compiled(x.view(Quantity), x) == "times"
    assert compiled.cache_info().plans == plans
    strided = np.arange(12.0).reshape(3, 4)[:, ::-2]
    same(compiled(strided, strided.T.T), strided * strided)


# --- inside of graphs


def test_it_is_inlined_where_a_graph_is_built():
    inner = pyop.compile(lambda x, k=2.0: x * k)
    g = pyop.trace(lambda x: inner(x) + inner(x, 3.0), "float64[n]")
    assert [node.name for node in g.nodes] == ["x", "multiply", "multiply_1", "add"]
    outer = pyop.compile(lambda x, t: inner(x, t) + t)
    same(outer(np.ones(2), 4.0), np.full(2, 8.0))
    assert inner.cache_info()[:3] == (0, 0, 0)
    with pyop.Graph() as g:
        assert inner(g.input("float64[]")).node.name == "multiply"
        same(inner(np.ones(1)), np.full(1, 2.0))
    assert inner.cache_info()[:3] == (0, 0, 0)
    with pytest.raises(TypeError, match="out="):
        inner(g.input("float64[]"), out=np.empty(()))


def test_python_nodes_call_compiled_functions_at_run_time():
    inner = pyop.compile(lambda x: x * 2.0)
    op = pyop.op(lambda x: inner(x), "float64[n] -> float64[n]")
    outer = pyop.compile(lambda x: op(x) + 1.0)
    same(outer(np.ones(2)), np.full(2, 3.0))
    assert inner.cache_info().plans == 1


def test_plan_for_and_graph():
    compiled = pyop.compile(lambda x: x + np.sin(x), threads=2)
    x = np.ones(3)
    plan = compiled.plan_for(x)
    assert plan is compiled.plan_for(x)
    assert (plan.threads, plan.input_names) == (2, ("x",))
    assert compiled.graph(x) is plan.graph
    assert compiled.plan_for(np.ones(4)) is not plan
    nested = pyop.compile(lambda p: p["w"][0] * p["b"]).plan_for({"w": [x], "b": x})
    assert nested.input_names == ("p.w.0", "p.b")
    plain = pyop.compile(lambda x: x + np.sin(x), optimize=False).plan_for(x)
    assert plain.report()["native"] == 0
    with pytest.raises(TypeError, match="no plan"):
        compiled.plan_for(pyop.Graph().input("float64[]"))


# --- the cache


def test_the_cache_is_bounded_and_forgets_what_was_not_used():
    traced = []
    compiled = pyop.compile(lambda x: traced.append(x.shape[0]) or x + 1, max_plans=2)
    for n in (1, 2, 1, 3, 1, 2):
        compiled(np.ones(n))
    assert traced == [1, 2, 3, 2]
    assert compiled.cache_info() == (2, 4, 2, 2)
    compiled.clear_cache()
    assert compiled.cache_info() == (0, 0, 0, 2)


def warned(compiled: Any, calls: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for args, kwargs in calls:
            compiled(*args, **kwargs)
    assert caught[0].category is pyop.RetraceWarning
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return str(caught[0].message)


def test_retracing_is_told_with_its_cause():
    x = np.ones(2)
    text = warned(pyop.compile(_named(lambda x, y: x + 1)), [((np.ones((n, 3)), x), {}) for n in range(1, 15)])
    assert "f was traced 12 times in 12 calls" in text
    assert "argument 'x' came in 12 shapes (float64[1,3], float64[2,3], float64[3,3], ...)" in text
    assert "pyop.compile(f, 'float64[n,3]')" in text
    assert "'y'" not in text
    text = warned(pyop.compile(lambda x, *, k: x), [((x,), {"k": k}) for k in range(14)])
    assert "static argument 'k' had 12 values (0, 1, 2, ...)" in text
    text = warned(pyop.compile(lambda x, t: x if t > 0 else -x), [((x, t), {}) for t in range(14)])
    assert "argument 't', a Python number that the function needs" in text
    text = warned(pyop.compile(lambda x: x, max_plans=1), [((np.ones(n % 2),), {}) for n in range(14)])
    assert "came in 2 shapes" in text


def test_many_plans_that_are_used_are_no_reason_to_warn():
    compiled = pyop.compile(lambda x: x + 1)
    for n in range(30):
        for _ in range(40):
            compiled(np.ones(n))


# --- threads and lifetime


def test_threads_may_trace_and_call_at_once():
    compiled = pyop.compile(lambda x, k: x * k + 1.0, max_plans=4)
    wrong, ready = [], threading.Barrier(4)

    def work(seed):
        ready.wait()
        for i in range(300):
            n = (seed + i) % 6
            if not np.array_equal(compiled(np.ones(n), float(i)), np.ones(n) * i + 1.0):
                wrong.append(n)
            if i % 50 == 0:
                compiled.clear_cache()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_comparing_may_run_code_that_clears_the_cache():
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 0

        def __eq__(self, other):
            compiled.clear_cache()
            gc.collect()
            return isinstance(other, Key) and self.n == other.n

    compiled = pyop.compile(lambda x, *, key: x * key.n)
    for n in (1, 2, 3, 1, 2, 3):
        assert compiled(np.ones(1), key=Key(n)) == n

    class Bad(Key):
        __hash__ = Key.__hash__

        def __eq__(self, other):
            raise ArithmeticError

    compiled = pyop.compile(lambda x, *, key: x)
    compiled(np.ones(1), key=Bad(1))
    with pytest.raises(ArithmeticError):
        compiled(np.ones(1), key=Bad(1))


def test_a_function_that_calls_itself_compiled_at_run_time():
    halve = pyop.op(lambda x: f(x - 1.0) if x > 0 else x, "float64[] -> float64[]", stateful=True)
    f = pyop.compile(lambda x: halve(x))
    assert f(np.array(20.0)) == 0.0


def test_cycles_are_collected():
    def build():
        def f(x):
            return op(x) + table

        table = np.ones(2)
        op = pyop.op(lambda x: x * len([compiled]), "float64[n] -> float64[n]")
        compiled = pyop.compile(f)
        compiled(np.ones(2))
        compiled.me = compiled
        return weakref.ref(f), weakref.ref(compiled), weakref.ref(compiled.plan_for(np.ones(2)))

    gc.collect()
    gc.disable()
    try:
        refs = build()
        assert all(ref() is not None for ref in refs)
        gc.collect()
        assert [ref() for ref in refs] == [None] * 3
    finally:
        gc.enable()


def test_calls_leave_no_references():
    x, d = np.ones(2), {"a": np.ones(3), "b": 1.5}
    compiled = pyop.compile(lambda x, d, *, k: (x + d["b"], d["a"], k))
    key = ("k", 1.5)
    calls = [
        lambda: compiled(x, d, k=key),
        lambda: compiled(x, d, k=("k", 1.5)[:]),
        lambda: outcome(compiled, x, object(), k=key),
    ]
    for call in calls:
        for _ in range(3):
            call()
        before = [sys.getrefcount(o) for o in (x, d, d["a"], d["b"], key, compiled)]
        for _ in range(50):
            call()
        after = [sys.getrefcount(o) for o in (x, d, d["a"], d["b"], key, compiled)]
        assert all(b <= a + 1 for a, b in zip(before, after, strict=True))
