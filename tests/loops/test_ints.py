"""Python's ints in loops: they have no largest one, and int64 has."""

from __future__ import annotations

import linecache
import random
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

LARGE = ("2147483647", "10**9", "10**12", "10**17", "2**40", "2**62", "2**63 - 1", "-10**15", "3", "1", "7")


class Maker:
    """Writes a function of ints that a loop carries, compares and computes with."""

    def __init__(self, seed: int) -> None:
        self.rg = random.Random(seed)

    def number(self) -> str:
        return self.rg.choice((*LARGE, "i", "i", "k", "m"))

    def term(self) -> str:
        pick = self.rg.choice
        return pick(
            (
                f"i * {pick(LARGE)}",
                f"(i * {pick(LARGE)}) % ({pick(('7', '10**9', '9 * 10**17', '2**61'))})",
                f"(i + {self.number()})",
                f"({self.number()} - i)",
                f"i // {pick(('2', '3', '10**5'))}",
                "i * i",
                "k",
                "m",
                pick(LARGE),
            )
        )

    def statement(self) -> list[str]:
        pick = self.rg.choice
        name = pick(("k", "m", "s"))
        kind = self.rg.random()
        if kind < 0.45:
            return [f"{name} {pick(('+=', '+=', '-=', '='))} {self.term()}"]
        if kind < 0.6:
            return [f"x[i % 3] {pick(('+=', '='))} {self.term()}"]
        if kind < 0.8:
            return [
                f"if {self.term()} {pick(('>', '<=', '=='))} {self.term()}:",
                *["    " + x for x in self.statement()],
            ]
        return [
            f"for j in range({pick(('i % 10', '10', 'i % 7 + 1'))}):",
            "    " + pick(("k += 1", "m += j", "m += i", "s += j * 10**9")),
        ]

    def source(self) -> str:
        lines = ["def f(x, z):", "    k = 0; m = 1; s = 5"]
        head = self.rg.choice(
            ("for i in range(100):", "for i in range(90, -1, -1):", "for i in range(10**15, 10**15 + 60):")
        )
        body = [line for _ in range(self.rg.randint(1, 4)) for line in self.statement()]
        lines += ["    " + head, *["        " + line for line in body], "        z[0] += 1.0"]
        return "\n".join([*lines, "    return k, m, s, x"]) + "\n"


def judge(seed: int) -> str:
    source = Maker(seed).source()
    file = f"<ints {seed}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), space)
    compiled = pyop.compile(space["f"])
    for dtype in ("float64", "int64", "int32", "float64"):
        said = []
        for f in (space["f"], compiled):
            x, z = np.ones(3, dtype), np.zeros(1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    said.append((repr(f(x, z)), repr(z)))
                except OverflowError as error:
                    said.append((repr(error), repr((x, z))))
        if said[0] != said[1]:
            return f"{dtype}: {said[0]}\n{said[1]}\n{source}"
    return ""


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_ints_are_pythons(first: int) -> None:
    for seed in range(first, first + 20):
        assert judge(seed) == ""


if __name__ == "__main__":
    import sys

    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        if said := judge(seed):
            print(seed, said)


def crc(x):
    c, n = 0xFFFFFF, 0
    for v in x:
        k = int(v * 1000)
        c = ((c ^ k) & 0xFF) * 31 ^ (c >> 8)
        n |= 1 << 3 if ~k & 4 else k
    return c ^ 0xFFFFFF, n


def shifted(x):
    s = 3
    for v in x:
        s = (s << 4) | int(v)
    return s


def counted(x):
    n = 0
    for v in x:
        if v > 0:
            n += 1
    if n == 0:
        return "none"
    return n / 2 if n > 20 else n


@pytest.mark.parametrize("f", [crc, shifted, counted])
@pytest.mark.filterwarnings("error")
def test_bits_of_numbers_and_decisions_by_counts(f):
    g = pyop.compile(f)
    for scale in (0.0, 0.4, 1.0, -1.0):
        x = np.linspace(-0.3, 1.0, 30) * scale
        for _ in range(2):
            assert repr(g(x)) == repr(f(x))
