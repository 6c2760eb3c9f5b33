"""Programs with Functions, made by chance, and what they compute told without pyop.

A program is text. It runs on arrays with the Functions of `FUNCTIONS`, and once more on `Dual` numbers, which share
memory by views as arrays do: that is where its derivatives come from. The backward of a Function is never its true
derivative, so that one that is not asked is seen.
"""

from __future__ import annotations

import random
import textwrap
from typing import Any, NamedTuple, Self

import numpy as np

SIZE = 4
INPUTS = ("x", "y")


class Dual:
    """An array with its derivatives by each element of the inputs, in memory of one array: views are views of both."""

    def __init__(self, both: Any) -> None:
        self.both = both

    val = property(lambda self: self.both[..., 0])
    tan = property(lambda self: self.both[..., 1:])

    def __len__(self) -> int:
        return len(self.both)

    def __getitem__(self, key: Any) -> Dual:
        return Dual(self.both[key] if type(key) is slice else self.both[key].copy())

    def __setitem__(self, key: Any, value: Any) -> None:
        if value is not self:
            self.both[key] = value.both

    def __add__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return made(self.val + other, self.tan)
        return made(self.val + other.val, self.tan + other.tan)

    def __sub__(self, other: Dual) -> Dual:
        return made(self.val - other.val, self.tan - other.tan)

    def __mul__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return made(self.val * other, self.tan * np.asarray(other)[..., None])
        return made(self.val * other.val, self.tan * other.val[..., None] + other.tan * self.val[..., None])

    def __iadd__(self, other: Dual) -> Self:
        self.both[...] += other.both
        return self

    def __imul__(self, factor: float) -> Self:
        self.both[...] *= factor
        return self

    def sum(self) -> Dual:
        return Dual(self.both.sum(0))


def made(val: Any, tan: Any) -> Dual:
    val = np.asarray(val)
    return Dual(np.concatenate([val[..., None], np.broadcast_to(tan, (*val.shape, tan.shape[-1]))], -1))


class Kind(NamedTuple):
    """A Function: how many arguments it has, its forward and backward, and what it does to Dual numbers."""

    arguments: int
    results: str  # a letter each: "a" an array of the size of the arguments, "s" a scalar, "i" integers
    forward: str
    backward: str
    dual: str
    setup: str = ""


def kind(arguments: int, results: str, forward: str, backward: str, dual: str, setup: str = "") -> Kind:
    return Kind(arguments, results, *map(textwrap.dedent, (forward, backward, dual, setup)))


