"""A Value passes for what NumPy has there; what no Value can pass for is refused."""

import contextlib
import functools
import numbers
import operator
import sys
import types
import typing
import warnings
from collections import abc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import pyop

from .compare import runs_itself

X = np.array([1.5, -2.0, 3.0])


def agrees(f, *args):
    """Compiled, the function goes the way it goes with arrays."""
    np.testing.assert_array_equal(pyop.compile(f)(*args), f(*args))


@functools.singledispatch
def kind(x):
    return 0.0


@kind.register
def _(x: np.ndarray):
    return 1.0


@kind.register
def _(x: float):
    return 2.0


def matched(x):
    match x:
        case np.ndarray():
            return 1.0
        case _:
            return 2.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * (2 if isinstance(x, np.ndarray) else 3),
        lambda x: x * (2 if isinstance(x[0], float) else 3),
        lambda x: x * (2 if isinstance(x.sum(), np.floating) else 3),
        lambda x: x * (2 if isinstance(x[0], np.ndarray) else 3),
        lambda x: x * (2 if isinstance(x[..., 0], np.ndarray) else 3),
        lambda x: x * (2 if isinstance((x > 0).any(), np.bool_) else 3),
        lambda x: x * (2 if np.isscalar(x[0]) else 3),
        lambda x: x * (2 if isinstance(x[0], numbers.Number) else 3),
        lambda x: x * (2 if isinstance(x, (list, tuple)) else 3),
        lambda x: x * kind(x) * kind(x[0]) * kind([x]),
        lambda x: x * matched(x) + matched(x[0]),
        lambda x: x * (2 if x.device == "cpu" else 3),
        lambda x: x * (2 if hasattr(x, "no_such_attribute") else 3),
    ],
)
def test_goes_the_way_of_numpy(f):
    agrees(f, X)


SMALL = np.ones(1)


@pytest.mark.parametrize("name", ["flags", "strides", "data", "ctypes", "base", "tolist", "setflags"])
def test_what_numpy_has_is_there_or_refused(name):
    def asked(x):
        return x * 2 if hasattr(x, name) else x * 3

    def caught(x):
        try:
            use = getattr(x, name)
            use = use() if callable(use) else use
        except (AttributeError, TypeError):
            return x * 3
        return x * 2

    for f in (asked, caught):
        if name in ("tolist", "setflags") and f is asked:
            np.testing.assert_array_equal(pyop.compile(f)(X), X * 2)  # the method is there
        else:
            with pytest.raises(TypeError, match=f"Value.{name}.*use"):
                pyop.trace(f, X)
            with pytest.warns(pyop.RetraceWarning, match=f"Value.{name}.*use"):
                np.testing.assert_array_equal(pyop.compile(f)(SMALL), f(SMALL))


def exact(x):
    return x * 2 if type(x) is np.ndarray else x * 3


def by_helper(x):
    return exact(x)


@pytest.mark.parametrize(
    "f",
    [
        exact,
        by_helper,
        lambda x: x * 2 if np.ndarray == type(x) else x * 3,  # noqa: E721
        lambda x: x * 2 if type(x) in (np.ndarray, np.float64) else x * 3,
        lambda x: next(x * 2 if type(v) is np.float64 else x * 3 for v in x),
        lambda x: x * 2 if issubclass(type(x), np.ndarray) else x * 3,
        lambda x: x * 2 if type(x).__name__ == "ndarray" else x * 3,
        lambda x: x * 2 if type(x) is not np.ndarray else x * 3,
        lambda x: x * 2 if type(x) not in {np.float64, np.ndarray} else x * 3,
        lambda x: x * sum([2 if type(v) is np.float64 else 3 for v in x]),
        lambda x: x * sum({i: 2 if type(x[i]) == np.float64 else 3 for i in range(3)}.values()),  # noqa: E721
        lambda x, y=2.0, n=1: x * y if n == 1 and type(x) is np.ndarray else x * n,
        lambda x: [x * 2 if (kind := type(v)) is np.float64 or kind is np.ndarray else x * 3 for v in (x, x[0])][-1],
    ],
)
def test_an_exact_type_is_refused(f):
    with pytest.raises(TypeError, match=r"test_type_checks\.py:\d+ .*write isinstance\(x, np\.ndarray\)"):
        pyop.compile(f)(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2 if type([x]) is list else x * 3,
        lambda x: x * (2 if x.dtype.type is np.float64 else 3),
        lambda x: type((x,))((x, x))[0] * 2,
        lambda x: x.astype(np.float32) if x.dtype == np.float64 else x,
        lambda x: x * (2 if type(abc).__name__ == "module" else 3),
        lambda x: x * (2 if issubclass(type(abc), abc.Sequence) else 3),
        lambda x: x * (2 if isinstance(x, abc.Iterable) and x.dtype.name == "float64" else 3),
        lambda x: x * (2 if issubclass(x.dtype.type, np.floating) else 3),
        lambda x: x * len(f"{type(x).__name__} is no float64" if isinstance(x, typing.Sequence) else "numpy"),
    ],
)
def test_no_false_alarm(f):
    agrees(f, X)


