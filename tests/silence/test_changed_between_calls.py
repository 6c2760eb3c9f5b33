"""State of every kind that a function reads, and that others change between its calls: the next call sees it."""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import operator
import os
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyop

X = np.arange(1.0, 5.0)
CASES: dict[str, Callable[[], tuple[Any, Callable[[], Any]]]] = {}


def case(make):
    """Register what makes a function of `X` and what changes it."""
    CASES[make.__name__] = make
    return make


def put(owner, key, value=7.0):
    owner[key] = value


def item(name, made, read, change):
    """The same for something that `made` makes, `read` makes a number of and `change` changes."""

    def make():
        held = made()
        return (lambda x: x * read(held)), (lambda: change(held))

    CASES[name] = make


class Slotted:
    __slots__ = ("__weakref__", "n")

    def __init__(self, n):
        self.n = n

    def by_method(self, x):
        return x * self.n


class Bare:
    rate = 2.0

    def __init__(self):
        self.n = 2.0

    def by_method(self, x):
        return x * self.rate

    def helper(self):
        return self.n

    @property
    def twice(self):
        return 2 * self.n


class Kin(Bare):
    pass


class Odd(list):
    def __iter__(self):
        return iter([5.0])


class Hiding(dict):
    def items(self):
        return []


@dataclasses.dataclass
class Point:
    k: float


SlottedPoint = dataclasses.make_dataclass("SlottedPoint", [("k", float)], slots=True)

