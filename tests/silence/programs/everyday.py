"""Programs of everyday Python: classes with slots, enums, generators, memos, patterns, texts, results that share."""

from __future__ import annotations

import bisect
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import itertools
import operator
import types
import weakref
from typing import Any

import numpy as np

from . import factory, program, smooth

HELD = np.arange(4.0)


@dataclasses.dataclass(slots=True)
class Line:
    slope: float = 2.0
    offset: float = 1.0


class Mode(enum.Flag):
    FAST = 1
    SAFE = 2


class Model:
    def __init__(self) -> None:
        self.calls = 0

    @functools.cached_property
    def weights(self) -> Any:
        self.calls += 1
        return np.full(4, float(self.calls))


@factory("f8[4]")
def slots_of_a_dataclass():
    line = Line()
    return (lambda x: x * line.slope + line.offset), lambda: None


@factory("f8[4]", without=("plan",))  # a trace of one call
def slots_that_count():
    line = Line()

    def f(x):
        line.slope += 1
        return x * line.slope

    return f, lambda: line.slope


@smooth("f8[4]")
def flags(x):
    return x * (2 if Mode.FAST in (Mode.FAST | Mode.SAFE) else 3)


@factory("f8[4]")
def a_cached_property():
    model = Model()
    return (lambda x: x * model.weights), lambda: None


@factory("f8[4]")
def a_memo_by_shape():
    kept: dict[int, Any] = {}

    def weights(n):
        if n not in kept:
            kept[n] = np.arange(float(n)) + len(kept)
        return kept[n]

    return (lambda x: x * weights(len(x))), lambda: None


@factory("f8[4]")
def a_memo_of_weak_values():
    kept: Any = weakref.WeakValueDictionary()
    alive: list[Any] = []

    def f(x):
        if "line" not in kept:
            alive.append(Model())
            alive[-1].gain = float(len(alive))
            kept["line"] = alive[-1]
        return x * kept["line"].gain

    return f, lambda: None


@factory("f8[4]")
def a_memo_by_lru_cache():
    gain = functools.lru_cache(lambda: 2.0)
    return (lambda x: x * gain()), lambda: None


@factory("f8[4]", without=("plan",))  # a trace of one call
def written_in_finally():
    count = [0]

    def f(x):
        try:
            return x * (count[0] + 1)
        finally:
            count[0] += 1

    return f, lambda: count


@smooth("f8[4]")
def yielded(x):
    def parts():
        for k in range(3):
            yield x * k

    return sum(parts())


@smooth("f8[4]")
def sent_to_a_generator(x):
    def total():
        found = 0
        while True:
            found = found + (yield found)

    running = total()
    next(running)
    running.send(x)
    return running.send(x * 2)


@factory("f8[4]", without=("plan",))  # a trace of one call
def drawn_from_a_generator():
    counts = itertools.count(1)
    numbers = (2.0 * k for k in counts)
    return (lambda x: x * next(numbers)), lambda: None


@smooth("f8[4]")
def bound_in_an_expression(x):
    return (y := x * 2) + (z := y + 1) * y + z


@program("f8[4]")
def a_pattern_of_the_shape(x):
    match x.shape:
        case (4,):
            return x * 2
        case (n, m):
            return x * n * m


@program("f8[4]")
def a_pattern_of_the_array(x):
    match x:
        case [first, *_]:
            return first * 2
        case np.ndarray():
            return x * 3


@program("f8[4]")
def a_pattern_of_an_object(x):
    match types.SimpleNamespace(k=2.0):
        case types.SimpleNamespace(k=k):
            return x * k


@smooth("f8[4]", "f8[4]")
def stars(*arrays):
    return sum(arrays) * len(arrays)


@smooth("f8[4]")
def recursion(x, n=3):
    return x if n == 0 else recursion(x * 2, n - 1) + x


@factory("f8[4]", without=("plan",))  # a trace of one call
def a_ring():
    ring: Any = collections.deque(maxlen=2)

    def f(x):
        ring.append(len(ring))
        return x * sum(ring)

    return f, lambda: list(ring)


@factory("f8[4]", without=("plan",))  # a trace of one call
def a_heap():
    heap = [3.0, 1.0]
    return (lambda x: x * heapq.heappushpop(heap, 5.0)), lambda: heap


@smooth("f8[4]")
def a_place_in_a_list(x):
    return x * bisect.bisect([1.0, 2.0, 5.0, 9.0], len(x))


@factory("f8[4]", without=("plan",))  # a trace of one call
def a_context_manager_that_counts():
    log: list[int] = []

    @contextlib.contextmanager
    def counted():
        log.append(1)
        yield len(log)
        log.append(2)

    def f(x):
        with counted() as k:
            return x * k

    return f, lambda: log


@factory("f8[4]", without=("plan",))  # a trace of one call
def a_partial_with_state():
    def step(state, x):
        state[0] += 1
        return x * state[0]

    held = [1.0]
    return functools.partial(step, held), lambda: held


@program("f8[4]")
def a_copy_of_an_object(x):
    held = types.SimpleNamespace(x=x)
    return copy.copy(held).x * 2


@program("f8[4]")
def the_same_array(x):
    return x * (2 if x is operator.itemgetter(0)((x, 1)) else 3)


@program("f8[4]", "f8[4]")
def another_array(x, y):
    return x * (2 if x is y else 3)


@program("f8[4]", "f8[4]")
def ids_of_arrays(x, y):
    return x * len({id(x), id(y)})


@program("f8[4]")
def the_text_is_searched(x):
    return x * (2 if "nan" in str(x) else 3)


@program("f8[4]")
def the_text_is_counted(x):
    return x * len(f"{x}")


@program("f8[4]")
def the_text_is_a_key(x):
    return {f"{x.sum()}": x}


@program("f8[4]")
def the_text_is_of_the_shape(x):
    return x * len(f"{x.shape} {x.dtype}")


@program("f8[4]")
def the_text_is_of_an_error(x):
    try:
        raise ValueError(f"not so: {x}")
    except ValueError:
        return x * 2


@program(lambda seed: np.array(["ab", "c"]))
def elements_are_texts(s):
    return np.ones(2) * (2 if isinstance(s[0], str) else 3)


@program(lambda seed: np.array([b"ab", b"c"]))
def elements_are_bytes(s):
    return np.ones(2) * (2 if isinstance(s[0], bytes) else 3)


@program(lambda seed: np.array([1, "a"], dtype=object))
def elements_are_objects(o):
    return np.ones(2) * (2 if isinstance(o[0], int) else 3)


@program("f8[8] step", without=("plan",))  # where equal nodes are one
def two_copies(x):
    return x.ravel(), np.ravel(x)


@program("f8[2,3]", without=("plan",))  # where equal nodes are one
def two_copies_by_columns(x):
    return x.T.ravel(), np.ravel(x.T), x


@program("f8[4]", without=("plan",))  # where equal nodes are one
def views_of_what_is_held(x):
    return HELD[1:], HELD[::2], x * 2


@program("f8[4]", without=("plan",))  # where equal nodes are one
def one_result_twice(x):
    made = np.ones(2)
    return made, made, (y := x * 2), y


@program(lambda seed: collections.OrderedDict(a=np.ones(2) * seed))
def an_ordered_dict(d):
    return d["a"] * 2


@program(lambda seed: np.arange(4).astype("M8[D]") + seed)
def days(d):
    return (d - d[0]).astype("m8[s]") + np.timedelta64(1, "D")


@program(lambda seed: np.array([(seed, 2), (3, 4)], [("a", "f8"), ("b", "i4")]))
def fields(s):
    return s["a"] * 2 + s["b"]
