"""Random loops that write parts of arrays and read them before and after: their gradients against complex steps.

``python -m tests.loops.writing FIRST LAST [SECONDS]`` runs them and prints those that differ. Unlike
`tests.loops.programs` these write several times into one array in an iteration, by elements, rows, columns and slices
that begin or end at the counter, through views, into arrays that change places, in loops inside of loops.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

import numpy as np

import pyop
from pyop.compiling import worth

from .programs import function

worth.stand_still()
N, M = 5, 4  # of the arrays
Array = np.ndarray[Any, Any]


class _Writer:
    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def pick(self, *of: str) -> str:
        return self.r.choice(of)

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def scalar(self, i: str, j: str, more: list[str], deep: int = 0) -> str:
        """An expression of one number; `i` and `j` are places inside of the arrays."""
        name = self.pick("a", "b")
        near = self.pick("", "-1", "+1")
        leaf = self.pick(
            f"{name}[{i}{near}, {j}]", f"{name}[{i}, {j}{near}]", f"{name}[{i}, {j}]", f"w[{i}, {j}]", f"v[{i}]", *more
        )
        if deep > 2 or self.r.random() < 0.3:
            return leaf
        other = self.scalar(i, j, more, deep + 1)
        return self.pick(
            f"({leaf} + {other})", f"({leaf} - {other})", f"({leaf} * {other})", f"np.sin({other})",
            f"({leaf} / (3.0 + {other} * {other}))", f"(0.7 * {leaf} - {other})", f"np.sqrt(2.0 + {leaf} * {leaf})",
        )  # fmt: skip

    def row(self, i: str, part: str) -> str:
        """An expression of part of a row."""
        leaf = self.pick(
            f"a[{i}, {part}]", f"b[{i}, {part}]", f"w[{i}, {part}]", f"a[{i}-1, {part}]", f"b[{i}+1, {part}]"
        )
        other = self.pick(f"w[{i}, {part}]", f"b[{i}, {part}]", f"v[{i}]", f"a[{i}, {part}]")
        return self.pick(f"0.6 * {leaf}", f"np.sin({leaf}) * {other}", f"{leaf} - 0.3 * {other}", leaf)

    def statement(self, depth: int, i: str, j: str, more: list[str]) -> None:
        name = self.pick("a", "b")
        kind = self.r.randrange(13)
        if kind < 3:
            self.add(depth, f"{name}[{i}, {j}] = 0.8 * {self.scalar(i, j, more)}")
        elif kind < 5:
            op = self.pick("+=", "-=", "*=")
            self.add(depth, f"{name}[{i}, {j}] {op} 0.5 * {self.scalar(i, j, more)}")
        elif kind == 5:
            part = self.pick(":", ":2", "1:", f":{j}", f"{j}:", "::2", "::-1")
            self.add(depth, f"{name}[{i}, {part}] {self.pick('=', '+=')} 0.5 * ({self.row(i, part)})")
        elif kind == 6:
            place = self.pick(j, f"{j}-1")
            self.add(depth, f"{name}[1:-1, {place}] = 0.5 * {self.pick('a', 'b')}[:-2, {j}] + 0.4 * w[2:, {place}]")
        elif kind == 7:
            self.names += 1
            self.add(depth, f"r{self.names} = {name}[{i}]")
            self.add(depth, f"r{self.names}[{j}] = 0.5 * {self.scalar(i, j, more)}")
            self.add(depth, f"r{self.names}[0] += 0.1 * r{self.names}[{j}]")
        elif kind == 8:
            self.names += 1
            self.add(depth, f"t{self.names} = {self.scalar(i, j, more)}")
            self.add(depth, f"{name}[{i}, {j}] = 0.4 * t{self.names} + 0.1 * {self.scalar(i, j, more)}")
            self.add(depth, f"v[{i}] = 0.5 * v[{i}-1] + 0.3 * t{self.names} * {name}[{i}, {j}]")
        elif kind == 9:
            self.add(depth, f"{name}[{i}, {j}] -= 0.2 * np.dot(a[{i}, :{j}], {self.pick('b', 'a')}[{j}, :{j}])")
        elif kind == 10:
            self.add(depth, f"s = 0.9 * s + 0.2 * {self.scalar(i, j, more)}")
        elif kind == 11:
            test = self.pick(f"({i} + {j}) % 2 == 0", f"{name}[{i}, {j}].real > 0.2", f"{i} > {j}")
            self.add(depth, f"if {test}:")
            self.add(depth + 1, f"{name}[{i}, {j}] = 0.5 * {self.scalar(i, j, more)}")
            if self.r.random() < 0.5:
                self.add(depth, "else:")
                self.add(depth + 1, f"{self.pick('a', 'b')}[{i}, {j}] *= 0.9")
        elif self.r.random() < 0.4:
            self.add(depth, "a, b = b, a")
        elif self.r.random() < 0.5:
            self.add(depth, f"v = np.tanh(0.4 * {name} @ w[{i}] + v)")
        else:
            self.add(depth, f"v[:] = 0.5 * np.tanh({name} @ w[{i}]) + 0.2 * v")

    def program(self) -> str:
        own = self.r.random() < 0.8
        self.add(0, "def f(x, w):")
        self.add(1, "a = x.copy()" if own else "a = x")
        self.add(1, self.pick("b = w.copy()", "b = np.zeros_like(x)", "b = 0.5 * w"))
        self.add(1, self.pick("v = x[:, 0].copy()", "v = np.zeros_like(x[:, 0])", "v = 0.3 * w[:, 1]"))
        self.add(1, "s = 0.2 * x[0, 0]")
        for _ in range(self.r.choice((1, 1, 2))):
            if self.r.random() < 0.3:
                self.add(1, f"for k in range({self.r.randrange(1, 4)}):")
                self.loops(2)
            else:
                self.loops(1)
        self.add(1, "return np.sum(a * a) + np.sum(np.sin(b)) + np.sum(v * v) + s * s")
        return "\n".join(self.lines) + "\n"

    def loops(self, depth: int) -> None:
        self.add(depth, self.pick(f"for i in range(1, {N - 1}):", f"for i in range({N - 2}, 0, -1):"))
        for _ in range(self.r.randrange(0, 2)):
            self.statement(depth + 1, "i", "1", ["s"])
        if self.r.random() < 0.7:
            inner = self.pick(f"range(1, {M - 1})", "range(1, min(i, 2) + 1)", f"range({M - 2}, 0, -1)", "range(1, 2)")
            self.add(depth + 1, f"for j in {inner}:")
            for _ in range(self.r.randrange(1, 4)):
                self.statement(depth + 2, "i", "j", ["s"])
        for _ in range(self.r.randrange(1, 3)):
            self.statement(depth + 1, "i", "2", ["s"])


def made(seed: int) -> str:
    """Return the source of a function ``f(x, w)``."""
    return _Writer(seed).program()


def arguments(seed: int) -> tuple[Array, Array]:
    """Return what it is called with."""
    r = np.random.default_rng(seed)
    return r.standard_normal((N, M)), r.standard_normal((N, M))


def by_complex_steps(f: Any, x: Array, w: Array) -> tuple[Array, Array]:
    """Return the gradients of a function by both."""
    found = (np.zeros_like(x), np.zeros_like(w))
    for k, part in enumerate(found):
        for at in np.ndindex(part.shape):
            given = [np.array(x, complex), np.array(w, complex)]
            given[k][at] += 1e-30j
            part[at] = f(*given).imag / 1e-30
    return found


def differs(seed: int) -> str:
    """Return what is wrong with the compiled gradients of a program, or nothing."""
    f = function(made(seed))
    x, w = arguments(seed)
    wanted = by_complex_steps(f, x, w)
    scale = max(1.0, *(float(np.max(np.abs(part))) for part in wanted))
    if not np.isfinite(scale) or scale > 1e8:
        return ""
    gradient = pyop.compile(pyop.value_and_grad(f, (0, 1)) if seed % 2 else pyop.grad(f, (0, 1)))
    for _ in range(2):
        found = gradient(x.copy(), w.copy())
        if seed % 2:
            value, found = found
            plain = f(x.copy(), w.copy())
            if type(value) is not type(plain) or value != plain:
                return f"value {value!r} instead of {plain!r}"
        for which, mine, theirs in zip("xw", found, wanted, strict=True):
            if not np.allclose(mine, theirs, rtol=1e-8, atol=1e-10 * scale):
                return f"by {which}: {mine} instead of {theirs}"
    return ""


def second_differs(seed: int) -> str:
    """Return what is wrong with the derivative of the gradient along a direction, or nothing."""
    f = function(made(seed))
    x, w = arguments(seed)
    t = np.random.default_rng(seed + 1).standard_normal(x.shape)
    ends = [by_complex_steps(f, x + step * t, w)[0] for step in (1e-5, -1e-5)]
    wanted = (ends[0] - ends[1]) / 2e-5
    scale = max(1.0, float(np.max(np.abs(wanted))))
    if not np.isfinite(scale) or scale > 1e6:
        return ""
    found = pyop.compile(lambda x, w, t: pyop.jvp(lambda x: pyop.grad(f)(x, w), (x,), (t,))[1])(x.copy(), w.copy(), t)
    return "" if np.allclose(found, wanted, rtol=1e-4, atol=1e-5 * scale) else f"{found} instead of {wanted}"


if __name__ == "__main__":
    first, last = int(sys.argv[1]), int(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1e9
    start, count, wrong = time.monotonic(), 0, 0
    for seed in range(first, last):
        if time.monotonic() - start > seconds:
            break
        count += 1
        try:
            found = differs(seed) or (second_differs(seed) if seed % 5 == 0 else "")
        except Exception as error:  # said with its program, like a wrong number
            found = f"{type(error).__name__}: {error}"
        if found:
            wrong += 1
            if wrong <= 6:
                print(seed, found[:600], made(seed), sep="\n")
    print(f"{count} programs, {wrong} of them wrong")