FUNCTIONS = {
    "Plus": kind(
        1,
        "a",
        "x += 1.0\nctx.mark_dirty(x)\nreturn x",
        "return g * 2.0",
        "x.val[...] += 1.0\nx.tan[...] *= 2.0\nreturn x",
    ),
    "Product": kind(
        2,
        "as",
        "x *= y\nreturn x, x.sum()",
        "y, = ctx.saved_tensors\nreturn (g + h) * y, 7.0 * g",
        """
        v, old = y.val.copy(), x.tan.copy()
        x.val[...] *= v
        x.tan[...] = v[:, None] * old + 7.0 * y.tan
        return x, made(x.val.sum(), (v[:, None] * old).sum(0))
        """,
        "ctx.mark_dirty(inputs[0])\nctx.save_for_backward(inputs[1])",
    ),
    "Two": kind(
        2,
        "aa",
        "x += 1.0\ny *= 2.0\nctx.mark_dirty(x, y)\nreturn x, y",
        "return 3.0 * g, 5.0 * h",
        "x.val[...] += 1.0\nx.tan[...] *= 3.0\ny.val[...] *= 2.0\ny.tan[...] *= 5.0\nreturn x, y",
    ),
    "Second": kind(
        2,
        "ia",
        "order = np.argsort(x)\ny -= x\nctx.mark_dirty(y)\nctx.mark_non_differentiable(order)\nreturn order, y",
        "return 4.0 * h, h",
        "order = np.argsort(x.val)\ny.val[...] -= x.val\ny.tan[...] += 4.0 * x.tan\nreturn order, y",
    ),
    "Drop": kind(
        1,
        "a",
        "m = np.random.random(x.shape)\nctx.save_for_backward(m)\nreturn x * m",
        "return g * ctx.saved_tensors[0]",
        "return x * np.random.random(len(x))",
    ),
    "Noisy": kind(
        1,
        "a",
        "ctx.m = RNG.random(x.shape)\nx *= ctx.m\nctx.mark_dirty(x)\nreturn x",
        "return 3.0 * g * ctx.m",
        "m = RNG.random(len(x))\nx.val[...] *= m\nx.tan[...] *= 3.0 * m[:, None]\nreturn x",
    ),
    "Count": kind(
        1,
        "a",
        "COUNT[0] += 1\nctx.k = COUNT[0]\nreturn x * float(ctx.k)",
        "return g * float(ctx.k)",
        "COUNT[0] += 1\nreturn x * float(COUNT[0])",
    ),
    "Tally": kind(
        1,
        "a",
        "Tally.n = getattr(Tally, 'n', 0) + 1\nCOUNT[1] = Tally.n\nreturn x * 2.0",
        "return g * 9.0",
        "COUNT[1] += 1\nreturn made(x.val * 2.0, x.tan * 9.0)",
    ),
    "Reads": kind(
        1,
        "a",
        "ctx.k = K[0]\nreturn x * ctx.k",
        "return 2.0 * g * ctx.k",
        "return made(x.val * K[0], 2.0 * x.tan * K[0])",
    ),
    "Pure": kind(1, "a", "return x * 3.0", "return g * 10.0", "return made(x.val * 3.0, x.tan * 10.0)"),
    "Numbers": kind(
        1,
        "a",
        "return np.array([float(v) * 2.0 for v in x])",
        "return g * 4.0",
        "return made(x.val * 2.0, x.tan * 4.0)",
    ),
    "Writes": kind(
        1,
        "a",
        "for k in range(len(x)):\n    x[k] = float(x[k]) + 1.0\nctx.mark_dirty(x)\nreturn x",
        "return g * 6.0",
        "x.val[...] += 1.0\nx.tan[...] *= 6.0\nreturn x",
    ),
}
WRITTEN = {"Plus": (0,), "Product": (0,), "Two": (0, 1), "Second": (1,), "Noisy": (0,), "Writes": (0,)}


def class_of(name: str) -> str:
    """The text of a Function."""
    f = FUNCTIONS[name]
    given = ", ".join("xy"[: f.arguments])
    methods = [(f"forward({given if f.setup else 'ctx, ' + given})", f.forward)]
    if f.setup:
        methods.append(("setup_context(ctx, inputs, output)", f.setup))
    methods.append((f"backward(ctx, {', '.join('gh'[: len(f.results)])})", f.backward))
    text = f"class {name}(pyop.Function):\n"
    for signature, body in methods:
        text += f"    @staticmethod\n    def {signature}:\n" + textwrap.indent(body.strip(), " " * 8) + "\n"
    return text


def dual_of(name: str) -> str:
    """The same for Dual numbers."""
    f = FUNCTIONS[name]
    body = textwrap.indent(f.dual.strip(), " " * 8)
    return f"class {name}:\n    @staticmethod\n    def apply({', '.join('xy'[: f.arguments])}):\n{body}\n"