BY_TYPE = {float: 2.0, int: 3.0, bool: 4.0}


def by_table(x, t):
    return x * BY_TYPE.get(type(t), 5.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, t: x * t if type(t) is float else x,
        lambda x, t: x * t if type(t) == int else x,  # noqa: E721
        lambda x, t: x * t if type(t) in (float, complex) else x,
        lambda x, t: by_table(x, t),
    ],
)
@pytest.mark.parametrize("t", [2.0, 3, True, 1j])
def test_the_exact_type_of_a_number_is_known(f, t):
    assert np.array_equal(pyop.compile(f)(X, t), f(X, t))


def test_other_numbers_share_a_plan():
    f = pyop.compile(lambda x, t: x * t if isinstance(t, float) else x)
    for t in (1.0, 2.0, 3.0):
        f(X, t)
    assert f.cache_info().plans == 1


LAZY = """
lazy import numpy as np
lazy from {module} import kept

def exact(x):
    return x * 2 if type(x) is np.ndarray else x * 3

def keeps(x):
    kept.append(1)
    return x * len(kept)

def plain(x):
    global seen
    seen = True
    return np.sqrt(x * x)

seen = True
"""


@pytest.mark.skipif(sys.version_info < (3, 15), reason="lazy imports are new in CPython 3.15")
def test_lazy_imports_are_seen_through(monkeypatch):
    module = types.ModuleType("module_with_a_list")
    module.kept = []
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = {"__name__": "with_lazy_imports"}
    exec(compile(LAZY.format(module=module.__name__), "with_lazy_imports.py", "exec"), names)
    with pytest.raises(TypeError, match=r"with_lazy_imports\.py:\d+ .*write isinstance"):
        pyop.compile(names["exact"])(X)
    with pytest.warns(pyop.RetraceWarning, match="changes the global 'kept'"):
        np.testing.assert_array_equal(pyop.compile(names["keeps"])(X), X)
    agrees(names["plain"], X)


def test_a_value_that_was_kept_says_where_it_was_made():
    @pyop.compile
    def f(x):
        sys.pyop_kept = x * 2  # of a library's module, where no one looks whether the function has changed it
        return sys.pyop_kept + 1

    f(X)
    kept = [sys.pyop_kept]
    del sys.pyop_kept
    for use in (
        lambda: kept[0] + 1,
        lambda: X + kept[0],
        lambda: float(kept[0][0]),
        lambda: np.sum(kept[0]),
        lambda: kept[0].tolist(),
        lambda: pyop.compile(lambda x: x * kept[0])(X),
        lambda: pyop.compile(lambda x: kept[0])(X),
        lambda: f(kept[0]),
    ):
        with pytest.raises(pyop.GraphError, match=r"made at .*test_type_checks\.py:\d+ while pyop\.compile traced f"):
            use()


