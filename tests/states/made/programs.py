"""A random program: a class, or a function whose closure has the same names, and what is done with several of them.

All names that are state are attributes in the text (``self.v``); for a closure they are variables (``v``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

STATE = ("v", "w", "m", "k", "n", "flag", "mode", "last", "items", "table", "child")

# One line each; {a} and {b} are arrays of the state, {i} an index.
STATEMENTS = """
self.{a} = self.{a} + x
self.{a} += x
self.{a} = self.{a} * self.k + self.n
self.{a} -= self.{b}
self.{a}[{i}] = x[{i}]
self.{a}[{i}] += 1
self.{a}[1:] *= 0.5
self.{a}[x > 0] += 1
self.{a}[self.{b} > 0.5] = self.k
self.{a}[:] = x
self.{a}.fill(0.25)
self.{a}.sort()
np.add(self.{a}, x, out=self.{a})
np.multiply(self.{a}, 0.5, out=self.{b})
self.n += 1
self.n = self.n + 2
self.n -= 1; self.n *= 2
self.n = self.n % 5
self.n += True
self.n = len(x) + self.n
self.k = self.k * 0.5 + 1.0
self.k += 0.1
self.k = self.{a}.sum()
self.k = float(self.k) + 1
self.k = self.n / 2
self.flag = not self.flag
self.flag = self.n > 3
self.mode = "b" if self.mode == "a" else "a"
self.last = x
self.last = x * self.k
self.last = self.{a}
self.last = None
self.last = (x, self.{a})
self.last = [x, self.{a} * 1]
self.{a}, self.{b} = self.{b}, self.{a}
self.{a} = self.{b}
self.{a} = self.{b} * 1
self.{a} = self.{b}[::-1]
self.{a} = x
self.{a} = x[:]
self.{a} = np.zeros(4)
self.{a} = np.where(x > 0, self.{a}, self.{b})
self.{a} = np.zeros_like(x); self.{a}[{i}] = self.k
self.m = np.outer(self.{a}, x)
self.m[{i}] = x
self.m[:, 0] += self.{a}
self.m = self.m @ self.m.T * 0.1
self.m = self.m.T
self.items[0] = self.items[0] + x
self.items[1] += x
self.items[0][{i}] = 7
self.items.append(x)
self.items = [self.{a}, x * 2]
self.table["p"] = x * self.k
self.table["q"] += 1
self.table["q"] = self.table["q"] * 1
self.child.w = self.child.w * self.k
self.child.w += x
self.child.w[{i}] = self.n
self.child.n += 1
self.child.w = self.{a}
self.child, self.last = self.child, self.child.n
if self.n % 3 == 0: self.{a} = self.{a} * 0.5
if self.n > 2: self.k = 0.5
if x.sum() > 0: self.{a} = x * 1.0
if self.{a}[0] > x[0]: self.{a}[{i}] = 0; self.n += 1
if self.flag: self.{a} = self.{a} + 1
if self.mode == "a": self.k = 2.0
if self.last is None: self.last = x + 1
if self.last is self.{a}: self.n += 10
if self.n > 4: raise ValueError("enough")
if x.sum() > 3: raise ValueError("large")
self.{a} = self.{a}.reshape(2, 2).T.reshape(4)
for j in range(3): self.{a}[j] = self.{a}[j] * 0.5 + x[j]
for j in range(4): self.k = self.k + x[j]
for j in range(3): self.{a} = self.{a} * 0.5 + x
for j in range(4): self.n += int(x[j] > 0)
for j in range(self.n % 3): self.{a} += 1
while self.n > 3: self.n //= 2
y = self.{a}; self.{a} = self.{a} + 1; y[{i}] = 5
y = self.{a}[1:]; y += 1
y = self.{a}; y *= 2
try: self.{a}[self.n] = 1
except IndexError: self.n = 0
z = np.linalg.inv(self.m + np.eye(4)); self.m = z
self.{a} = self.{a}.astype(np.float32)
self.{a} = np.sqrt(self.{a})
self.{a} = self.{a} / self.n
self.{a} = x / self.k
""".strip().splitlines()

ONLY_METHODS = """
self.helper(x)
self.{a} = self.scaled
self.extra = x * 2
self.extra{i} = self.n
del self.extra
self.count += 1
type(self).total += 1
self.half = self.{a}
if hasattr(self, "extra"): self.k = 1.5
self.{a} = self.shift + x
self.shift = 1.0
setattr(self, "k", 0.25)
other = self; other.k = 0.75
self.child = Inner()
self.child.owner = self
self.{a} = self.{a} + G
self.__dict__["k"] = 3.0
""".strip().splitlines()

RETURNS = """
self.{a}
self.{a} * 2
x
x + self.{a}
self.n
self.k
(self.{a}, self.n)
[self.{a}, self.{b}]
self.items[0]
None
self.{a}.sum()
self.child.w + x
self.mode
self.{a}[1:]
self.m
self.last
{"v": self.{a}, "k": self.k, "n": self.n}
(self.{a}, self.{a})
self.table["p"]
self.flag
""".strip().splitlines()

# What is done between calls, to `a` and `b`, two of the instances.
CHANGES = """
a.v[0] = 5.0
a.v = a.w
a.v = b.v
a.v = b.v[::-1]
a.v = np.arange(4.0)
a.v = np.arange(8.0)[::2]
a.v = np.arange(4)
a.v = a.v.astype(np.float32)
a.m = np.asfortranarray(a.m)
a.m = a.m[::-1]
a.k = 3
a.k = 2.5
a.k = np.float64(1.5)
a.k = np.float32(1.5)
a.n = 2**62
a.n = 0
a.n = np.int64(3)
a.n = 2.0
a.n = True
a.flag = 1
a.mode = "b"
a.last = None
a.last = a.v
a.items = b.items
a.items = [np.ones(4), np.ones(4)]
a.items = (np.ones(4), np.ones(4))
a.table = b.table
a.table = {"q": np.ones(4), "p": np.ones(4)}
a.child = b.child
a.child.w = a.v
a.child.w = b.w
a.v.flags.writeable = False
a.w = a.m[0]
a.items[1] = a.v
""".strip().splitlines()

ONLY_OF_INSTANCES = """
a.extra = np.ones(4)
a.extra = 1.0
a.unread = object()
a.count = 4
a.shift = np.ones(4)
a.half = np.ones(4)
C.shift = 0.5
a = C()
a = D()
a = a.copied()
del a.k
""".strip().splitlines()

ARGUMENTS = ("fresh", "fresh", "fresh", "fresh", "same", "a.v", "b.v", "a.w", "a.v[::-1]", "a.m[0]", "int", "read-only")


@dataclass
class Program:
    text: str
    closure: bool
    actions: list[tuple[str, ...]]


def _spelled(r: np.random.Generator, text: str) -> str:
    a, b = r.choice(["v", "v", "w"]), r.choice(["v", "w", "w"])
    return text.replace("{a}", a).replace("{b}", b).replace("{i}", str(r.integers(0, 4)))


def _lines(r: np.random.Generator, statements: list[str], most: int) -> list[str]:
    lines: list[str] = []
    for _ in range(r.integers(1, most)):
        at = int(r.integers(len(statements)))
        text = statements[at]
        if text.startswith(("try:", "except")):
            text = "try: self.{a}[self.n] = 1\nexcept IndexError: self.n = 0"
        lines += _spelled(r, text).split("\n")
    return lines


def _returned(r: np.random.Generator) -> str:
    return "return " + _spelled(r, RETURNS[r.integers(len(RETURNS))])


_FRAME = """
import numpy as np