item("slots", lambda: Slotted(2.0), lambda h: h.n, lambda h: setattr(h, "n", 3.0))
item("dataclass_with_slots", lambda: SlottedPoint(2.0), lambda h: h.k, lambda h: setattr(h, "k", 3.0))
item("dataclass_as_tuple", lambda: Point(2.0), lambda h: dataclasses.astuple(h)[0], lambda h: setattr(h, "k", 3.0))
item("set_length", lambda: {1}, len, lambda h: h.add(2))
item("set_member", lambda: {1}, lambda h: 2 if 1 in h else 3, lambda h: (h.clear(), h.add(5)))
item("context", lambda: contextvars.ContextVar("h", default=2.0), lambda h: h.get(), lambda h: h.set(3.0))
item("bytearray", lambda: bytearray(b"\2"), lambda h: h[0], lambda h: put(h, 0, 7))
item("array_of_python", lambda: array.array("d", [2.0] * 4), np.asarray, lambda h: put(h, 0))
item("memoryview", lambda: memoryview(bytearray(b"\2")), lambda h: h[0], lambda h: put(h.obj, 0, 7))
item("ctypes", lambda: (ctypes.c_double * 2)(2.0, 3.0), lambda h: h[0], lambda h: put(h, 0))
item("ordered_dict", lambda: collections.OrderedDict(a=2.0), lambda h: h["a"], lambda h: put(h, "a"))
item(
    "ordered_dict_moved",
    lambda: collections.OrderedDict(a=2.0, b=3.0),
    lambda h: next(iter([*h.values()])) if False else [*h.values()][0],  # noqa: RUF015  # an iterator is refused
    lambda h: h.move_to_end("a"),
)
item("default_dict", lambda: collections.defaultdict(float, a=2.0), lambda h: h["a"], lambda h: put(h, "a"))
item("missing_in_a_dict", lambda: {"b": 1.0}, lambda h: h.get("a", 2.0), lambda h: put(h, "a"))
item("counter", lambda: collections.Counter("aab"), lambda h: h["a"], lambda h: h.update("a"))
item("deque", lambda: collections.deque([2.0]), lambda h: h[0], lambda h: put(h, 0))
item("user_dict", lambda: collections.UserDict(a=2.0), lambda h: h["a"], lambda h: put(h, "a"))
item("chain_map", lambda: collections.ChainMap({}, {"a": 2.0}), lambda h: h["a"], lambda h: put(h, "a"))
item("kind_of_list", lambda: Odd([2.0]), lambda h: h[0], lambda h: put(h, 0))
item("kind_of_dict", lambda: Hiding(a=2.0), lambda h: h["a"], lambda h: put(h, "a"))
item("long_list", lambda: [1.0] * 20_000, lambda h: h[15_000], lambda h: put(h, 15_000))
item("long_dict", lambda: dict.fromkeys(range(20_000), 1.0), lambda h: h[15_000], lambda h: put(h, 15_000))
item("many_lists", lambda: [[1.0] for _ in range(3000)], lambda h: h[2500][0], lambda h: put(h[2500], 0))
item("keys_that_are_objects", lambda: {Bare(): 1}, lambda h: [*h][0].n, lambda h: setattr([*h][0], "n", 3.0))  # noqa: RUF015
item("class_behind_the_instance", Bare, lambda h: h.rate, lambda h: setattr(h, "rate", 3.0))
item("getattr", Bare, lambda h: getattr(h, "n"), lambda h: setattr(h, "n", 3.0))  # noqa: B009
item("getattr_with_a_default", Bare, lambda h: getattr(h, "new", 2.0), lambda h: setattr(h, "new", 3.0))
item("hasattr", Bare, lambda h: 2.0 if hasattr(h, "new") else 3.0, lambda h: setattr(h, "new", 3.0))
item("vars", Bare, lambda h: vars(h)["n"], lambda h: setattr(h, "n", 3.0))
item("own_dict", Bare, lambda h: h.__dict__["n"], lambda h: setattr(h, "n", 3.0))
item("method_of_the_instance", Bare, lambda h: h.helper(), lambda h: setattr(h, "helper", lambda: 9.0))
item("cell_behind_a_property", Bare, lambda h: h.twice, lambda h: setattr(h, "n", 3.0))
item("namespace", lambda: types.SimpleNamespace(n=2.0), lambda h: h.n, lambda h: setattr(h, "n", 3.0))
item("proxy", lambda: types.MappingProxyType({"a": 2.0}), lambda h: h["a"], lambda h: put(*_inside(h)))
item("broadcast", lambda: np.broadcast_to(np.full(1, 2.0), (4,)), lambda h: h, lambda h: put(h.base, 0))
item("array_of_no_dimension", lambda: np.array(2.0), lambda h: h, lambda h: put(h, ()))
item("shape", lambda: np.ones(4), lambda h: h.ndim + 1, lambda h: setattr(h, "shape", (2, 2)))
item("every_second", lambda: np.ones(100)[::2], lambda h: h[:4], lambda h: put(h, 0))
item("backwards", lambda: np.ones(4)[::-1], lambda h: h, lambda h: put(h.base, 0))
item("by_columns", lambda: np.ones((3, 4)).T[:, 0], lambda h: h, lambda h: put(h, 0))
item("large_array", lambda: np.ones(100_000), lambda h: h[:4], lambda h: put(h, 0))
item("sum_of_a_large_array", lambda: np.ones(100_000), lambda h: h.sum(), lambda h: put(h, 50_000))
item("large_array_by_columns", lambda: np.ones((300, 300)).T[::2], lambda h: h.sum(), lambda h: put(h, (7, 9)))
item("objects", lambda: np.array([2.0, 3.0], object), lambda h: h[0], lambda h: put(h, 0))
item("list_in_an_array", lambda: np.array([[2.0], None], object), lambda h: h[0][0], lambda h: put(h[0], 0))
item("fields", lambda: np.full(4, 2, "f8,i4"), lambda h: h["f0"], lambda h: put(h["f0"], 0))
item("texts", lambda: np.array(["a", "b"]), lambda h: 2 if h[0] == "a" else 3, lambda h: put(h, 0, "c"))
item("days", lambda: np.array(["2020-01-01"], "M8[D]"), lambda h: h.astype(int)[0], lambda h: put(h, 0, "2021-01-01"))
item("mask", lambda: np.ma.masked_array([1.0, 2]), lambda h: h.mask.sum() + 1, lambda h: put(h, 0, np.ma.masked))
item("records", lambda: np.rec.array([(1.0, 2)], names="a,b"), lambda h: h["a"][0], lambda h: put(h["a"], 0))
item("tensor", lambda: pyop.Tensor(np.full(4, 2.0)), lambda h: h.detach().numpy(), lambda h: put(h.numpy(), 0))


def _inside(proxy):
    (held,) = [x for x in __import__("gc").get_referents(proxy) if type(x) is dict]
    return held, "a"


