"""State outside of the arguments, read and written by functions that are called again."""

from __future__ import annotations

import functools
import random

import numpy as np

from . import factory, program, smooth

SCALE = 2.0
TABLE = np.arange(4.0)


@smooth("f8[4]")
def global_number_read(x):
    return x * SCALE


@smooth("f8[4]")
def global_array_read(x):
    return x * TABLE


@factory("f8[4]")
def global_array_written():
    TABLE[:] = np.arange(4.0)

    def f(x):
        TABLE[0] += 1
        return x * TABLE

    return f, lambda: TABLE


@factory("f8[4]")
def global_array_written_from_the_argument():
    TABLE[:] = np.arange(4.0)

    def f(x):
        TABLE[:] = x
        return x * 2

    return f, lambda: TABLE


@factory("f8[4]")
def closure_array_written():
    total = np.zeros(4)

    def f(x):
        nonlocal total
        total += x
        return total * 2

    return f, lambda: total


@factory("f8[4]")
def closure_array_as_out():
    buffer = np.zeros(4)

    def f(x):
        np.multiply(x, 2, out=buffer)
        return buffer + 1

    return f, lambda: buffer


@factory("f8[4]")
def closure_array_copied_onto():
    buffer = np.zeros(4)

    def f(x):
        np.copyto(buffer, x)
        return buffer.sum()

    return f, lambda: buffer


@factory("f8[4]")
def default_array_written():
    def f(x, cache=np.zeros(4)):  # noqa: B008
        cache += x
        return cache * 1

    return f, lambda: f.__defaults__[0]


@factory("f8[4]", without=("op",))  # a parameter of an op is an array
def default_list_appended():
    def f(x, seen=[]):  # noqa: B006
        seen.append(1)
        return x * len(seen)

    return f, lambda: len(f.__defaults__[0])


@factory("f8[4]")
def list_of_results():
    seen = []

    def f(x):
        y = x * 2
        seen.append(y)
        return y

    return f, lambda: seen


@factory("f8[4]")
def list_of_numbers():
    seen = []

    def f(x):
        seen.append(float(x.sum()))
        return x * 2

    return f, lambda: seen


@factory("f8[4]")
def counter_in_a_list():
    n = [0]

    def f(x):
        n[0] += 1
        return x * n[0]

    return f, lambda: n


@factory("f8[4]")
def counter_nonlocal():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f, lambda: n


@factory("f8[4]")
def counter_of_a_global():
    names = {"n": 0}
    exec("def f(x):\n    global n\n    n += 1\n    return x * n\n", names)
    return names["f"], lambda: names["n"]


@factory("f8[4]")
def counter_in_an_attribute():
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        return x * f.calls

    return f, lambda: getattr(f, "calls", 0)


@factory("f8[4]")
def counter_in_an_object():
    class Layer:
        calls = 0

        def __call__(self, x):
            self.calls += 1
            return x * self.calls

    layer = Layer()
    return lambda x: layer(x), lambda: layer.calls


@factory("f8[4]")
def attribute_kept():
    class Smoother:
        def __init__(self):
            self.last = np.zeros(4)

        def step(self, x):
            self.last = 0.5 * self.last + 0.5 * x
            return self.last * 1

    s = Smoother()
    return lambda x: s.step(x), lambda: s.last


@factory("f8[4]")
def attribute_kept_in_place():
    class Smoother:
        def __init__(self):
            self.last = np.zeros(4)

        def step(self, x):
            self.last *= 0.5
            self.last += 0.5 * x
            return self.last * 1

    s = Smoother()
    return lambda x: s.step(x), lambda: s.last


@factory("f8[4]")
def class_attribute_written():
    class Counter:
        total = np.zeros(4)

    def f(x):
        Counter.total += 1
        return x + Counter.total

    return f, lambda: Counter.total


@factory("f8[4]")
def remembered_in_a_dict():
    memo = {}

    def f(x):
        if "first" not in memo:
            memo["first"] = x * 1
        return x - memo["first"]

    return f, lambda: memo


@factory("f8[4]")
def remembered_by_a_key():
    memo = {}

    def f(x):
        key = x.shape
        if key not in memo:
            memo[key] = np.arange(4.0)
        return x * memo[key]

    return f, lambda: memo


@factory("f8[4]")
def remembered_by_lru_cache():
    @functools.lru_cache
    def weights(n):
        return np.arange(float(n))

    def f(x):
        return x * weights(len(x))

    return f, lambda: None