def test_an_item_of_a_plain_array():
    out = np.zeros((3, 3))

    def one(x):
        out[0, 0] = x[0]
        return out

    def all_of_them(x):
        out[:] = x
        return out

    def caught(x):
        with contextlib.suppress(TypeError, ValueError):
            out[0, 0] = x[0]
        return out

    def some_of_them(x, i=1):
        out[0, i : i + 2] = x[i : i + 2]
        return out

    for f in (one, all_of_them, some_of_them, caught):
        np.testing.assert_array_equal(pyop.compile(f)(X), f(X))
        out[:] = 0
        with pytest.raises(TypeError, match=r"a\[k\] = value` at .*test_type_checks\.py:\d+ .* np\.stack"):
            pyop.trace(f, "float64[3]")
    value = pyop.Graph().input("float64[3]")
    with pytest.raises(TypeError, match=r"np\.stack"):
        one(value)
    assert not out.any()


HELD = np.ones(3)
KINDS = (typing.Iterable, typing.Sized)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x * (2 if x is y else 3),
        lambda x, y: x * (2 if id(x) == id(y) else 3),
        lambda x, y: x * len({id(x), id(y)}),
        lambda x, y: x * (2 if operator.is_not(x, y) else 3),
        lambda x, y: x * (2 if any(y is k for k in [x]) else 3),
        lambda x, y: (lambda d: x * (2 if d["x"] is d["y"] else 3))({"x": x, "y": y}),
    ],
)
def test_one_array_given_twice_is_one(f):
    compiled, other = pyop.compile(f), X + 1
    declared = pyop.compile(f, "float64[n]", "float64[n]")
    for pair in ((X, X), (X, other), (other, other), (other, X), (X, X)):
        np.testing.assert_array_equal(compiled(*pair), f(*pair))
        np.testing.assert_array_equal(declared(*pair), f(*pair))
    assert compiled.cache_info().plans == 2


def test_one_array_in_a_container_is_one():
    compiled = pyop.compile(f := lambda a, b: a["x"] * (2 if a["x"] is b[1] else 3) + b[0])
    other = X + 1
    for given in (({"x": X}, [X, X]), ({"x": X}, [X, other]), ({"x": other}, [X, other]), ({"x": X}, [other, X])):
        np.testing.assert_array_equal(compiled(*given), f(*given))


def test_one_plan_does_where_nobody_asks():
    compiled = pyop.compile(lambda x, y=None: x * 2 if y is None else x * y)
    compiled(X, X), compiled(X, X + 1)
    assert compiled.cache_info().plans == 1


def test_an_array_that_is_held_is_no_argument():
    with pytest.raises(TypeError, match=r"compares 'HELD', an array that it holds, by `is`.*static argument"):
        pyop.compile(lambda x: x * (2 if x is HELD else 3))(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * (2 if all(isinstance(x, kind) for kind in KINDS) else 3),
        lambda x, kinds=(typing.Iterable,): x * (2 if isinstance(x, kinds[0]) else 3),
        lambda x: (lambda kind: x * (2 if isinstance(x, kind) else 3))(typing.Sized),
    ],
)
def test_classes_of_typing_in_tables_and_variables_are_refused(f):
    with pytest.raises(TypeError, match=r"class of typing.*write isinstance\(x, collections\.abc\.Iterable\)"):
        pyop.compile(f)(X)


def test_each_function_is_asked_for_what_it_holds():
    def made(kind):
        return lambda x: x * (2 if type(x) is kind else 3)

    agrees(made(dict), X)
    with pytest.raises(TypeError, match=r"write isinstance\(x, np\.ndarray\)"):
        pyop.compile(made(np.ndarray))(X)


def test_methods_and_functions_of_other_modules_are_asked():
    module = types.ModuleType("pyop_test_module")
    exec("import numpy\ndef helper(x):\n    return x * (2 if type(x) is numpy.ndarray else 3)", vars(module))

    class Model:
        def helper(self, x):
            return x * (2 if type(x) is np.ndarray else 3)

        def run(self, x):
            return self.helper(x)

    for f in (lambda x: module.helper(x), Model().run, lambda x, model=Model(): model.run(x)):  # noqa: B008
        with pytest.raises(TypeError, match=r"write isinstance\(x, np\.ndarray\)"):
            pyop.compile(f)(X)


@pytest.mark.parametrize("kind", [str, bytes, np.str_, np.bytes_, np.character, np.number, abc.Iterable, abc.Sized])
@pytest.mark.parametrize("dtype", ["U3", "S3"])
def test_elements_of_texts_are_texts(kind, dtype):
    def f(s):
        return np.ones(2) * (2 if isinstance(s[0], kind) else 3) * (5 if isinstance(s, kind) else 7)

    agrees(f, TEXTS[dtype])


