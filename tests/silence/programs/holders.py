"""Arguments in containers and objects: what is written in them is seen by the caller."""

from __future__ import annotations

import dataclasses
from array import array as array_of_python
from collections import OrderedDict, namedtuple

import numpy as np

from ..arguments import array
from . import program

Params = namedtuple("Params", "w b")


@dataclasses.dataclass
class State:
    x: object
    v: object


@dataclasses.dataclass(frozen=True)
class Fixed:
    w: object


class Model:
    def __init__(self, w):
        self.w = w
        self.calls = 0

    def predict(self, x):
        return x * self.w

    def learn(self, x):
        self.w -= 0.1 * x
        return self.w.sum()

    def predict_and_count(self, x):
        self.calls += 1
        return x * self.w


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


def one(seed):
    return array("f8[3]", seed)


def a_list(seed):
    return [one(seed), one(seed + 1)]


def a_tuple(seed):
    return one(seed), one(seed + 1)


def a_dict(seed):
    return {"w": one(seed), "b": one(seed + 1)}


def a_nest(seed):
    return {"layers": [{"w": one(seed)}, {"w": one(seed + 1)}], "scale": 2.0}


def a_named_tuple(seed):
    return Params(one(seed), one(seed + 1))


def a_state(seed):
    return State(one(seed), one(seed + 1))


def a_fixed(seed):
    return Fixed(one(seed))


def a_model(seed):
    return Model(one(seed))


def a_slotted(seed):
    return Slotted(one(seed))


def numbers(seed):
    return [float(e) for e in one(seed)]


def a_python_array(seed):
    return array_of_python("d", numbers(seed))


def shared(seed):
    a = one(seed)
    return [a, a]


def a_mixed_list(seed):
    return [one(seed), 2.5, "text", None, True]


@program(a_list)
def list_read(p):
    return p[0] * p[1], len(p)


@program(a_list)
def list_item_augmented(p):
    p[0] += 1
    return p[0] * p[1]


@program(a_list)
def list_item_replaced(p):
    p[0] = p[1] * 2
    return p[0] + p[1]


@program(a_list)
def list_appended(p):
    p.append(p[0] * 2)
    return p[-1]


@program(a_list)
def list_popped(p):
    return p.pop() * 2


@program(a_list)
def list_reversed(p):
    p.reverse()
    return p[0] - p[1]


@program(a_list)
def list_returned(p):
    return p


@program(a_list)
def list_extended_by_assignment(p):
    p += [1.0]
    return len(p)


@program(a_tuple)
def tuple_item_written(p):
    p[0][...] = 1
    return p[0] + p[1]


@program(a_tuple)
def tuple_unpacked_and_written(p):
    a, b = p
    a += b
    return a.sum()


@program(a_dict)
def dict_read(p):
    return p["w"] * 2 + p.get("b", 0)


@program(a_dict)
def dict_item_augmented(p):
    p["w"] += p["b"]
    return p["w"] * 1


@program(a_dict)
def dict_item_replaced(p):
    p["w"] = p["w"] - 0.1
    return p["w"].sum()


@program(a_dict)
def dict_item_added(p):
    p["new"] = p["w"] * 2
    return p["new"]


@program(a_dict)
def dict_updated(p):
    p.update(w=p["b"])
    return p["w"] * 1


@program(a_dict)
def dict_popped(p):
    return p.pop("w") * 2


@program(a_dict)
def dict_setdefault(p):
    return p.setdefault("c", p["w"] * 2) + p["w"]


@program(a_dict)
def dict_comprehension(p):
    return {k: v * 2 for k, v in p.items()}


@program(a_dict)
def dict_step(p):
    for k in p:
        p[k] -= 0.1 * p[k]
    return


@program(a_dict)
def dict_returned(p):
    return p


@program(a_nest)
def nest_read(p):
    x = 1.0
    for layer in p["layers"]:
        x = x * layer["w"] * p["scale"]
    return x


@program(a_nest)
def nest_written(p):
    for layer in p["layers"]:
        layer["w"] += 1
    return p["layers"][0]["w"] * 1


@program(a_nest)
def nest_replaced(p):
    for layer in p["layers"]:
        layer["w"] = layer["w"] * p["scale"]
    p["scale"] = 3.0
    return p["layers"][0]["w"]


@program(a_named_tuple)
def named_tuple_read(p):
    return p.w * 2 + p.b, p._replace(w=p.b)


@program(a_named_tuple)
def named_tuple_written(p):
    p.w[0] = 5
    return p.w + p.b


