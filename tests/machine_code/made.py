"""Random loops of single numbers, run three ways: plainly, by the interpreter, by machine code.

``cd tests; python -m machine_code.made FIRST LAST [SECONDS]`` prints what differs. Compared are all bits, those of NaN
too, what is warned of, which exception is raised under ``np.errstate(all="raise")``, and what arrays hold then.

Numbers are special ones often: NaN of both signs, infinities, zeros of both signs, denormals, the largest and the
smallest integers. Programs compute what nobody reads, and read in one arm what another has made: what a compiler would
drop, move and speculate.
"""

from __future__ import annotations

import linecache
import random
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop
from pyop.compiling import worth

worth.stand_still()

TYPES = ("float64", "float64", "float64", "float32", "int64", "int32", "int8", "uint8", "uint64")
N = 24


def special(dtype: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of which many are none that programs expect."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        few = np.array([info.min, info.max, 0, 1, 2, info.max - 1, info.max // 2 + 1, info.min + 1], dtype)
        return np.where(rng.random(n) < 0.25, rng.choice(few, n), rng.integers(0, 9, n).astype(dtype))
    info = np.finfo(dtype)
    few = np.array([0, -0.0, np.inf, -np.inf, np.nan, -np.nan, info.max, info.min, info.tiny, -info.tiny / 8], dtype)
    unusual = rng.choice([0.0, 0.0, 0.03, 0.3])
    usual = (rng.normal(size=n) * rng.choice([1.0, 1e3, 1e-3])).astype(dtype)
    return np.where(rng.random(n) < unusual, rng.choice(few, n), usual)


class _Writer:
    """One program: ``f(a, b, c, out, n)``, arrays of some dtypes and how many iterations there are."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.dtypes = [*(self.r.choice(TYPES) for _ in range(3)), self.r.choice((*TYPES, "bool"))]
        self.names = 0
        self.lines: list[str] = []

    def name_new(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def element(self) -> str:
        where = self.r.choice(("k", "k", "k - 1", f"{self.r.randrange(N)}", "n - 1 - k"))
        return f"{self.r.choice('abc')}[{where}]"

    def operand(self, names: list[str]) -> str:
        chosen = self.r.random()
        if names and chosen < 0.6:
            return self.r.choice(names)
        if chosen < 0.9:
            return self.element()
        return self.r.choice(("2", "0.5", "k", "-1", "0", "3.0"))

    def expression(self, names: list[str]) -> str:
        x, y, z = (self.operand(names) for _ in range(3))
        forms = (
            *(f"{x} {op} {y}" for op in ("+", "-", "*", "+", "-", "*", "/")),
            *(f"{x} {op} {y} * {z}" for op in "+-"),
            f"{x} // {y}",
            f"{x} % {y}",
            f"-({x})",
            f"abs({x})",
            f"np.sqrt({self.element()})",
            f"np.minimum({x}, {y})",
            f"np.maximum({x}, {y})",
            f"np.where({x} < {y}, {y}, {z})",
            f"np.float64({x}) * {y}",
            f"np.exp({self.element()})",
            f"{x} ** 2",
        )
        return self.r.choice(forms)

    def condition(self, names: list[str]) -> str:
        x, y = self.operand(names), self.operand(names)
        return f"{x} {self.r.choice(('<', '<=', '>', '==', '!='))} {y}"

    def body(self, names: list[str], indent: str, depth: int, statements: int) -> None:
        for _ in range(statements):
            kind = self.r.random()
            if kind < 0.5:
                name = self.name_new()
                self.lines.append(f"{indent}{name} = {self.expression(names)}")
                names.append(name)
            elif kind < 0.62:
                self.lines.append(f"{indent}total = total {self.r.choice('+-*')} {self.operand(names)}")
            elif kind < 0.75:
                where = self.r.choice(("k", "k", "k - 1", "(k * 7) % n"))
                self.lines.append(f"{indent}out[{where}] = {self.operand(names)}")
            elif kind < 0.9 and depth:
                self.lines.append(f"{indent}if {self.condition(names)}:")
                self.body(list(names), indent + "    ", depth - 1, self.r.randint(1, 3))
                if self.r.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.body(list(names), indent + "    ", depth - 1, self.r.randint(1, 2))
            elif depth and self.r.random() < 0.5:
                self.lines.append(f"{indent}for j in range({self.r.choice(('3', 'k % 5', '12'))}):")
                self.lines.append(f"{indent}    total = total + {self.r.choice('abc')}[j] * {self.operand(names)}")
            else:
                self.lines.append(f"{indent}total = {self.expression(names)}")

    def source(self) -> str:
        self.body([], "        ", 2, self.r.randint(2, 6))
        start = self.r.choice(("a[0]", "0.0", "b[1] * 1"))
        body = "\n".join(self.lines)
        return f"def f(a, b, c, out, n):\n    total = {start}\n    for k in range(n):\n{body}\n    return total\n"


def program(seed: int) -> tuple[str, list[str]]:
    """The source, and the dtypes of its arrays."""
    writer = _Writer(seed)
    return writer.source(), writer.dtypes


def _function(source: str, name: str) -> Any:
    file = f"<{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space: dict[str, Any] = {"np": np, "__name__": "made"}
    exec(compile(source, file, "exec"), space)
    return space["f"]


def outcome(f: Callable[..., Any], given: list[Any], errors: str) -> tuple[Any, ...]:
    """What a call leaves behind."""
    raised = result = None
    with warnings.catch_warnings(record=True) as caught, np.errstate(all=errors):  # type: ignore[call-overload]
        warnings.simplefilter("always")
        try:
            result = f(*given)
        except Exception as error:
            raised = type(error), str(error).partition("\n")[0]
    told = sorted({str(w.message) for w in caught if not issubclass(w.category, pyop.RetraceWarning)})
    return type(result), b"" if result is None else np.asarray(result).tobytes(), given[3].tobytes(), raised, told


def run(seed: int) -> tuple[str, bool]:
    """What differs, empty if nothing does; and whether machine code was made."""
    source, dtypes = program(seed)
    f = _function(source, f"made {seed}")
    interpreted, compiled = (pyop.compile(f, machine_code=how) for how in ("off", "now"))  # type: ignore[call-overload]
    rng = np.random.default_rng(seed)
    made = False
    for call in range(6):
        n = N if call < 5 else N - 3
        arrays = [special(dtype, N, rng) for dtype in dtypes]
        errors = ("ignore", "warn", "raise")[call % 3]
        found = [outcome(g, [*(a.copy() for a in arrays), n], errors) for g in (f, interpreted, compiled)]
        if found[1] != found[2]:
            return f"machine code differs from the interpreter, call {call}, {errors}: {found[1:]}\n{source}", made
        if found[0] != found[2] and not _may_differ(*found[::2]):
            return f"differs from NumPy, call {call}, {errors}: {found[::2]}\n{source}", made
        made = made or _is_machine_code(compiled, [*arrays, n])
    return "", made


def _may_differ(plain: tuple[Any, ...], compiled: tuple[Any, ...]) -> bool:
    """What nobody reads is not computed and raises nothing (docs/compiling.md); another exception may be the first. The
    signs of NaN are NumPy's in the interpreter as far as its compiler has made the same of the same operations.
    """
    if plain[3] is not None:
        return True
    same = plain[0] is compiled[0] and all(_alike(a, b) for a, b in zip(plain[1:3], compiled[1:3], strict=True))
    return same and compiled[3] is None and set(compiled[4]) <= set(plain[4])


def _alike(a: bytes, b: bytes) -> bool:
    """The same bytes, but for the signs of NaN. Of float32, two are looked at as one: a NaN is one all the more."""
    for dtype in (np.float64, np.float32):
        if len(a) == len(b) and len(a) % np.dtype(dtype).itemsize == 0:
            x, y = np.frombuffer(a, dtype), np.frombuffer(b, dtype)
            if np.array_equal(x.view(f"u{x.itemsize}")[~np.isnan(x)], y.view(f"u{y.itemsize}")[~np.isnan(y)]):
                return bool(np.array_equal(np.isnan(x), np.isnan(y)))
    return a == b


def _is_machine_code(compiled: Any, given: list[Any]) -> bool:
    try:
        with np.errstate(all="ignore"):
            plan = compiled.plan_for(*given)
    except Exception:  # the function itself runs
        return False
    return any(code.state == "ready" for _, code in plan._machine_code())


def main(first: int, last: int, seconds: float = 1e9) -> int:
    """Print what differs, and how many programs ran as machine code."""
    start, tried, coded, wrong = time.monotonic(), 0, 0, 0
    for seed in range(first, last):
        if time.monotonic() - start > seconds:
            break
        text, made = run(seed)
        tried, coded = tried + 1, coded + made
        if text:
            wrong += 1
            print(seed, text, flush=True)
    print(f"{tried} programs, {coded} of them as machine code, {wrong} differ")
    return wrong


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:3]), *(float(x) for x in sys.argv[3:4]))
