"""Random programs whose loops carry small vectors and matrices: filters, recurrences of states, rows of tables.

`python -m tests.loops.block_programs FIRST COUNT` runs some and prints those that differ from the function itself.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from .scalar_programs import array, compared, run

DTYPES = [*["float64"] * 12, "float32", "float32", "complex128", "int64"]


class Writer:
    """Writes the text of one function of vectors x, v, matrices a, b, and rows z (as many as there are steps)."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = 0

    def pick(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def vector(self, depth: int = 2) -> str:
        form = self.rng.random()
        if depth == 0 or form < 0.15:
            return self.pick("x", "v", "z[t]", "x", "out[t - 1]", "a[1]", "b[:, 1]", "x[::-1]", "np.ones(3)", "b.T[0]")
        if form < 0.4:
            return f"({self.matrix(depth - 1)} @ {self.vector(depth - 1)})"
        if form < 0.7:
            return f"({self.vector(depth - 1)} {self.pick('+', '-', '*', '/')} {self.vector(depth - 1)})"
        if form < 0.8:
            return f"({self.vector(depth - 1)} * {self.pick('0.5', 't', 's', 'x[1]', '2')})"
        if form < 0.9:
            return (
                f"np.{self.pick('tanh', 'sin', 'sqrt', 'abs', 'square', 'exp', 'negative')}({self.vector(depth - 1)})"
            )
        return f"np.{self.pick('maximum', 'minimum', 'hypot', 'power')}({self.vector(depth - 1)}, {self.vector(0)})"

    def matrix(self, depth: int = 2) -> str:
        form = self.rng.random()
        if depth == 0 or form < 0.15:
            return self.pick("a", "b", "p", "p.T", "a.T", "np.eye(3)")
        if form < 0.5:
            return f"({self.matrix(depth - 1)} @ {self.matrix(depth - 1)})"
        if form < 0.75:
            return (
                f"({self.matrix(depth - 1)} {self.pick('+', '-', '*')} {self.pick(self.matrix(depth - 1), 'x', '0.5')})"
            )
        if form < 0.85:
            return f"np.linalg.inv({self.matrix(depth - 1)} + 9 * np.eye(3))"
        return f"{self.matrix(depth - 1)}.T"

    def statement(self) -> str:
        form = self.rng.random()
        if form < 0.2:
            return f"x = {self.vector()}"
        if form < 0.35:
            return f"p = {self.matrix()} * 0.25"
        if form < 0.5:
            return f"out[t] = {self.vector(1)}"
        if form < 0.55:
            return f"out[t, {self.pick('0', '1', '-1')}] = {self.pick('s', 'x[0]', 'x[t % 3]', '0.5')}"
        if form < 0.6:
            return f"x[{self.pick('0', 't % 3', '1:', '::2')}] = {self.pick('s', '1.5', 'x[1]')}"
        if form < 0.65:
            return f"p[{self.pick('0', 't % 3', ':, 1')}] = {self.vector(0)}"
        if form < 0.72:
            return f"x, v = {self.pick('v, x', 'x + v, x', 'v, x * 0.5')}"
        if form < 0.82:
            return f"s = s * 0.5 + {self.pick('x[0]', 'x @ v', 'v[-1]', 'p[1, 2]', 'x.sum()', 'np.dot(x, v)')}"
        if form < 0.88:
            return f"x {self.pick('+', '-', '*')}= {self.vector(1)}"
        if form < 0.94:
            return f"x = x + np.linalg.solve({self.matrix(1)} + 9 * np.eye(3), {self.vector(1)})"
        return f"if s {self.pick('<', '>')} 0.3:\n            x = {self.vector(1)}"

    def source(self) -> str:
        lines = [
            "    s = " + self.pick("0.0", "x[0] * 1"),
            f"    p = {self.pick('a', 'a.copy()', 'b * 0.5', 'np.eye(3)')}",
        ]
        lines += ["    out = np.zeros_like(z)", f"    for t in range({self.pick('', '', '1, ')}len(z)):"]
        lines += ["        " + self.statement() for _ in range(self.rng.randint(1, 5))]
        return "def f(x, v, a, b, z):\n" + "\n".join(lines) + "\n    return out, x, p, s" + self.pick("", ", v\n", "\n")


def arguments(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    same = rng.random() < 0.6
    one = DTYPES[rng.integers(len(DTYPES))]

    def made(*shape: int) -> Any:
        dtype = np.dtype(one if same else DTYPES[rng.integers(14)])
        return array(rng, dtype, shape, 5 if dtype.kind in "iu" else 0.5, 0.15, 0.1)

    return [made(3), made(3), made(3, 3), made(3, 3), made(int(rng.integers(3, 150)), 3)]


def difference(seed: int, tapes: list[int] | None = None) -> str | None:
    """How the compiled program differs from the program, in words; None if it does not."""
    return compared(Writer(seed).source(), arguments(seed), seed, tapes)


def main() -> None:
    run(difference)


if __name__ == "__main__":
    main()