@program(a_state)
def dataclass_read(s):
    return State(s.x + s.v, s.v * 0.5)


@program(a_state)
def dataclass_replaced(s):
    return dataclasses.replace(s, x=s.x + s.v)


@program(a_state)
def dataclass_augmented(s):
    s.x += s.v
    return s.x * 1


@program(a_state)
def dataclass_assigned(s):
    s.x = s.x + s.v
    return s


@program(a_fixed, "f8[3]")
def frozen_dataclass_read(p, x):
    return x * p.w


@program(a_fixed, "f8[3]")
def frozen_dataclass_written(p, x):
    p.w[...] = x
    return p.w * 1


@program(a_model, "f8[3]")
def object_read(m, x):
    return m.predict(x)


@program(a_model, "f8[3]")
def object_attribute_written(m, x):
    return m.learn(x)


@program(a_model, "f8[3]")
def object_counts(m, x):
    return m.predict_and_count(x) + m.calls


@program(a_model, "f8[3]")
def object_attribute_replaced(m, x):
    m.w = x * 2
    return m.predict(x)


@program(a_model, "f8[3]")
def object_attribute_added(m, x):
    m.last = x * 2
    return m.last + 1


@program(a_slotted, "f8[3]")
def slots_read(m, x):
    return m.w * x


@program(a_slotted, "f8[3]")
def slots_augmented(m, x):
    m.w += x
    return m.w * 1


@program(numbers)
def list_of_numbers(p):
    return p[0] * p[1] + p[2], sum(p)


@program(numbers)
def list_of_numbers_as_an_array(p):
    return np.array(p) * 2, np.mean(p)


@program(numbers)
def list_of_numbers_sorted(p):
    p.sort()
    return p[0]


@program(numbers)
def list_of_numbers_replaced(p):
    p[0] = 2 * p[1]
    return p[0]


@program(a_python_array)
def array_of_python_read(p):
    return np.asarray(p) * 2


@program(a_python_array)
def array_of_python_written(p):
    p[0] = 5.0
    return p[0] + p[1]


@program(shared)
def one_array_in_two_places(p):
    p[0] += 1
    return p[1] * 1


@program(shared, without=("compile", "unoptimized"))  # each place is an input of its own
def one_array_in_two_places_checked(p):
    return p[0] * (2 if p[0] is p[1] else 3)


@program(a_mixed_list)
def mixed_list(p):
    return p[0] * p[1] * (2 if p[2] == "text" else 3) * (2 if p[3] is None else 3) * (2 if p[4] is True else 3)


@program(lambda seed: OrderedDict(b=one(seed), a=one(seed + 1)))
def ordered_dict(p):
    return next(iter(p.values())) * 2, list(p)


@program(lambda seed: bytearray(one(seed).tobytes()))
def bytes_written(p):
    np.frombuffer(p)[0] = 5.0
    return np.frombuffer(p).sum()


@program(lambda seed: {int(k): one(seed) for k in range(2)})
def dict_with_integer_keys(p):
    return p[0] * 2 + p[1]


@program(lambda seed: [[1.0, 2.0], [3.0, float(seed)]])
def nested_list_as_a_matrix(p):
    return np.asarray(p) @ np.ones(2)


@program(lambda seed: slice(seed % 2, 3), "f8[4]")
def slice_argument(s, x):
    return x[s] * 2


@program(lambda seed: np.dtype("f4" if seed % 2 else "f8"), "f8[3]")
def dtype_argument(t, x):
    return x.astype(t) * 2


@program(lambda seed: np.sin if seed % 2 else np.cos, "f8[3]")
def function_argument(f, x):
    return f(x)


@program(lambda seed: np.random.default_rng(seed), "f8[3]")
def generator_argument(rng, x):
    return x + rng.normal(size=3)


@program(lambda seed: range(seed + 1), "f8[3]")
def range_argument(r, x):
    return x * len(r) + sum(r)


@program(lambda seed: iter([1.0, 2.0, 3.0]), "f8[3]")
def iterator_argument(it, x):
    return x * next(it) + sum(it)


@program(lambda seed: {"a", "b"} if seed % 2 else {"a"}, "f8[3]")
def set_argument(s, x):
    return x * len(s)


@program("f8[3]", "f8[3]")
def star_arguments(*args):
    total = 0.0
    for a in args:
        total = total + a
    return total


@program("f8[3]", "f8[3]")
def star_arguments_written(*args):
    args[0][...] += 1
    return args[1] * 1
