"""A program: lines of NumPy over its inputs, and the graph of the same lines."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import pyop

from .arrays import Array, make, source
from .written import FUNCTIONS

Said = list[tuple[type[Warning], str]]
LARGEST = 20_000


def _opaque(x: Any) -> Any:
    return x.copy()


def _reversed_view(x: Any) -> Any:
    return x[::-1] if x.ndim else x


def _names(plain: bool) -> dict[str, Any]:
    try:
        from scipy import special
    except ImportError:
        special = None
    functions = {"opaque": _opaque, "reversed_view": _reversed_view}
    if not plain:
        functions = {name: pyop.op(function, like="x") for name, function in functions.items()}
    return {"np": np, "special": special, **FUNCTIONS, **functions}


_HELPERS = {
    "opaque": 'pyop.op(lambda x: x.copy(), like="x")',
    "reversed_view": 'pyop.op(lambda x: x[::-1] if x.ndim else x, like="x")',
}


def _imports(text: str) -> list[str]:
    found = ["from scipy import special"] if "special." in text else []
    helpers = [name for name in ("numbers", "unaligned") if f"{name}(" in text]
    found += [f"from tests.fuzz.arrays import {', '.join(helpers)}"] * bool(helpers)
    written = [name for name in FUNCTIONS if f" {name}(" in text]
    return [*found, f"from tests.fuzz.written import {', '.join(written)}"] if written else found


_NAMES = {plain: _names(plain) for plain in (True, False)}


@cache
def _function(text: str, plain: bool) -> Any:
    """The text as a function of what stands for ``$0``, ``$1``, …"""
    places = sorted({int(k) for k in re.findall(r"\$(\d)", text)})
    return eval(f"lambda {', '.join(f's{k}' for k in places)}: {text.replace('$', 's')}", _NAMES[plain])


@dataclass(frozen=True)
class Line:
    """One call: its text, the places of the values it reads, and the names it gives its results, such as ``$, $``."""

    text: str
    refs: tuple[int, ...]
    results: str = "$"

    @property
    def n_out(self) -> int:
        return self.results.count("$")

    def run(self, values: Sequence[Any], plain: bool) -> list[Any]:
        result = _function(self.text, plain)(*(values[k] for k in self.refs))
        return list(result) if isinstance(result, tuple | list) else [result]


# Of one complex number: np.nanmax loses the imaginary part of a nan, as it does of no array; np.square has one of two
# results, by where its operands happen to lie.
_ODD_OF_COMPLEX = ("nanmax", "nanmin", "np.square")


def is_of_scalars(line: Line, values: Sequence[Any]) -> bool:
    """Whether NumPy takes the line of its scalars only (a float64 for where=), or computes otherwise with them."""
    given = [values[k] for k in line.refs]
    kinds = {x.dtype.kind for x in given if isinstance(x, np.generic)}
    if not kinds:
        return False
    if "c" in kinds and any(name in line.text for name in _ODD_OF_COMPLEX):
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _function(line.text, True)(*map(np.asarray, given))
        except Exception:
            return True
    return False


def run_plainly(line: Line, values: Sequence[Any]) -> tuple[Line, list[np.ndarray], Said]:
    """The line with names for its results; those, scalars among them, since these compute by other ways; and the
    warnings."""
    given = [values[k] for k in line.refs]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = _function(line.text, True)(*given)
    several = isinstance(result, tuple | list)
    results = [x if isinstance(x, np.generic) else np.asarray(x) for x in (result if several else [result])]
    named = replace(line, results="$, " * len(results) if several else "$")
    return named, results, [(w.category, str(w.message)) for w in caught]


@dataclass(frozen=True)
class Reference:
    """What NumPy computes: every value, and what each line said."""

    values: list[np.ndarray]
    said: list[Said]


@dataclass(frozen=True)
class Program:
    """Inputs (constants among them), lines, and the places of the values that are returned."""

    arrays: tuple[Array, ...]
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]

    def first_of(self, line: int) -> int:
        """The place of the first value of a line."""
        return len(self.arrays) + sum(one.n_out for one in self.lines[:line])

    def live(self) -> set[int]:
        """The lines that the outputs need."""
        needed, live = set(self.outputs), set()
        first = self.first_of(len(self.lines))
        for k in range(len(self.lines) - 1, -1, -1):
            first -= self.lines[k].n_out
            if not needed.isdisjoint(range(first, first + self.lines[k].n_out)):
                live.add(k)
                needed.update(self.lines[k].refs)
        return live

    def of_constants(self) -> set[int]:
        """The lines that read nothing but constants, directly or not."""
        known = {k for k, array in enumerate(self.arrays) if array.constant}
        found, first = set(), len(self.arrays)
        for k, line in enumerate(self.lines):
            if known.issuperset(line.refs):
                known.update(range(first, first + line.n_out))
                found.add(k)
            first += line.n_out
        return found

    def inputs(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Those of the arrays that are fed."""
        return [a for a, made in zip(self.arrays, arrays, strict=True) if not a.constant for a in [made]]

    def values(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """What NumPy makes of these arrays, in the lines that the outputs need; None for the others."""
        values: list[Any] = list(arrays)
        live = self.live()
        for k, line in enumerate(self.lines):
            values += run_plainly(line, values)[1] if k in live else [None] * line.n_out
        return values

    def reference(self, strict: bool = True) -> Reference:
        """Run by NumPy; raises what NumPy raises, if not `strict` only where the outputs need it."""
        values, said = list(make(list(self.arrays))), []
        live = self.live()
        for k, line in enumerate(self.lines):
            try:
                named, results, warned = run_plainly(line, values)
            except Exception:
                if strict or k in live:
                    raise
                named, results, warned = line, [np.zeros(0)] * line.n_out, []
            if named != line or sum(a.size for a in results) > 10 * LARGEST:
                raise ValueError("another number of results, or too large ones")
            values += results
            said.append(warned)
        return Reference(values, said)

    def raises(self) -> bool:
        """Whether NumPy raises, in a line that the outputs need or in another one."""
        try:
            self.reference()
        except Exception:
            return True
        return False

    def graph(self, symbolic: bool = False) -> tuple[pyop.Graph, list[Any]]:
        """The graph, without outputs yet, and its Values; sizes get names if it is `symbolic`."""
        made = make(list(self.arrays))
        graph = pyop.Graph()
        values: list[Any] = []
        for k, (array, concrete) in enumerate(zip(self.arrays, made, strict=True)):
            if array.constant:
                values.append(graph.constant(concrete))
            else:
                shape = tuple(f"n{size}" if symbolic and size > 1 else size for size in array.shape)
                values.append(graph.input(pyop.Spec(concrete.dtype, shape), name=f"x{k}"))
        for line in self.lines:
            results = line.run(values, plain=False)
            if len(results) != line.n_out:
                raise AssertionError(f"{line.text} gives {len(results)} Values, but NumPy gives {line.n_out} arrays")
            values += results
        return graph, values

    def resized(self, sizes: dict[int, int]) -> Program:
        """The same lines over inputs of other sizes."""
        arrays = [
            a if a.constant else replace(a, shape=tuple(sizes.get(size, size) for size in a.shape)) for a in self.arrays
        ]
        return replace(self, arrays=tuple(arrays))

    def source(self, compiled: str = "compile()") -> str:
        """Python to paste."""
        every = " ".join(line.text for line in self.lines)
        names = [("c" if a.constant else "x") + str(k) for k, a in enumerate(self.arrays)]
        text = source(list(self.arrays), names)
        arguments = [n for n in names if n[0] == "x"]
        body, known = [], list(names)
        for k, name in enumerate(names):
            if name[0] == "c":
                body.append(f"    v{k} = {arguments[0]}.graph.constant(c{k}) if plan else c{k}")
                known[k] = f"v{k}"
        for line in self.lines:
            results = [f"v{len(known) + k}" for k in range(line.n_out)]
            left = line.results.replace("$", "{}").format(*results).strip()
            call = re.sub(r"\$(\d)", lambda found, refs=[known[k] for k in line.refs]: refs[int(found[1])], line.text)
            body.append(f"    {left} = {call}")
            known += results
        plan = ", plan=True" if any(n[0] == "c" for n in names) else ""
        text += [f"def f({', '.join(arguments)}{plan}):", *body]
        text += [f"    return [{', '.join(known[k] for k in self.outputs)}]"]
        specs = ", ".join(f"pyop.Spec.of({name})" for name in arguments)
        text += [f"plan = pyop.trace(f, {specs}).{compiled}", f"got = plan({', '.join(arguments)})"]
        want = [*arguments, *(["plan=False"] if plan else [])]
        text = [f"{name} = {meaning}" for name, meaning in _HELPERS.items() if name in every] + text
        text = ["import numpy as np, pyop", *_imports("\n".join(text)), *text]
        return "\n".join([*text, f"want = f({', '.join(want)})"])
