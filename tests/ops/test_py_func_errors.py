"""py_func: what the function raises arrives as it was raised; what the caller did wrong is said where it was done."""

import re
import traceback

import numpy as np
import pytest
from py_func_ways import WAYS

import pyop

f32 = np.float32


@pytest.fixture(params=list(WAYS))
def call(request):
    return WAYS[request.param]


class Odd(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


class BadText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class NoNotes(Exception):
    def add_note(self, note):
        raise RuntimeError("no notes")


@pytest.mark.parametrize(
    "error",
    [
        *(ValueError("pepper"), TypeError("pepper"), StopIteration("pepper"), MemoryError(), KeyError("pepper")),
        *(NotImplementedError("pepper"), ZeroDivisionError(), AssertionError("pepper\0salt"), OSError(2, "pepper")),
        *(Odd(7), BadText(), NoNotes("pepper"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "pepper")),
        *(ExceptionGroup("several", [ValueError("pepper")]), pyop.OutputError("pepper"), StopAsyncIteration()),
        *(KeyboardInterrupt("pepper"), SystemExit(3), GeneratorExit(), BaseExceptionGroup("several", [SystemExit(1)])),
    ],
    ids=lambda e: type(e).__name__,
)
def test_an_exception_is_the_same_object(call, error):
    def deep():
        raise error

    def outer(x):
        deep()

    error.__traceback__ = None
    if hasattr(error, "__notes__"):  # of the run before
        del error.__notes__
    with pytest.raises(type(error)) as caught:
        call(outer, [f32(1)], "float32")
    assert caught.value is error
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-2:] == ["outer", "deep"]
    notes = "\n".join(getattr(error, "__notes__", []))
    if isinstance(error, Exception) and not isinstance(error, NoNotes):
        assert notes.count("outer") == 1
        assert "float32[]" in notes
        assert re.search(r"in (op|node) 'outer' \((declared|created) at .*test.*\.py:\d+\)", notes)
    else:
        assert not notes
    assert not isinstance(error, BadText) or "exception str() failed" in "".join(traceback.format_exception(error))


def test_raise_from_and_context_survive(call):
    def work():
        try:
            raise KeyError("first")
        except KeyError as first:
            raise Odd(1) from first

    with pytest.raises(Odd) as caught:
        call(work, [], "float32")
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.code == 1


def test_writing_into_an_argument_is_refused_with_advice(call):
    def scribble(v):
        v[0] = 1
        return v

    mine = np.zeros(2)
    with pytest.raises(ValueError, match="read-only") as caught:
        call(scribble, [mine], "float64")
    notes = "\n".join(caught.value.__notes__)
    assert "write to a copy, x = x.copy(), or call the function as a pyop.op(..., mutates=(...))" in notes
    assert mine.tolist() == [0, 0]
    # What it says can be done.
    assert call(lambda v: scribble(v.copy()), [mine], "float64").tolist() == [1, 0]
    written = pyop.op(scribble, "float64[n] -> float64[n]", mutates=("v",))
    assert written(mine).tolist() == [1, 0]
    assert mine.tolist() == [0, 0]


def test_wrong_number_of_arguments_is_the_functions_own_error(call):
    with pytest.raises(TypeError, match=r"two\(\) missing 1 required positional argument: 'b'"):

        def two(a, b):
            return a

        call(two, [f32(1)], "float32")


def test_a_graph_survives_a_failing_call():
    box = {"bad": True}

    def moody(v):
        if box["bad"]:
            raise ValueError("not today")
        return v

    g = pyop.Graph()
    p = g.input("float32")
    y = pyop.py_func(moody, [p], "float32")
    g.output(y)
    plans = [g.compile(), g.compile(threads=3), lambda x: g.run(y, {p: x}), lambda x: g.run(y, {p: x}, threads=3)]
    for plan in plans:
        for _ in range(3):
            box["bad"] = True
            with pytest.raises(ValueError, match="not today") as caught:
                plan(f32(3))
            assert len(caught.value.__notes__) == 1
            box["bad"] = False
            assert plan(f32(3)) == 3