@case
def method_with_slots():
    held = Slotted(2.0)
    return held.by_method, lambda: setattr(held, "n", 3.0)


@case
def method_and_its_class():
    held = Bare()
    return held.by_method, lambda: setattr(held, "rate", 3.0)


@case
def attribute_of_a_nearer_class():
    return (lambda x: x * Kin().rate), lambda: setattr(Kin, "rate", 3.0)


@case
def attribute_of_a_metaclass():
    class Meta(type):
        k = 2.0

    class Made(metaclass=Meta):
        pass

    return (lambda x: x * Made.k), lambda: setattr(Meta, "k", 3.0)


@case
def method_of_the_class():
    class Local:
        def helper(self):
            return 2.0

    held = Local()
    return (lambda x: x * held.helper()), lambda: setattr(Local, "helper", lambda self: 3.0)


@case
def property_of_the_class():
    class Local:
        k = property(lambda self: 2.0)

    held = Local()
    return (lambda x: x * held.k), lambda: setattr(Local, "k", property(lambda self: 3.0))


@case
def special_method_of_the_class():
    class Local:
        def __len__(self):
            return 2

    held = Local()
    return (lambda x: x * len(held)), lambda: setattr(Local, "__len__", lambda self: 3)


@case
def inherited_method_that_reads():
    held = Kin()
    return (lambda x: x * held.twice), lambda: setattr(held, "n", 3.0)


@case
def defaults_of_a_helper():
    def helper(x, k=2.0):
        return x * k

    return (lambda x: helper(x)), lambda: setattr(helper, "__defaults__", (3.0,))


@case
def defaults_of_its_own():
    def f(x, k=2.0):
        return x * k

    return f, lambda: setattr(f, "__defaults__", (3.0,))


@case
def defaults_by_keyword():
    def helper(x, *, k=2.0):
        return x * k

    return (lambda x: helper(x)), lambda: helper.__kwdefaults__.update(k=3.0)


@case
def code_of_a_helper():
    def helper(x):
        return x * 2

    def other(x):
        return x * 3

    return (lambda x: helper(x)), lambda: setattr(helper, "__code__", other.__code__)


@case
def attribute_by_a_getter():
    held, get = Bare(), operator.attrgetter("n")
    return (lambda x: x * get(held)), lambda: setattr(held, "n", 3.0)


@case
def bound_method_of_a_dict():
    held = {"a": 2.0}
    get = held.get
    return (lambda x: x * get("a")), lambda: put(held, "a")


@case
def view_of_a_dict():
    held = {"a": 2.0}
    values = held.values()
    return (lambda x: x * max(values)), lambda: put(held, "a")


@case
def memo():
    held = {"gain": 2.0}

    @functools.lru_cache
    def gain():
        return held["gain"]

    return (lambda x: x * gain()), lambda: (put(held, "gain"), gain.cache_clear())


@case
def memo_that_was_stale():
    held = {"gain": 2.0}
    gain = functools.lru_cache(lambda: held["gain"])
    gain()
    put(held, "gain", 3.0)
    return (lambda x: x * gain()), gain.cache_clear


@case
def keywords_of_a_partial():
    scaled = functools.partial(lambda x, k: x * k, k=2.0)
    return (lambda x: scaled(x)), lambda: put(scaled.keywords, "k")


@case
def partial_made_another():
    scaled = functools.partial(np.multiply, 2.0)
    return (lambda x: scaled(x)), lambda: scaled.__setstate__((np.add, (2.0,), {}, None))


@case
def class_of_an_instance():
    doubled, tripled = (type("Of", (Bare,), {"of": lambda self, x, k=k: x * k}) for k in (2.0, 3.0))
    held = doubled()
    return (lambda x: held.of(x)), lambda: setattr(held, "__class__", tripled)


@case
def memo_in_a_dict():
    kept: dict[str, Any] = {}

    def f(x):
        if "w" not in kept:
            kept["w"] = 2.0
        return x * kept["w"]

    return f, lambda: put(kept, "w")


@case
def memo_in_an_attribute():
    held = Bare()

    def f(x):
        if not hasattr(held, "table"):
            held.table = np.full(4, 2.0)
        return x * held.table

    return f, lambda: put(held.table, 0)