TEXTS = {"U3": np.array(["ab", "c"]), "S3": np.array([b"ab", b"c"])}


def test_the_type_of_an_object_is_refused():
    said = r"the type of an element of an array of objects.*pyop\.op"
    runs_itself(lambda s: np.ones(2) * (2 if isinstance(s[0], int) else 3), np.array([1, "a"], object), match=said)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * (2 if "nan" in str(x) else 3),
        lambda x: x * len(repr(x)),
        lambda x: x * len(f"{x}"),
        lambda x: x * len(f"{x[0]}"),
        lambda x: x * len("{}".format(x)),  # noqa: UP032
        lambda x: x * (2 if str(x[0]) == "1.5" else 3),
        lambda x: {f"{x.sum()}": x},
        lambda x: {f"sum {x.sum()}": x},
        lambda x: x * (2 if str(x).startswith("[") else 3),
    ],
)
def test_the_text_of_an_array_is_not_looked_into(f):
    runs_itself(f, X, match=r"text of .*(np\.where|what the compiled function returns)")


def test_texts_may_be_shown(capsys):
    def f(x):
        print(x, f"and {x!r:.20}", [x])
        assert x.ndim == 1, f"not so {x}"
        return x * len(f"{x.shape} {x.dtype}")

    agrees(f, X)
    assert "<pyop.Value 'x' float64[3]> and <pyop.Value 'x' floa [<pyop.Value" in capsys.readouterr().out


HELD = np.array([1.0, 3.0])


class Holds:
    def __init__(self):
        self.w, self.others = HELD, [HELD]

    def attribute(self, x):
        return x * 2.0 if self.w is x else x * 3.0

    def item(self, x):
        return x * 2.0 if any(x is w for w in self.others) else x * 3.0

    def number(self, x):
        return x * 2.0 if id(x) in {id(w) for w in self.others} else x * 3.0


@pytest.mark.parametrize("name", ["attribute", "item", "number"])
def test_an_argument_that_the_function_holds_is_no_other_array(name):
    f = getattr(Holds(), name)
    compiled = pyop.compile(f)
    other = HELD.copy()
    assert np.array_equal(compiled(other), f(other))
    with pytest.raises(TypeError, match=r"argument 'x' is an array that it holds.*pass a copy"):
        compiled(HELD)
    assert np.array_equal(compiled(other), f(other))


@pytest.mark.parametrize("way", [pyop.compile, lambda f: lambda x: pyop.vjp(f, x)[0], pyop.vmap])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2.0 if np.squeeze(x) is x else x,
        lambda x: x * 2.0 if x.real is not x else x,
        lambda x: (lambda y: x * 2.0 if y is x else x)(np.atleast_1d(x)),
        lambda x: x * 2.0 if np.broadcast_arrays(x)[0] is x else x,
    ],
)
def test_what_numpy_may_give_back_itself_is_not_asked_for(f, way):
    with pytest.raises(TypeError, match=r"gives the array itself or a new one.*compare shapes instead"):
        way(f)(np.ones((2, 2)))


class Unit:
    """A class that has heard nothing of NumPy."""

    def __eq__(self, other):
        return "the unit"

    __hash__ = None

    def __radd__(self, other):
        return other


@pytest.mark.parametrize("other", [Fraction(1), Decimal(1), range(3), {1}, object(), ..., Unit()], ids=repr)
@pytest.mark.parametrize("operation", [operator.eq, operator.ne, operator.lt, operator.add])
def test_objects_that_numpy_meets_element_by_element(operation, other):
    """Python would call a method of the object with the Value, or say that the two are not one."""
    compiled = pyop.compile(lambda x: operation(x, other))
    said = f"a Value and an object of type '.*{type(other).__name__}'.*element"
    with contextlib.suppress(TypeError), pytest.warns(pyop.RetraceWarning, match=said):
        compiled(X)
    itself = pyop.compile(lambda x: operation(x, other), fallback=True)
    with contextlib.suppress(TypeError), warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        want = operation(X, other)
        np.testing.assert_array_equal(itself(X), want)
