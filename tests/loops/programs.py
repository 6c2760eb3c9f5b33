"""Programs with loops, writes and branches, as text, whose derivatives are looked at: each is analytic in `x`, so that
complex steps give its gradient to the last digits.
"""

from __future__ import annotations

import linecache
import random
import zlib

import numpy as np

import pyop

N = 5  # the size of x and of what is carried
HEAD = "import numpy as np, pyop\n"


MORE = {
    "numbers that are carried": """
def f(x):
    y = x * 1.0
    k = 0
    s = x[1]
    for i in range(10):
        y[k % 5] = np.sin(s) + y[(k + 1) % 5] * x[2]
        s = s * 0.5 + y[i % 5]
        k += 3
    return (y * y).sum() + s
""",
    "triangular": """
def f(x):
    a = np.outer(x, x) + np.eye(5) * 3.0
    for i in range(5):
        for j in range(i):
            a[i, j] = a[i, j] / a[j, j]
            a[i, j + 1:] = a[i, j + 1:] - a[i, j] * a[j, j + 1:]
    return (a * a).sum()
""",
    "a branch in the body": """
def f(x):
    y = x * 1.0
    s = x[0]
    for i in range(12):
        if y[i % 5].real > 0.1:
            s = s + y[i % 5] * x[1]
        else:
            y[i % 5] = y[i % 5] * 0.5 + s
    return (y * y).sum() + s * s
""",
    "swapped": """
def f(x):
    a = x * 1.0
    b = x * 1.0
    for i in range(9):
        b[1:-1] = 0.25 * (a[:-2] + a[2:]) + 0.4 * np.sin(a[1:-1])
        a, b = b, a
    return (a * b).sum()
""",
    "slices that grow": """
def f(x):
    y = np.concatenate([x, x, x])
    for i in range(1, 15):
        y[i] = 0.1 * (y[:i] * y[:i]).sum() + 0.5 * y[i]
    return (y * y).sum()
""",
    "a table": """
def f(x):
    t = np.zeros((6, 5), x.dtype)
    t[0] = x
    for i in range(1, 6):
        for j in range(1, 5):
            t[i, j] = np.tanh(t[i - 1, j - 1] * x[j]) + 0.3 * t[i, j - 1]
    return (t * t).sum()
""",
}


def program(seed: int, stops: bool = True) -> str:
    """The text of a function ``f(x)`` of `N` numbers that returns one.

    With `stops` perhaps with `stop_gradient`, which second derivatives by differences do not see.
    """
    return _Program(random.Random(seed), stops).text()