@case
def cached_property():
    class Local:
        n = 2.0

        @functools.cached_property
        def k(self):
            return self.n

    held = Local()
    return (lambda x: x * held.k), lambda: (setattr(held, "n", 3.0), vars(held).pop("k"))


@case
def weak_reference():
    held = Bare()
    to = weakref.ref(held)
    return (lambda x, held=[held]: x * to().n), lambda: setattr(held, "n", 3.0)


@case
def weak_reference_to_nothing():
    held = [Bare()]
    to = weakref.ref(held[0])
    return (lambda x: x * (2.0 if to() is not None else 3.0)), held.clear


@case
def weak_dictionary():
    held = Bare()
    table = weakref.WeakValueDictionary(a=held)
    return (lambda x: x * table["a"].n), lambda: setattr(held, "n", 3.0)


@case
def module_of_the_user():
    module = types.ModuleType("pyop_test_module")
    module.k = 2.0
    return (lambda x: x * module.k), lambda: setattr(module, "k", 3.0)


@case
def function_of_a_module():
    module = types.ModuleType("pyop_test_module")
    exec("k = 2.0\ndef helper(x):\n    return x * k", vars(module))
    return (lambda x: module.helper(x)), lambda: setattr(module, "k", 3.0)


@case
def attribute_of_a_member():
    class Color(enum.Enum):
        RED = 1

    Color.RED.extra = 2.0
    return (lambda x: x * Color.RED.extra), lambda: setattr(Color.RED, "extra", 3.0)


@case
def environment():
    os.environ["PYOP_TEST_K"] = "2"
    return (lambda x: x * float(os.environ["PYOP_TEST_K"])), lambda: put(os.environ, "PYOP_TEST_K", "3")


@case
def global_that_was_not_there():
    def f(x):
        try:
            return x * NEW_GLOBAL
        except NameError:
            return x

    return f, lambda: put(globals(), "NEW_GLOBAL", 3.0)


@case
def builtin_that_is_hidden():
    return (lambda x: x * abs(-2.0)), lambda: put(globals(), "abs", lambda k: 5.0)


@case
def descriptor():
    class Descriptor:
        k = 2.0

        def __get__(self, instance, owner):
            return self.k

    held = Descriptor()
    local = type("Local", (), {"k": held})()
    return (lambda x: x * local.k), lambda: setattr(held, "k", 3.0)


@case
def attributes_by_a_method():
    class Local:
        def __init__(self):
            self.held = {"k": 2.0}

        def __getattr__(self, name):
            return self.__dict__["held"][name]

    held = Local()
    return (lambda x: x * held.k), lambda: put(held.held, "k")


@case
def attribute_in_a_pattern():
    held = Point(2.0)

    def f(x):
        match held:
            case Point(k=k):
                return x * k

    return f, lambda: setattr(held, "k", 3.0)


@case
def settings_of_errors():
    return (lambda x: x * (2.0 if np.geterr()["over"] == "warn" else 3.0)), lambda: np.seterr(over="ignore")


@case
def settings_of_printing():
    return (lambda x: x * np.get_printoptions()["precision"]), lambda: np.set_printoptions(precision=3)


@case
def object_of_a_library():
    spline = pytest.importorskip("scipy.interpolate").PPoly(np.full((1, 1), 2.0), [0.0, 9.0])
    return (lambda x: x * spline(1.0)), lambda: put(spline.c, (0, 0))


@pytest.fixture
def as_before():
    errors, printing = np.geterr(), np.get_printoptions()
    yield
    np.seterr(**errors)
    np.set_printoptions(**printing)
    for name in ("NEW_GLOBAL", "abs"):
        globals().pop(name, None)
    os.environ.pop("PYOP_TEST_K", None)


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # NumPy 2.5
def test_what_others_change_is_seen(name):
    f, change = CASES[name]()
    compiled = pyop.compile(f)
    before = f(X)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X), before)
    assert compiled.cache_info().hits == 2
    change()
    after = f(X)
    assert not np.array_equal(after, before)
    np.testing.assert_array_equal(compiled(X), after)
    hits = compiled.cache_info().hits
    np.testing.assert_array_equal(compiled(X), after)
    assert compiled.cache_info().hits == hits + 1