@pytest.mark.parametrize("threads", [1, 4])
def test_after_an_error_nothing_stateful_runs(threads):
    ran = []
    g = pyop.Graph()
    with g:
        nodes = [pyop.py_func(lambda k=k: (ran.append(k), 1 / (k - 2))[1], [], "float64") for k in range(5)]
    with pytest.raises(ZeroDivisionError):
        g.run(nodes, threads=threads)
    assert ran == [0, 1, 2]


# --- what the caller did wrong


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((3, [1.0], "float32"), ValueError, r"Expected func to be callable\. Received func=3 of type int"),
        ((len, 1.0, "float32"), TypeError, "inp must be a list or tuple.*got float"),
        ((len, np.zeros(3), "float32"), TypeError, "inp must be a list or tuple.*got ndarray"),
        ((len, "ab", "float32"), TypeError, "inp must be a list or tuple.*got str 'ab'"),
        ((len, {"a": 1}, "float32"), TypeError, "inp must be a list or tuple.*got dict"),
        ((len, [1.0], None), TypeError, "Cannot convert None to a dtype"),
        ((len, [1.0], {"a": "float32"}), TypeError, "Cannot convert {'a': 'float32'} to a dtype"),
        ((len, [1.0], ["float32", None]), TypeError, "Cannot convert None to a dtype"),
        ((len, [1.0], [["float32"]]), TypeError, "Cannot convert .* to a dtype"),
        ((len, [1.0], "flaot32"), TypeError, "Cannot convert 'flaot32' to a dtype"),
        ((len, [1.0], 32), TypeError, "Cannot convert 32 to a dtype"),
        ((len, [object()], "float32"), (TypeError, ValueError), "argument 0.*object"),
        ((len, [{"a": 1}], "float32"), (TypeError, ValueError), "argument 0.*dict"),
        ((len, [None], "float32"), (TypeError, ValueError), "argument 0.*NoneType"),
        ((len, [[1.0, [2.0]]], "float32"), (TypeError, ValueError), "argument 0.*list"),
        ((len, [2**64], "float32"), (TypeError, ValueError), "argument 0.*int"),
        ((len, [np.zeros(1, "M8[s]")], "float32"), (TypeError, ValueError), "argument 0.*datetime64"),
        ((len, [np.zeros(1, [("a", "i4")])], "float32"), (TypeError, ValueError), "argument 0.*Unsupported numpy type"),
    ],
)
def test_wrong_calls(symbolic, arguments, error, match):
    for entry in (pyop.py_func, pyop.numpy_function):
        if entry is pyop.numpy_function and (arguments[2] is None):
            continue
        with pytest.raises(error, match=match):
            if symbolic:
                with pyop.Graph():
                    entry(*arguments)
            else:
                entry(*arguments)


def test_a_value_where_the_list_of_inputs_belongs():
    g = pyop.Graph()
    with pytest.raises(TypeError, match=r"inp must be a list or tuple.*got Value.*\[x\]"):
        pyop.py_func(len, g.input("float32[3]"), "int64")


def test_values_of_two_graphs():
    a, b = pyop.Graph("a"), pyop.Graph("b")
    with pytest.raises(pyop.GraphError, match="belongs to"):
        pyop.py_func(np.add, [a.input("float32"), b.input("float32")], "float32")


def test_numpy_function_as_a_decorator():
    @pyop.numpy_function(Tout=np.float64, name="twice")
    def double(x):
        """Doubles."""
        return x * 2.0

    assert double(np.ones(2)).tolist() == [2, 2]
    assert (double.__name__, double.__doc__) == ("double", "Doubles.")
    g = pyop.Graph()
    y = double(g.input("float64", name="x"))
    assert y.name == "twice"
    assert y.node.stateful
    assert g.run(y, {"x": 4.0}) == 8
    none = pyop.numpy_function(Tout=[])(lambda x: None)
    assert none(1.0) is None
    for wrong, match in [
        (dict(), "needs Tout"),
        (dict(func=len, inp=[1.0]), "needs Tout"),
        (dict(Tout="float32", inp=[1.0]), "takes no inp"),
        (dict(func=len, Tout="float32"), "needs inp"),
    ]:
        with pytest.raises(TypeError, match=match):
            pyop.numpy_function(**wrong)