def function(text: str):
    scope = {"np": np, "pyop": pyop}
    file = f"<program {zlib.crc32(text.encode())}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file  # control flow is lifted from the source
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def by_complex_steps(f, x):
    """The gradient of the function itself."""
    return np.array([f(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(len(x))])


class _Program:
    def __init__(self, r: random.Random, stops: bool) -> None:
        self.r = r
        self.stops = stops

    def text(self) -> str:
        r = self.r
        lines = ["def f(x):", "    y = x * 0.5", "    z = np.sin(x)", "    s = x[0] * x[1]"]
        for k in range(r.randint(1, 2)):
            kind = r.choice([self.rolled, self.rolled, self.fori, self.scan, self.until, self.branch])
            lines += ["    " + line for line in kind(k)]
        lines.append("    return (y * y).sum() + np.cos(z).sum() * s + (x * z).sum()")
        return HEAD + "\n".join(lines) + "\n"

    # --- what is computed

    def number(self, i: str) -> str:
        """An expression of one number; `i` is an index in range, or empty."""
        r = self.r
        at = i or str(r.randrange(N))
        return r.choice(
            ["s", f"x[{at}]", f"y[{at}]", f"z[{at}]", f"y[{r.randrange(N)}]", f"0.3 * s * x[{at}]", "y.sum()",
             f"np.tanh(y[{at}] * x[{at}])", f"np.exp(-z[{at}] * z[{at}])", "0.2 * (x * y).sum()"]
        )  # fmt: skip

    def vector(self) -> str:
        return self.r.choice(
            ["y", "z", "x", "s * x", "np.tanh(y)", "0.5 * y + x", "y * z", "np.sin(z) + s", "y[::-1]", "np.cos(x * s)",
             "np.cumsum(y) * 0.2", "np.where(x.real > 0.0, y, z)"]
        )  # fmt: skip

    def statement(self, i: str, low: int = 0) -> list[str]:
        """A line of a body; indices `i` and `i - low` are in range."""
        r = self.r
        before = f"{i} - {r.randint(0, low)}" if low else i
        still = f"pyop.stop_gradient(x[{i}].real)" if self.stops else "x.sum()"
        here = f"y[{i}]"
        return [
            r.choice(
                [
                    f"{here} = 0.5 * {self.number(before)} + {self.number(i)}",
                    f"{here} += 0.3 * {self.number(before)}",
                    f"z[{i}] = np.sin({self.number(before)}) * {self.number('')}",
                    f"y[{i}:] = y[{i}:] * 0.5 + z[{i}:] * {self.number(i)} * 0.2",
                    f"z[:{i} + 1] *= 0.5 + 0.1 * {self.number(before)}",
                    f"y = 0.5 * {self.vector()} + 0.3 * y",
                    f"z = np.sin({self.vector()}) + 0.5 * z",
                    f"s = 0.5 * s + 0.1 * {self.number(i)}",
                    f"s = np.tanh(s + {self.number(before)})",
                    "y[1:-1] = 0.25 * (y[:-2] + y[2:]) + 0.4 * x[1:-1]",
                    f"y[{i}] = {still} * {self.number(before)}",
                ]
            )
        ]

    def body(self, i: str, low: int, count: int = 0) -> list[str]:
        return [line for _ in range(count or self.r.randint(1, 3)) for line in self.statement(i, low)]

    # --- loops

    def rolled(self, k: int) -> list[str]:
        """A ``for`` of many iterations, perhaps with one inside."""
        r = self.r
        if r.random() < 0.4:
            inner = ["    " + line for line in self.body("j", 0, r.randint(1, 2))]
            span = r.choice(["N", "N", "1, N", "N - 1, -1, -1"]).replace("N", str(N))
            return [f"for i in range({r.randint(9, 12)}):", f"    for j in range({span}):",
                    *[f"    {line}" for line in inner], f"    s = 0.5 * s + 0.1 * {self.number('')}"]  # fmt: skip
        # Indices of a loop longer than the arrays.
        lines = self.body("i % 5" if r.random() < 0.2 else "2", 0)
        return [f"for i in range({r.randint(9, 14)}):", *[f"    {line}" for line in lines]]

    def explicit(self, k: int, i: str, low: int) -> tuple[list[str], str]:
        lines = self.body(i, low)
        return ["    y, z, s = state", *[f"    {line}" for line in lines], "    return y, z, s"], "(y, z, s)"

    def fori(self, k: int) -> list[str]:
        r = self.r
        low = r.randint(0, 1)
        lines, state = self.explicit(k, "i", low)
        if r.random() < 0.3:
            nested = f"def inner{k}(j, y):"
            bound = r.choice(["i", str(N), "i + 1"])
            change = r.choice(["y[j] = 0.5 * y[j] + 0.2 * x[i]", "y[j] = np.sin(y[j]) * z[i]"])
            lines[1:1] = [f"    {nested}", f"        {change}", "        return y",
                          f"    y = pyop.fori_loop(0, {bound}, inner{k}, y)"]  # fmt: skip
        if r.random() < 0.3:
            lines[1:1] = ["    s = pyop.cond(np.real(s) > 0.1, lambda s: s * 0.5, lambda s: s * s + 0.1 * y[i], s)"]
        option = r.choice(["", "", ", checkpoint=True"])
        return [f"def body{k}(i, state):", *lines, f"y, z, s = pyop.fori_loop({low}, {N}, body{k}, {state}{option})"]

    def scan(self, k: int) -> list[str]:
        r = self.r
        lines, state = self.explicit(k, str(r.randrange(N)), 0)
        lines.insert(1, "    s = s + 0.2 * part")
        lines[-1] = f"    return (y, z, s), {self.number('')}"
        option = r.choice(["", ", reverse=True", ", checkpoint=True"])
        return [
            f"def step{k}(state, part):", *lines,
            f"(y, z, s), made{k} = pyop.scan(step{k}, {state}, x{option})", f"y = y + 0.1 * made{k}",
        ]  # fmt: skip

    def until(self, k: int) -> list[str]:
        r = self.r
        lines = self.body(str(r.randrange(N)), 0)
        option = r.choice(["", ", checkpoint=True"])
        return [
            f"def go{k}(state):", "    y, z, s, t = state", *[f"    {line}" for line in lines],
            "    return y, z, s, t + 1.0 + 0.1 * np.tanh(np.real(s))",
            f"y, z, s, t = pyop.while_loop(lambda state: np.real(state[3]) < {r.randint(1, 6)}.0, go{k}, "
            f"(y, z, s, np.real(x[0]) * 0.0){option})",
        ]  # fmt: skip

    def branch(self, k: int) -> list[str]:
        a, b = self.vector(), self.vector()
        bound = self.r.choice(["-100.0", "0.0", "100.0"])
        return [f"y = pyop.cond(np.real(s) > {bound}, lambda y, z: 1.0 * {a}, lambda y, z: 0.5 * {b} * y, y, z)"]
