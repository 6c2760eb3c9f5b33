"""A program: arguments, statements, and what is returned; and how it is grown."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import Several, array
from . import blocks, branches, loops, making, statements
from .draw import KINDS, Draw
from .helpers import SOURCE, names

assert all((blocks, branches, loops, making, statements))

DTYPES = ["f8", "f8", "f8", "f8", "f4", "i8", "i1", "?", "c16"]
SHAPES = ["4", "3,2", "2,2", "", "1", "0", "2,3", "5"]
LAYOUTS = ["", "", "", " step", " neg", " F", " ro"]
GLOBALS, STEPS = names(), names(complexes=True)


@dataclass(frozen=True)
class Program:
    """Texts of arguments (``same`` is the one before it once more, ``overlapping`` is it backwards, ``now and then`` in
    every other call), statements, names that are returned."""

    arguments: tuple[str, ...]
    lines: tuple[str, ...]
    results: tuple[str, ...]

    def text(self) -> str:
        head = f"def f({', '.join(f'x{k}' for k in range(len(self.arguments)))}):"
        body = [f"    {part}" for line in self.lines for part in line.split("\n")]
        return "\n".join([head, *body, f"    return {', '.join(self.results)}{',' * (len(self.results) == 1)}", ""])

    def function(self, *, complexes: bool = False) -> Callable[..., Any]:
        scope: dict[str, Any] = {}
        exec(compile(self.text(), "<program>", "exec"), STEPS if complexes else GLOBALS, scope)
        made: Callable[..., Any] = scope["f"]
        return made

    def make(self, seed: int) -> list[Any]:
        made = Several()
        for k, text in enumerate(self.arguments):
            if text == "same":
                made.append(made[-1])
            elif text == "overlapping":
                made.append(reversed_view(made[-1]))
            elif text == "now and then":
                made.append(reversed_view(made[-1]) if seed % 2 == 0 else np.array(reversed_view(made[-1])))
            else:
                made.append(array(text, seed + 10 * k))
        return list(made)

    def source(self, way: str, seeds: tuple[int, ...]) -> str:
        """Python to paste."""
        text = self.text()
        used = [source for name, source in SOURCE.items() if re.search(rf"\b{name}\b", text)]
        found = ["import math", "import numpy as np, pyop", *used, text]
        imports = "from tests.silence.made.program import Program"
        found += [f"# way: {way}", imports, f"make = Program({self.arguments!r}, (), ()).make"]
        run = {"compile": "pyop.compile(f)", "unoptimized": "pyop.compile(f, optimize=False)"}
        run["threads"] = "pyop.compile(f, threads=2)"
        made = run.get(way, "pyop.trace(f, *map(pyop.Spec.of, make(1))).compile()" if way == "plan" else None)
        if made is None:
            found.append("loss = lambda *x: sum(np.sum(r * (k + 1.0)) for k, r in enumerate(f(*x)))")
            made = (
                "pyop.value_and_grad(loss)"
                if "reverse" in way
                else "lambda x: pyop.jvp(loss, (x,), (np.ones_like(x),))"
            )
            made = f"pyop.compile({made})" if "compiled" in way else made
        found.append(f"g = {made}")
        for seed in seeds:
            found.append(f"print('plain', f(*make({seed})))\nprint('here ', g(*make({seed})))")
        return "\n".join(found)


def reversed_view(a: np.ndarray) -> np.ndarray:
    return a[::-1] if a.ndim else a[...]


def random_program(seed: int, *, smooth: bool = False) -> Program:
    """Grown statement by statement, each tried; one that NumPy refuses is seldom kept."""
    r = random.Random(seed)
    arguments = [random_argument(r, smooth)]
    while r.random() < 0.4 and len(arguments) < 3:
        beside = ["same", "overlapping", "now and then"][: 1 if smooth else None]
        arguments.append(r.choice(beside) if r.random() < 0.2 else random_argument(r, smooth))
    program = Program(tuple(arguments), (), ())
    variables = dict(GLOBALS)
    d = Draw(r, variables, smooth)
    variables |= {f"x{k}": a for k, a in enumerate(program.make(1))}
    fit = [(weight, maker) for weight, is_smooth, maker in KINDS.values() if is_smooth or not smooth]
    # Few kinds in each program: some write by key, others only by operators or by no name but the first.
    makers = r.sample(fit, r.randrange(4, 14))
    lines: list[str] = []
    if r.random() < 0.8:
        lines.append("v0 = x0 * 1.0" if smooth or r.random() < 0.5 else "v0 = x0.copy()")
        exec(lines[0], variables)
    wanted = r.randrange(2, 9)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(3 * wanted):
            if not d.named(lambda a: isinstance(a, np.ndarray) and a.dtype != object):
                break  # all names are bound to something else by now
            line = r.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0](d)
            try:
                exec(line, variables)
            except Exception:
                # What nobody reads a plan does not compute, so it does not raise either.
                if r.random() > 0.03 or smooth or re.match(r"v\d+ = ", line):
                    continue
            lines.append(line)
            if len(lines) > wanted:
                break
    every = d.named(lambda value: returnable(value, smooth))
    mine = [name for name in every if name[0] != "x"] if r.random() < 0.9 else []
    results = r.sample(mine or every, min(len(mine or every), r.randrange(1, 4)))
    if results and not smooth and r.random() < 0.1:
        results.append(results[0])
    return Program(program.arguments, tuple(lines), tuple(results))


def random_argument(r: random.Random, smooth: bool) -> str:
    if smooth:
        return f"f8[{r.choice(SHAPES[:3])}]{r.choice(['', '', '', ' step'])}"
    return f"{r.choice(DTYPES)}[{r.choice(SHAPES)}]{r.choice(LAYOUTS)}"


def returnable(value: Any, smooth: bool) -> bool:
    if smooth:
        return isinstance(value, np.ndarray | np.generic | float) and np.asarray(value).dtype == float
    if isinstance(value, list | tuple):
        return all(returnable(item, smooth) for item in value)
    if isinstance(value, dict):
        return all(returnable(item, smooth) for item in value.values())
    return isinstance(value, np.ndarray | np.generic | float | int | complex | str) and np.size(value) < 200