@factory("f8[4]")
def remembered_by_lru_cache_of_an_element():
    @functools.lru_cache
    def twice(e):
        return e * 2

    def f(x):
        return twice(x[0]) + twice(x[1])

    return f, lambda: None


@factory("f8[4]")
def remembered_property():
    class Grid:
        def __init__(self, x):
            self.x = x

        @functools.cached_property
        def squared(self):
            return self.x**2

    def f(x):
        g = Grid(x)
        return g.squared + g.squared

    return f, lambda: None


@factory("f8[4]")
def generator_kept():
    counts = iter(range(100))

    def f(x):
        return x * next(counts)

    return f, lambda: None


@program("f8[4]")
def random_of_the_global_generator(x):
    return x + np.random.rand(4)


@program("f8[4]")
def random_normal_of_the_global_generator(x):
    return x * np.random.normal()


@program("f8[4]")
def random_choice_of_the_global_generator(x):
    return x[np.random.randint(4)]


@program("f8[4]")
def random_of_python(x):
    return x * random.random()


@program("f8[4]")
def random_seeded_inside(x):
    np.random.seed(7)
    return x + np.random.rand(4)


@program("f8[4]")
def random_of_a_new_generator(x):
    return x + np.random.default_rng(5).normal(size=4)


@factory("f8[4]")
def random_of_a_captured_generator():
    rng = np.random.default_rng(5)

    def f(x):
        return x + rng.normal(size=4)

    return f, lambda: None


@factory("f8[4]")
def random_of_a_captured_state():
    rng = np.random.RandomState(5)

    def f(x):
        return x * rng.uniform()

    return f, lambda: None


@factory("f8[4]")
def dropout_by_a_captured_generator():
    rng = np.random.default_rng(5)

    def f(x):
        keep = rng.random(x.shape) < 0.5
        return np.where(keep, x, 0.0)

    return f, lambda: None


@program("f8[4]")
def print_options_inside(x):
    with np.printoptions(precision=2):
        text = str(np.arange(2.0))
    return x * len(text)


@program("f8[4]")
def errors_read_inside(x):
    return x * (2 if np.geterr()["over"] == "warn" else 3)


@factory("f8[4]")
def captured_array_aliased():
    table = np.arange(4.0)

    def f(x):
        t = table
        t = t + x
        return t, table

    return f, lambda: table


@factory("f8[4]")
def captured_array_returned():
    table = np.arange(4.0)
    return (lambda x: (table, x * 2)), lambda: table


@factory("f8[4]")
def captured_array_view_written():
    table = np.arange(4.0)

    def f(x):
        row = table[1:]
        row[0] = 9
        return x * table

    return f, lambda: table


@factory("f8[4]")
def captured_array_sorted():
    table = np.arange(4.0)[::-1].copy()

    def f(x):
        table.sort()
        return x * table

    return f, lambda: table


@factory("f8[4]")
def captured_array_filled():
    table = np.arange(4.0)

    def f(x):
        table.fill(len(x))
        return x * table

    return f, lambda: table


@factory("f8[4]")
def captured_dict_of_arrays():
    weights = {"w": np.ones(4), "b": np.zeros(4)}

    def f(x):
        weights["b"] += 1
        return x * weights["w"] + weights["b"]

    return f, lambda: weights


@factory("f8[4]")
def captured_dict_replaced():
    weights = {"w": np.ones(4)}

    def f(x):
        weights["w"] = weights["w"] * 2
        return x * weights["w"]

    return f, lambda: weights


@factory("f8[4]")
def captured_list_extended_by_arrays():
    rows = [np.ones(4)]

    def f(x):
        rows.append(rows[-1] + 1)
        return x * rows[-1]

    return f, lambda: rows


@factory("f8[4]")
def captured_number_in_a_cell_read():
    k = 3.0

    def f(x):
        return x * k

    return f, lambda: k


@factory("f8[4]")
def counters_of_itertools():
    import itertools

    count = itertools.count(1)
    return (lambda x: x * next(count)), lambda: None


@factory("f8[4]")
def set_of_shapes():
    seen = set()

    def f(x):
        new = x.shape not in seen
        seen.add(x.shape)
        return x * (1 + new)

    return f, lambda: len(seen)


@program("f8[4]")
def sorted_keys_of_a_local_dict(x):
    d = {}
    for k in range(3):
        d[k] = x[k] * 2
    return [d[k] for k in sorted(d)]


@program("f8[4]")
def local_lists_grow(x):
    rows = []
    for k in range(3):
        rows.append(x * k)
    return np.stack(rows)
