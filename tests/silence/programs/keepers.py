"""Counters in objects of many kinds that a function holds: state that a trace must not keep for ever."""

from __future__ import annotations

import array
import collections
import contextvars
import os
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from . import factory

NUMBER = 0


class Slotted:
    __slots__ = ("n",)


class Table(dict):
    pass


class Row(list):
    pass


def counter(made: Callable[[], Any], count: Callable[[Any], Any]) -> Any:
    """A program that counts its calls in what it holds, and multiplies by the count."""

    def program() -> Any:
        held = made()

        def f(x):
            return x * count(held)

        return f, lambda: None

    return program


def with_number(held: Any) -> Any:
    held.n = 0
    return held


def by_attribute(held: Any) -> Any:
    held.n += 1
    return held.n


def by_item(held: Any) -> Any:
    held["n"] += 1
    return held["n"]


def by_place(held: Any) -> Any:
    held[0] += 1
    return held[0]


def by_length(held: Any) -> Any:
    held.append(1)
    return len(held)


def by_context(held: Any) -> Any:
    held.set(held.get() + 1)
    return held.get()


def by_environment(held: Any) -> Any:
    os.environ[held] = str(int(os.environ.get(held, "0")) + 1)
    return int(os.environ[held])


def by_globals(held: Any) -> Any:
    globals()[held] += 1
    return globals()[held]


def weak_table() -> Any:
    class Key:
        pass

    key = Key()
    return weakref.WeakKeyDictionary({key: 0}), key


def by_weak_key(held: Any) -> Any:
    table, key = held
    table[key] += 1
    return table[key]


for name, made, count in (
    ("counted_in_slots", lambda: with_number(Slotted()), by_attribute),
    ("counted_in_a_namespace", lambda: types.SimpleNamespace(n=0), by_attribute),
    ("counted_in_a_thread", lambda: with_number(threading.local()), by_attribute),
    ("counted_in_a_default_dict", lambda: collections.defaultdict(int), by_item),
    ("counted_in_an_ordered_dict", lambda: collections.OrderedDict(n=0), by_item),
    ("counted_in_a_counter", collections.Counter, by_item),
    ("counted_in_a_user_dict", lambda: collections.UserDict(n=0), by_item),
    ("counted_in_a_chain_map", lambda: collections.ChainMap({"n": 0}), by_item),
    ("counted_in_a_kind_of_dict", lambda: Table(n=0), by_item),
    ("counted_in_a_kind_of_list", Row, by_length),
    ("counted_in_a_user_list", collections.UserList, by_length),
    ("counted_in_bytes", lambda: bytearray(1), by_place),
    ("counted_in_an_array_of_python", lambda: array.array("d", [0]), by_place),
    ("counted_in_a_context", lambda: contextvars.ContextVar("n", default=0), by_context),
    ("counted_by_a_weak_key", weak_table, by_weak_key),
    ("counted_in_the_environment", lambda: f"PYOP_TEST_{os.urandom(8).hex()}", by_environment),
    ("counted_in_globals", lambda: globals().update(NUMBER=0) or "NUMBER", by_globals),
):
    program = counter(made, count)
    program.__name__ = program.__qualname__ = name
    factory("f8[4]")(program)