LOG = []
G = np.ones(4)

class Inner:
    def __init__(self):
        self.w, self.n = np.linspace(0.0, 1.0, 4), 1

def compiled_or_plain(f):
    return compiled(f)
"""

_START = """
v, w, m = np.linspace(-1.0, 1.0, 4), np.arange(4.0), np.eye(4) * 0.5
k, n, flag, mode, last = 0.5, 1, False, "a", None
items, table, child = [np.ones(4), np.zeros(4)], {"p": np.ones(4), "q": np.zeros(4)}, Inner()
""".strip().splitlines()


def _class(r: np.random.Generator, name: str, bases: str, methods: int) -> str:
    slots = r.random() < 0.15 and not bases
    lines = [f"class {name}{bases}:"]
    if slots:
        more = ("extra", "extra0", "extra1", "extra2", "extra3", "log", "unread", "__weakref__")
        lines += [f"    __slots__ = {(*STATE, *more)!r}", "    count = property(lambda self: 0)"]
        lines += ["    shift, half = 2.0, 0.5", "    total = 0"]
    elif not bases:
        lines += ["    count, shift, total = 0, 2.0, 0", "    @property", "    def half(self): return self._half"]
        lines += ["    @half.setter", "    def half(self, value): self._half = value * 0.5"]
    if not bases:
        lines += ["    def __init__(self):", *("        " + line for line in _START)]
        lines += [f"        self.{x} = {x}" for x in STATE] + ["        self.log = []"]
        lines += ["    @property", "    def scaled(self): return self.v * self.k"]
        lines += ["    def helper(self, x):", "        " + _spelled(r, STATEMENTS[r.integers(11)])]
        lines += ["    def copied(self):", "        import copy", "        return copy.copy(self)"]
    for k in range(methods):
        lines += ["    @compiled", f"    def f{k}(self, x):"]
        many = STATEMENTS * 3 + ONLY_METHODS
        lines += ["        " + line for line in [*_lines(r, many, 5), _returned(r)]]
    return "\n".join(lines)


def program(seed: int) -> Program:
    """Return the program of a seed."""
    r = np.random.default_rng(seed)
    closure = bool(r.random() < 0.35)
    if closure:
        lines = ["def C():", *("    " + line for line in _START)]
        for k in range(2):
            body = [*_lines(r, STATEMENTS, 5), _returned(r)]
            body = [re.sub(r"self\.(\w+)", r"\1", line) for line in body]
            lines += [f"    def f{k}(x):", f"        nonlocal {', '.join(STATE)}", *("        " + x for x in body)]
        lines += ["    def get(): return [" + ", ".join(f"({x!r}, {x})" for x in STATE) + "]"]
        lines += ["    def put(name, value):", f"        nonlocal {', '.join(STATE)}"]
        lines += [f"        if name == {x!r}: {x} = value" for x in STATE]
        lines += ["    return Closure(compiled(f0), compiled(f1), get, put)"]
        text = _FRAME + "\n".join(lines) + "\n"
    else:
        text = _FRAME + _class(r, "C", "", 2) + "\n" + _class(r, "D", "(C)", 1) + "\n"
    changes = CHANGES * 2 if closure else CHANGES + ONLY_OF_INSTANCES
    actions: list[tuple[str, ...]] = []
    for _ in range(r.integers(4, 12)):
        a, b = (str(x) for x in r.choice(["p", "q", "s"], 2))
        if r.random() < 0.3:
            actions.append(("change", changes[r.integers(len(changes))], a, b))
        argument = str(ARGUMENTS[r.integers(len(ARGUMENTS))])
        actions.append(("call", f"f{r.integers(2)}", a, b, argument))
    return Program(text, closure, actions)
