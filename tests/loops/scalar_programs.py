"""Random programs that go element by element: loops over positions, numbers that are carried, nested loops.

`python -m tests.loops.scalar_programs FIRST COUNT` runs some and prints those that differ from the function itself.
"""

from __future__ import annotations

import linecache
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop
from pyop._tree import flatten

from .compare import equal

DTYPES = [*["float64"] * 8, *["float32", "int64"] * 3, "int32", "uint8", "int16", "complex128", "bool"]
AWKWARD = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 5e-324, 1e308, -1e308, 1e-160]


class Writer:
    """Writes the text of one function of arrays a, b (one axis), m (two axes) and a number t."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.scalars: list[str] = []

    def pick(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def index(self, counters: list[str]) -> str:
        counter = self.pick(*counters)
        return self.pick(
            *[counter] * 6, *[f"{counter} - 1"] * 3, f"{counter} + 1", f"-{counter}", "0", "-1", f"{counter} - 2"
        )

    def element(self, counters: list[str]) -> str:
        if self.rng.random() < 0.25:
            return f"m[{self.index(counters)}, {self.index(counters)}]"
        return f"{self.pick('a', 'b', 'out')}[{self.index(counters)}]"

    def operand(self, counters: list[str]) -> str:
        x = self.rng.random()
        if x < 0.55:
            return self.element(counters)
        if x < 0.7:
            return self.pick("0.5", "2", "3.0", "1", "-1.5", "t")
        if x < 0.8:
            return self.pick(*counters)
        return self.pick(*self.scalars) if self.scalars else self.element(counters)

    def expression(self, counters: list[str], depth: int = 2) -> str:
        if depth == 0 or self.rng.random() < 0.15:
            return self.operand(counters)
        x, y = (self.expression(counters, depth - 1) for _ in range(2))
        form = self.rng.random()
        if form < 0.55:
            return f"({x} {self.pick('+', '-', '*', '+', '-', '*', '/', '//', '%')} {y})"
        if form < 0.65:
            return f"np.{self.pick('minimum', 'maximum', 'arctan2', 'hypot', 'power', 'fmin', 'copysign')}({x}, {y})"
        if form < 0.85:
            name = self.pick("sqrt", "exp", "sin", "abs", "floor", "sign", "square", "tanh", "log", "negative", "isnan")
            return f"np.{name}({x})"
        if form < 0.95:
            return f"np.where({x} {self.pick('<', '<=', '>', '==', '!=', '>=')} {y}, {self.operand(counters)}, {x})"
        return f"(-{x})"

    def statement(self, counters: list[str], pad: str) -> None:
        x = self.rng.random()
        if x < 0.08:
            test = f"{self.operand(counters)} {self.pick('<', '<=', '>', '!=')} {self.expression(counters, 1)}"
            self.lines.append(f"{pad}if {test}:")
            self.statement(counters, pad + "    ")
            if self.rng.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.statement(counters, pad + "    ")
        elif x < 0.3 and self.scalars:
            s = self.pick(*self.scalars)
            self.lines.append(f"{pad}{s} = {s} * 0.5 + {self.expression(counters, 1)}")
        elif x < 0.45:
            self.lines.append(
                f"{pad}{self.element(counters)} {self.pick('+', '-', '*')}= {self.expression(counters, 1)}"
            )
        elif x < 0.6:
            name = f"v{len(self.lines)}"
            self.lines.append(f"{pad}{name} = {self.expression(counters)}")
            self.lines.append(f"{pad}out[{self.index(counters)}] = {name}")
        elif x < 0.65:
            self.lines.append(f"{pad}m[{self.index(counters)}, {self.index(counters)}] = {self.expression(counters)}")
        else:
            self.lines.append(f"{pad}out[{self.index(counters)}] = {self.expression(counters)}")

    def loop(self, counters: list[str], pad: str) -> None:
        counter = "ijk"[len(counters)]
        n = self.pick("4", "5", "6", "len(a)", "9", "10", "len(a) - 1", "8", "len(a)", "len(a) - 1", "11")
        bounds = self.pick(
            f"0, {n}", f"1, {n}", f"1, {n} - 1", f"{n} - 2, 0, -1", f"2, {n}, 1", f"0, {n}", f"1, {n} - 1"
        )
        self.lines.append(f"{pad}for {counter} in range({bounds}):")
        inner = [*counters, counter]
        for _ in range(self.rng.randint(1, 3)):
            self.statement(inner, pad + "    ")
        if len(inner) < 3 and self.rng.random() < 0.3:
            self.loop(inner, pad + "    ")

    def source(self) -> str:
        self.lines.append("    out = " + self.pick("np.zeros(len(a))", "a * 1.0", "np.zeros_like(a)", "a.copy()"))
        if self.rng.random() < 0.6:
            self.scalars.append("s")
            self.lines.append("    s = " + self.pick("a[0] * 1", "0.0", "b[1] + 0.5", "1.5"))
        for _ in range(self.pick(1, 1, 2)):
            self.loop([], "    ")
        self.lines.append("    return out" + ", s" * bool(self.scalars) + self.pick("", ", m[1]"))
        return "def f(a, b, m, t):\n" + "\n".join(self.lines) + "\n"


def array(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], scale: float, odd: float, gaps: float) -> Any:
    """An array of numbers, some awkward ones among them and with gaps between its elements as often as is said."""
    dtype = np.dtype(dtype)
    x = rng.normal(size=shape) * scale
    if rng.random() < odd and dtype.kind in "fc":
        flat = x.reshape(-1)
        flat[rng.integers(flat.size, size=2)] = rng.choice(AWKWARD, size=2)
    if rng.random() < 0.1 and dtype.kind == "i" and scale > 10:
        x *= 1e7
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    if rng.random() < gaps:
        x = np.repeat(x, 2, axis=0)[::2]
    if rng.random() < 0.1:
        x = np.asfortranarray(x)
    return x


def arguments(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 14))

    def made(*shape: int) -> Any:
        dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
        return array(rng, dtype, shape, 50 if dtype.kind in "iu" else 1, 0.25, 0.2)

    return [made(n), made(n), made(n, n), float(rng.normal())]


def outcome(f: Callable[..., Any], args: list[Any], errstate: dict[str, str]) -> tuple[Any, ...]:
    """What a call returned or raised, what it left in its arguments, and its warnings."""
    given = [x.copy("K") if isinstance(x, np.ndarray) else x for x in args]
    with warnings.catch_warnings(record=True) as said, np.errstate(**errstate):
        warnings.simplefilter("always")
        try:
            result: Any = f(*given)
        except (ArithmeticError, IndexError, TypeError, ValueError, np.linalg.LinAlgError) as error:
            result = type(error).__name__
    return result, given, {str(w.message) for w in said if issubclass(w.category, RuntimeWarning)}


def function(source: str, seed: int) -> Callable[..., Any]:
    """The function `f` of a source."""
    scope: dict[str, Any] = {"np": np}
    file = f"<program {seed} of numbers>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


def difference(seed: int, tapes: list[int] | None = None) -> str | None:
    """How the compiled program differs from the program, in words; None if it does not."""
    return compared(Writer(seed).source(), arguments(seed), seed, tapes)


def compared(source: str, args: list[Any], seed: int, tapes: list[int] | None) -> str | None:
    """How a compiled function differs, with a tape and without, from the function; `tapes` counts those with one."""
    f = function(source, seed)
    rng = random.Random(seed)
    states = [{}, {"all": "ignore"}, {"all": "warn"}, {"under": "warn"}, {"all": "raise"}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g, other = pyop.compile(f), pyop.compile(f, disable=["tape"])
    for errstate in [{}, rng.choice(states), {}]:
        wanted, found, steps = (outcome(x, args, errstate) for x in (f, g, other))
        if not _same(found, steps) or found[2] != steps[2]:
            return _said(f"{seed} tape {errstate}", args, source, found, steps, wanted)
        if not _same(wanted, found):
            return _said(f"{seed} plan {errstate}", args, source, wanted, found)
    if tapes is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tapes[0] += "tape of" in str(g.plan_for(*args).explain())
            except Exception:
                tapes[1] += 1
    return None


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    if isinstance(one[0], str) or isinstance(other[0], str):
        return type(one[0]) is type(other[0]) and one[0] == other[0]
    return equal(*([_one_nan(x) for x in flatten(side[:2])[0]] for side in (one, other)))


def _one_nan(x: Any) -> Any:
    """Which NaN comes of two is open, as it is in NumPy."""
    array = np.array(x)
    if array.dtype.kind in "fc":
        array[np.isnan(array)] = np.nan
    return array


def _said(what: str, args: list[Any], source: str, *sides: Any) -> str:
    dtypes = [x.dtype.name if isinstance(x, np.ndarray) else x for x in args]
    return "\n".join([what, str(dtypes), source, *[str(side)[:1500] for side in sides]])


def run(difference: Callable[[int, list[int]], str | None]) -> None:
    """As many programs as the command says."""
    first, count = map(int, sys.argv[1:3])
    wrong, tapes = 0, [0, 0]
    brief = len(sys.argv) > 3
    for seed in range(first, first + count):
        found = difference(seed, tapes)
        if found:
            wrong += 1
            print(found.splitlines()[0] if brief and " plan " in found else found, flush=True)
    print(f"{wrong} of {count} differ, {tapes[0]} ran on a tape, {tapes[1]} without a plan")


def main() -> None:
    run(difference)


if __name__ == "__main__":
    main()
