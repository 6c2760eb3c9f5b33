"""Other names for an array: what is written by one is seen by all."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from . import program, smooth

Pair = namedtuple("Pair", "low high")


@smooth("f8[4]")
def second_name(x):
    y = x * 1.0
    z = y
    z += 1
    return y


@smooth("f8[4]")
def second_name_scaled(x):
    y = x * x
    z = y
    z *= 3.0
    return y.sum()


@smooth("f8[4]")
def three_names(x):
    a = b = c = x + 1
    a += x
    b *= 2
    c -= 1
    return a, b.sum()


@smooth("f8[4]")
def chained_names_rebound(x):
    y = x * 2
    z = y
    y = y + 1
    z += 5
    return y, z


@smooth("f8[5]")
def swapped_names(x):
    a, b = x[:2] * 1, x[2:4] * 1
    a, b = b, a
    a += 10
    return a, b


@smooth("f8[4]")
def in_a_list(x):
    parts = [x * 1, x * 2]
    first = parts[0]
    parts[0] += 1
    return first, parts


@smooth("f8[4]")
def in_a_list_through_a_loop(x):
    parts = [x * 1, x * 2]
    for part in parts:
        part += 1
    return parts[0] + parts[1]


@smooth("f8[4]")
def in_a_dict(x):
    d = {"a": x * 1}
    y = d["a"]
    d["a"] += x
    return y


@smooth("f8[4]")
def in_dict_values(x):
    d = {"a": x * 1, "b": x * 2}
    for v in d.values():
        v *= 2
    return d["a"] + d["b"]


@smooth("f8[4]")
def in_a_tuple(x):
    t = (x * 1,)
    (y,) = t
    y += 1
    return t[0]


@smooth("f8[4]")
def in_a_named_tuple(x):
    p = Pair(x * 1, x * 2)
    low = p.low
    low += 1
    return p.low * p.high


@smooth("f8[4]")
def in_a_namespace(x):
    s = SimpleNamespace(v=x * 1)
    y = s.v
    s.v += 1
    return y


class Model:
    def __init__(self, v):
        self.v = v

    def step(self):
        self.v += 1
        return self

    def reset(self):
        self.v[...] = 0


class Slotted:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


@dataclasses.dataclass
class State:
    position: object
    speed: object

    def move(self, dt):
        self.position += self.speed * dt


@smooth("f8[4]")
def attribute_by_method(x):
    y = x * 1
    m = Model(y)
    m.step().step()
    return y


@smooth("f8[4]")
def attribute_in_slots(x):
    y = x * 1
    s = Slotted(y)
    s.v += 2
    return y * s.v


@smooth("f8[4]")
def attribute_of_dataclass(x):
    start = x * 1
    state = State(start, x * 2)
    for _ in range(3):
        state.move(0.5)
    return start


@smooth("f8[4]")
def attribute_set_to_zero(x):
    y = x * 1
    Model(y).reset()
    return y + x


def normalise(a):
    a -= a.mean()
    a /= 2.0


@smooth("f8[4]")
def by_a_helper(x):
    y = x * 1
    normalise(y)
    return y


@smooth("f8[4]")
def by_a_helper_on_a_view(x):
    y = x * 1
    normalise(y[:2])
    return y


@smooth("f8[4]")
def by_a_helper_on_the_argument(x):
    normalise(x)
    return x


@smooth("f8[4]")
def by_a_nested_function(x):
    y = x * 1

    def add(k):
        nonlocal y
        y += k

    z = y
    add(1)
    add(2)
    return z


@smooth("f8[4]")
def by_a_closure(x):
    y = x * 1

    def bump():
        y[0:2] += 5

    bump()
    return y


def stepped(x, out):
    out += x
    return out


@smooth("f8[4]")
def by_a_default(x):
    y = x * 1
    g = lambda k, a=y: stepped(k, a)
    g(x)
    g(x)
    return y


@smooth("f8[4]")
def by_a_lambda_in_place(x):
    y = x * 1
    (lambda a: a.__iadd__(1))(y)
    return y


@smooth("f8[3,2]")
def rows_of_a_loop(x):
    y = x * 1.0
    for row in y:
        row += 1
    return y


@smooth("f8[3,2]")
def rows_in_a_comprehension(x):
    y = x * 1.0
    [row.__iadd__(1) for row in y]
    return y


@smooth("f8[3,2]")
def rows_enumerated(x):
    y = x * 1.0
    for k, row in enumerate(y):
        row *= k
    return y


@smooth("f8[3,2]")
def rows_unpacked(x):
    y = x * 1.0
    a, b, c = y
    b += a
    c -= b
    return y


@smooth("f8[3,2]")
def rows_zipped(x):
    y, z = x * 1.0, x * 2.0
    for a, b in zip(y, z, strict=True):
        a += b
    return y


def rows_of(a):
    yield from a


@smooth("f8[3,2]")
def rows_of_a_generator(x):
    y = x * 1.0
    for row in rows_of(y):
        row += 1
    return y


@smooth("f8[3,2]")
def rows_reversed(x):
    y = x * 1.0
    for k, row in enumerate(reversed(y)):
        row -= k
    return y


@smooth("f8[3,2]")
def rows_in_a_list(x):
    y = x * 1.0
    rows = list(y)
    rows[0] += rows[1]
    return y


@smooth("f8[3,2]")
def first_row_by_next(x):
    y = x * 1.0
    row = next(iter(y))
    row += 1
    return y


@smooth("f8[4]")
def elements_of_a_loop_rebind(x):
    y = x * 1.0
    total = 0.0
    for e in y:
        e += 1
        total = total + e
    return y, total


@smooth("f8[4]")
def walrus(x):
    if (y := x * 1.0) is not None:
        z = y
        z += 1
    return y


@smooth("f8[4]")
def map_over_parts(x):
    y = x * 1.0
    list(map(lambda part: part.__imul__(2), [y[:2], y[2:]]))  # noqa: C417
    return y


@smooth("f8[4]")
def operator_module(x):
    import operator

    y = x * 1.0
    z = y
    y = operator.iadd(y, 1)
    y = operator.imul(y, x)
    return z


@smooth("f8[4]")
def accumulated_in_place(x):
    total = np.zeros_like(x)
    kept = total
    for k in range(3):
        total += x * k
    return kept


@smooth("f8[4]")
def accumulated_from_the_first(x):
    parts = [x * 1, x * 2, x * 3]
    total = parts[0]
    for part in parts[1:]:
        total += part
    return parts[0], total


@smooth("f8[4]")
def sum_of_a_list_is_new(x):
    parts = [x * 1, x * 2]
    total = sum(parts)
    total += 1
    return parts, total


@smooth("f8[4]")
def old_and_new(x):
    old = x * 1.0
    new = old
    for _ in range(3):
        new += 0.5 * old
    return new - old


@smooth("f8[4]")
def old_copied(x):
    y = x * 1.0
    old = y.copy()
    y += 1
    return y - old


@smooth("f8[4]")
def old_by_positive_is_new(x):
    y = x * 1.0
    old = +y
    y += 1
    return old


@smooth("f8[4]")
def old_by_asarray_is_the_same(x):
    y = x * 1.0
    old = np.asarray(y)
    y += 1
    return old


@smooth("f8[4]")
def old_by_np_array_is_new(x):
    y = x * 1.0
    old = np.array(y)
    y += 1
    return old


@smooth("f8[4]")
def old_by_astype_is_new(x):
    y = x * 1.0
    old = y.astype(float)
    same = y.astype(float, copy=False)
    y += 1
    return old, same


@smooth("f8[4]")
def old_in_a_slice_of_a_list(x):
    parts = [x * 1.0]
    saved = parts[:]
    parts[0] -= 1
    return saved[0]


@smooth("f8[4]")
def argument_under_another_name(x):
    y = x
    y *= 2
    return y.sum()


@smooth("f8[4]")
def argument_and_a_new_name(x):
    y = x
    x = x + 1
    y -= 1
    return x, y


@smooth("f8[4]", "f8[4]")
def one_of_two_by_a_branch(x, z):
    y = x if len(x) > 2 else z
    y += 1
    return x + z


@program("i8[4]")
def integers_by_two_names(x):
    y = x * 2
    z = y
    z //= 3
    z <<= 1
    return y


@program("b1[4]", "b1[4]")
def booleans_by_two_names(x, w):
    y = x & w
    z = y
    z |= w
    z ^= True
    return y


@smooth("f8[4]")
def by_a_scalar_of_numpy(x):
    y = x * 1
    z = y
    y += np.int8(3)
    y *= np.float32(0.5)
    return z


@program("c16[4]")
def complex_by_two_names(x):
    y = x * 1
    z = y
    z *= x
    z += 1j
    return y
