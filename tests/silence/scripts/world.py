"""The text of a script: what stands around the function, by chance, and what changes between two calls."""

from __future__ import annotations

import random

CLASSES = {
    "Point": """
@dataclass{options}
class Point:
    a: object
    b: object = 2.0
    {field}
    {post}
    def norm(self):
        return np.sqrt(np.sum(self.a * self.a)) + self.b
    @property
    def double(self):
        return self.a * 2
""",
    "Pair": """
class Pair(NamedTuple):
    a: object
    b: object = 2.0
    def norm(self):
        return np.sum(self.a) * self.b
    @property
    def double(self):
        return self.a * 2
""",
    "Plain": """
class Plain:
    {slots}
    kind = {number}
    def __init__(self, a, b=2.0):
        self.a, self.b = a, b
    def norm(self):
        return np.max(self.a) - self.b
    @property
    def double(self):
        return self.a + self.a * self.kind if hasattr(self, "kind") else self.a
""",
    "Attr": """
class Scaled:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name) * {number}
    def __set__(self, obj, value):
        setattr(obj, self.name, value)
class Attr:
    b = Scaled()
    def __init__(self, a, b=2.0):
        self.a, self.b = a, b
    def norm(self):
        return self.a.sum() + self.b
    @functools.cached_property
    def double(self):
        return self.a * self.b
""",
    "Bag": """
class Bag(dict):
    def __init__(self, a, b=2.0):
        dict.__init__(self, a=a, b=b)
        self.more = {number}
    def __missing__(self, key):
        return {number}
    a = property(lambda self: self["a"], lambda self, v: self.__setitem__("a", v))
    b = property(lambda self: self["b"], lambda self, v: self.__setitem__("b", v))
    def norm(self):
        return np.mean(self["a"]) * self["c"]
    @property
    def double(self):
        return self["a"] * self.more
""",
}
HEAD = """
import contextlib, functools, itertools, json, math, operator, os, random, sys
import os as system
from pathlib import Path
from dataclasses import dataclass, field, replace
from typing import NamedTuple
import numpy as np
import numpy as num
import pyop
from numpy import tanh, exp as grow
from math import floor as down
act, red, SCALE, MODE, TABLE = np.{ufunc}, {reduction}, {number}, {number}, [{number}, {number}]
WAYS = {{"f": np.{ufunc2}, "g": math.floor, "n": {number}}}
LOG = []
class State:
    act = np.{ufunc}
    n = {number}
state = State()
def helper(v, act=np.{ufunc2}):
    return act(v) * SCALE
def make(act, k):
    def inner(v):
        return act(v) + k
    def bind(new):
        nonlocal act
        act = new
    return inner, bind
inner, bind = make(np.{ufunc}, {number})
part = functools.partial(helper, act=np.{ufunc2})
dice, roll, count = random.Random(3), random.Random(4).random, itertools.count().__next__
DRAWS = np.random.default_rng(5)
class Dirty(pyop.Function):
    @staticmethod
    def forward(ctx, v):
        v += {number}
        ctx.mark_dirty(v)
        return v
    @staticmethod
    def backward(ctx, ct):
        return ct
class Noisy(pyop.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.mask = DRAWS.normal(size=v.shape)
        return v * ctx.mask
    @staticmethod
    def backward(ctx, ct):
        return ct * ctx.mask
class Seen(pyop.Function):
    seen = 0
    @staticmethod
    def forward(ctx, v):
        Seen.seen += 1
        return v * SCALE
    @staticmethod
    def backward(ctx, ct):
        return ct * SCALE
@contextlib.contextmanager
def scaled(by):
    LOG.append("in")
    yield by
    LOG.append("out")
"""
UFUNCS = ("sin", "cos", "tanh", "exp", "square", "abs", "negative", "sqrt")
# Statements of the world between two calls; `{p}` is the name of the script's own module.
CHANGES = (
    "act = np.{ufunc}",
    "act = helper",
    "red = {reduction}",
    "SCALE = {number}",
    "SCALE = np.float64({number})",
    "TABLE[0] = {number}",
    "TABLE = [{number}, {number}]",
    "WAYS['f'] = np.{ufunc}",
    "WAYS['n'] = {number}",
    "WAYS['g'] = math.ceil",
    "state.act = np.{ufunc}",
    "State.act = np.{ufunc}",
    "state = State()",
    "state.n = {number}",
    "State.n = {number}",
    "helper.__defaults__ = (np.{ufunc},)",
    "bind(np.{ufunc})",
    "down = math.ceil",
    "tanh = np.{ufunc}",
    "grow = math.exp",
    "cfg.scale = {number}",
    "cfg.act = np.{ufunc}",
    "cfg.sub.n = {number}",
    "sys.modules[cfg.__name__] = new_cfg(np.{ufunc}, {number})",
    "part = functools.partial(helper, act=np.{ufunc})",
    "num = FAKE",
    "abs = np.{ufunc}",
    "len = lambda x: {integer}",
    "Point.kind = {number}",
    "del state.n",
    "Path(PATH).write_text('{number}'.replace('True', '7'))",
    "Path(PATH).write_text('{integer}')",
    "os.environ['A_SCRIPT'] = '{integer}'",
    "dice.seed({integer})",
    "roll = random.Random({integer}).random",
    "pass",
)


def filled(text: str, chance: random.Random) -> str:
    """The text with a draw of its own for each of its places."""
    draws = {
        "{ufunc}": lambda: chance.choice(UFUNCS),
        "{ufunc2}": lambda: chance.choice(UFUNCS),
        "{reduction}": lambda: chance.choice(("max", "min", "sum", "np.sum", "np.max", "np.mean")),
        "{number}": lambda: chance.choice(("2", "3.5", "-1", "0.25", "True", "0", "1")),
        "{integer}": lambda: chance.choice(("1", "2", "3")),
        "{options}": lambda: chance.choice(("", "", "(slots=True)", "(frozen=True)", "(eq=False)", "(kw_only=False)")),
        "{field}": lambda: chance.choice(
            ("c: object = field(default=3, init=False)", "c: list = field(default_factory=list)", "c: object = None")
        ),
        "{post}": lambda: chance.choice(
            (
                "",
                "def __post_init__(self):\n        LOG.append('made')",
                "def __post_init__(self):\n        object.__setattr__(self, 'a', self.a * 2)",
            )
        ),
        "{slots}": lambda: chance.choice(("", "__slots__ = ('a', 'b')")),
    }
    for place, draw in draws.items():
        while place in text:
            text = text.replace(place, draw(), 1)
    return text


def around(chance: random.Random) -> tuple[str, str]:
    """The text before the function, and the name of its class."""
    name = chance.choice(list(CLASSES))
    text = filled(CLASSES[name], chance)
    if name == "Plain" and "__slots__" in text:
        text = text.replace("kind = ", "other = ")
    return filled(HEAD.replace("{{", "{").replace("}}", "}"), chance) + text, name


def change(chance: random.Random) -> str:
    return filled(chance.choice(CHANGES), chance)