class Program(NamedTuple):
    """A function `f` of two arrays, and `loss`, a number made of its results."""

    body: str
    functions: tuple[str, ...]
    smooth: bool  # no Function was given arrays that share memory: its derivative is told

    def text(self, dual: bool = False) -> str:
        return "\n".join([*map(dual_of if dual else class_of, self.functions), self.body])


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[str] = []
        self.sizes: dict[str, int] = {}  # of arrays
        self.memory: dict[str, int] = {}  # which of them share it
        self.scalars: list[str] = []
        self.orders: dict[str, int] = {}
        self.used: dict[str, None] = {}
        self.smooth = True
        self.count = 0

    def name(self, size: int, memory: int | None = None) -> str:
        made = f"a{self.count}"
        self.count += 1
        self.sizes[made] = size
        self.memory[made] = self.count if memory is None else memory
        return made

    def some(self, size: int = 0, written: bool = False) -> str | None:
        """One of the arrays; of the arguments seldom one that is written."""
        found = [a for a, n in self.sizes.items() if not size or n == size]
        if written and self.chance.random() < 0.95:
            found = [a for a in found if self.memory[a] >= 0]
        return self.chance.choice(found) if found else None

    def call(self) -> None:
        chosen = self.chance.choice([*FUNCTIONS])
        f, written = FUNCTIONS[chosen], WRITTEN.get(chosen, ())
        given: list[str] = []
        for k in range(f.arguments):
            one = self.some(self.sizes[given[0]] if given else 0, k in written)
            if one is None:
                return
            given.append(one)
        if len({self.memory[a] for a in given}) < len(given):
            if self.chance.random() < 0.9:
                return
            self.smooth = False
        self.used[chosen] = None
        size = self.sizes[given[0]]
        call = f"{chosen}.apply({', '.join(given)})"
        if f.arguments == 1 and not written and self.chance.random() < 0.3:
            self.lines.append(f"{self.name(size)} = {call} - {call}")
            return
        if self.chance.random() < (0.5 if written else 0.1):
            self.lines.append(call)
            return
        places = iter(written)
        names = []
        for letter in f.results:
            if letter == "a":
                k = next(places, None)
                names.append(self.name(size, None if k is None else self.memory[given[k]]))
            else:
                names.append(f"s{self.count}")
                self.count += 1
                if letter == "s":
                    self.scalars.append(names[-1])
                else:
                    self.orders[names[-1]] = size
        self.lines.append(f"{', '.join(names)} = {call}")

    def compute(self) -> None:
        a = self.some()
        b = self.some(self.sizes[a])
        c = self.chance.choice((0.5, 2.0, -1.5))
        again = f" + {self.chance.choice(self.scalars)}" if self.scalars and self.chance.random() < 0.3 else ""
        if self.orders and self.chance.random() < 0.3:
            order, size = self.chance.choice([*self.orders.items()])
            a = self.some(size)
            self.lines.append(f"{self.name(size)} = {a} * ({order} * {c})")
        elif self.chance.random() < 0.5:
            self.lines.append(f"{self.name(self.sizes[a])} = {a} * {c} + {b}{again}")
        else:
            self.lines.append(f"{self.name(self.sizes[a])} = {a} * {b}{again}")

    def view(self) -> None:
        a = self.some()
        if self.sizes[a] < 2:
            return
        key, size = self.chance.choice(
            [
                ("1:", self.sizes[a] - 1),
                (":-1", self.sizes[a] - 1),
                ("::-1", self.sizes[a]),
                ("::2", -(-self.sizes[a] // 2)),
            ]
        )
        self.lines.append(f"{self.name(size, self.memory[a])} = {a}[{key}]")

    def write(self) -> None:
        a = self.some(written=True)
        b = self.some(self.sizes[a])
        if self.memory[a] < 0:
            return  # of arguments, Functions alone
        k, m = self.chance.randrange(self.sizes[a]), self.chance.randrange(self.sizes[b])
        self.lines.append(self.chance.choice([f"{a} += {b} * 0.5", f"{a}[{k}] = {b}[{m}] * 2.0", f"{a} *= 1.5"]))

    def program(self) -> Program:
        for k, given in enumerate(INPUTS):
            self.sizes[given], self.memory[given] = SIZE, -1 - k
        self.lines += [f"{self.name(SIZE)} = x * 1.5", f"{self.name(SIZE)} = y * 0.5 + x"]
        for _ in range(self.chance.randint(2, 8)):
            self.chance.choice([self.call, self.call, self.call, self.compute, self.view, self.write])()
        results = self.chance.sample([*self.sizes], self.chance.randint(1, 3)) + self.scalars[:1]
        body = [*self.lines, f"return {', '.join(results)},"]
        text = "def f(x, y):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
        parts = [r if r in self.scalars else f"({r} * {r}).sum()" for r in results]
        body[-1] = f"return {' + '.join(parts)}"
        text += "def loss(x, y):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
        return Program(text, tuple(self.used), self.smooth)


def program(seed: int) -> Program:
    """The program of a number."""
    return _Maker(random.Random(seed)).program()
