"""Loops whose body is one operation on single elements: dtypes, operations, mixed pairs, casts, stores, positions.

A case is the text of such a loop and the dtypes of what it reads. `function` makes it a function with source, which
`python -m benchmarks elements` times and `test_elements.py` holds against itself, compiled.
"""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)

BINARY = (
    *(f"x {op} y" for op in ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")),
    *(f"x {op} y" for op in ("<", "<=", "==", "!=", ">", ">=")),
    *(f"np.{name}(x, y)" for name in ("minimum", "maximum", "fmin", "fmax", "hypot", "arctan2", "copysign", "fmod")),
    *(f"np.{name}(x, y)" for name in ("add", "multiply", "divide", "power", "float_power", "floor_divide")),
    *(f"np.{name}(x, y)" for name in ("remainder", "nextafter", "logical_and", "logical_xor", "gcd", "heaviside")),
    *(f"np.{name}(x, y)" for name in ("left_shift", "bitwise_and", "logaddexp", "less", "equal", "ldexp")),
    "np.where(x < y, x, y)",
    "divmod(x, y)[0]",
    "divmod(x, y)[1]",
    "min(x, y)",
    "max(x, y)",
    "x if x > y else y",
    "np.clip(x, y, y)",
)
UNARY = (
    *("-x", "+x", "abs(x)", "~x", "not x", "x * x", "x ** 2", "x ** 3", "x ** -1", "x ** 0.5", "x ** 2.5"),
    *(f"np.{name}(x)" for name in ("sign", "floor", "ceil", "rint", "trunc", "sqrt", "cbrt", "square", "reciprocal")),
    *(f"np.{name}(x)" for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan")),
    *(f"np.{name}(x)" for name in ("arctan", "sinh", "tanh", "arcsinh", "degrees", "radians", "fabs", "absolute")),
    *(f"np.{name}(x)" for name in ("isnan", "isfinite", "isinf", "signbit", "conj", "negative", "positive", "invert")),
    *(f"np.{name}(x)" for name in ("logical_not", "round", "real", "imag", "angle", "spacing", "bitwise_count")),
    *("x.real", "x.imag", "x.conjugate()", "round(x)"),
)
# With Python's numbers, written down or given, and with the counter.
NUMBERS = (
    *(f"x {op} {number}" for op in ("+", "-", "*", "/") for number in ("2", "2.5", "True", "2j")),
    *("x // 2", "x % 3", "x % 2.5", "x & 1", "x | 6", "x << 1", "x >> 1", "x < 3", "x > 2.5", "x == 3", "2 - x"),
    *(
        "1 / x",
        "2.5 * x",
        "2 ** x",
        "7 // x",
        "7 % x",
        "np.minimum(x, 3)",
        "np.maximum(x, 0.5)",
        "np.where(x > 2, x, 0)",
    ),
    *(f"x {op} {given}" for op in ("+", "*", "/", "//", "%", "<") for given in ("i", "f")),
    *("x * c", "x + t", "x ** i", "x ** f", "i * x", "f - x", "np.fmod(x, f)", "np.hypot(x, i)"),
    *(
        "x + k",
        "x * k",
        "k - x",
        "x / (k + 1)",
        "(x + 1) * 2",
        "x < k",
        "k % 7",
        "k // 3",
        "k * 2.5",
        "k ** 2",
        "k / 7",
    ),
)
CASTS = (
    *("int(x)", "float(x)", "bool(x)", "complex(x)"),
    *(f"np.{name}(x)" for name in DTYPES if name != "bool"),
    *(f"x.astype(np.{name})" for name in ("bool_", *DTYPES[1:])),
    *("int(x) * 2", "float(x) * f", "int(x) % 5", "int(x) // 2", "float(x) ** 2"),
)
MIXED = (
    "x + y",
    "x * y",
    "x / y",
    "x < y",
    "x == y",
    "x // y",
    "x % y",
    "x ** y",
    "np.minimum(x, y)",
    "np.where(x > y, x, y)",
)
POSITIONS = {
    "a[-k]": "a[-k]",
    "a[k - 1]": "a[k - 1]",
    "a[n - 1 - k]": "a[n - 1 - k]",
    "a[(k + 1) % n]": "a[(k + 1) % n]",
    "a[k // 2]": "a[k // 2]",
    "a[(3 * k) % n]": "a[(3 * k) % n]",
    "a[places[k]]": "a[places[k]]",
    "a[small[k]]": "a[small[k]]",
    "a[int(places[k])]": "a[int(places[k])]",
    "a[int(x)]": "a[int(b[k])]",
    "a[int(x) % n]": "a[int(b[k] * 7) % n]",
    "a[places[k] - 1]": "a[places[k] - 1]",
    "a[k & 7]": "a[k & 7]",
    "a[k >> 1]": "a[k >> 1]",
    "a[min(k + 1, n - 1)]": "a[min(k + 1, n - 1)]",
    "a[k ^ 1]": "a[k ^ 1]",
    "grid[k // 8, k % 8]": "grid[k // 8, k % 8]",
    "grid[k >> 3, -1]": "grid[k >> 3, -1]",
    "grid[places[k] >> 3, places[k] & 7]": "grid[places[k] >> 3, places[k] & 7]",
    "cube[k // 8, k % 8, 1]": "cube[k // 8, k % 8, 1]",
}
INTO = {
    "out[-1 - k]": "out[-1 - k] = a[k]",
    "out[places[k]]": "out[places[k]] = a[k]",
    "out[places[k]] +=": "out[places[k]] += a[k]",
    "out[int(x)] +=": "out[int(b[k])] += 1",
    "out[k] +=": "out[k] += a[k]",
    "out[k] *=": "out[k] *= 2",
    "out[k] = k": "out[k] = k",
    "out[k] = 1": "out[k] = 1",
    "out[k] = 0.5": "out[k] = 0.5",
    "out[k] = True": "out[k] = True",
}
PARAMETERS = ("a", "b", "out", "i", "f", "t", "c", "places", "small", "grid", "cube")


@dataclass(frozen=True)
class Case:
    """One loop: `statement` is its body; `x` and `y` are elements of arrays of dtypes `a` and `b`."""

    group: str
    text: str
    a: str
    b: str
    statement: str
    out: str = ""  # "": what the operation gives

    @property
    def name(self) -> str:
        """The operation and the dtypes that it reads and writes."""
        parts = [f"{key} {getattr(self, key)}" for key in ("a", "b", "out") if getattr(self, key)]
        return f"{self.text} [{', '.join(parts)}]"

    @property
    def source(self) -> str:
        """The text of the function."""
        lines = [f"def element({', '.join(PARAMETERS)}):", "    n = len(a)", "    for k in range(n):"]
        lines += [f"        {v} = {of}[k]" for v, of in (("x", "a"), ("y", "b")) if _reads(self.statement, v)]
        return "\n".join([*lines, f"        {self.statement}", ""])


def _reads(statement: str, variable: str) -> bool:
    names = compile(statement, "", "exec").co_names
    return variable in names


_made = 0


def function(case: Case) -> Callable[..., None]:
    """The loop as a function, with source."""
    global _made
    _made += 1
    name = f"<element {_made}>"
    linecache.cache[name] = (len(case.source), None, case.source.splitlines(True), name)
    scope: dict[str, Any] = {"np": np}
    exec(compile(case.source, name, "exec"), scope)
    made: Callable[..., None] = scope["element"]
    return made


def result_dtype(case: Case) -> np.dtype | None:
    """What the operation gives of ordinary numbers. None if it raises."""
    if case.out:
        return np.dtype(case.out)
    scope: dict[str, Any] = {"np": np, "x": np.dtype(case.a).type(3), "y": np.dtype(case.b or case.a).type(2)}
    scope |= {"i": 3, "f": 1.5, "t": True, "c": 1 + 2j, "k": 3, "out": [None] * 4}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(case.statement, scope)
        found = np.asarray(scope["out"][3]).dtype
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
    return found if found.kind in "biufc" and found.itemsize <= 16 else None


def ordinary(dtype: str, n: int, shift: int = 0) -> np.ndarray:
    """Small numbers, none of which is zero."""
    return np.array([1 + (k + shift) % 5 for k in range(n)]).astype(dtype)


def arguments(case: Case, n: int, make: Callable[..., np.ndarray] = ordinary) -> dict[str, Any] | None:
    """What the function is called with. None if nothing of that dtype can be computed."""
    out = result_dtype(case)
    if out is None:
        return None
    places = np.arange(n)[::-1].copy()
    return {
        "a": make(case.a, n),
        "b": make(case.b or "float64", n, 2),
        "out": np.zeros(n, out),
        "i": 3,
        "f": 1.5,
        "t": True,
        "c": 1 + 2j,
        "places": places,
        "small": places.astype("int16"),
        "grid": make(case.a, n).reshape(-1, 8),
        "cube": np.repeat(make(case.a, n), 2).reshape(-1, 8, 2),
    }


def cases() -> Iterator[Case]:
    """All of them."""
    for dtype in DTYPES:
        for text in BINARY:
            yield Case("two of a dtype", text, dtype, dtype, f"out[k] = {text}")
        for text in UNARY:
            yield Case("one", text, dtype, "", f"out[k] = {text}")
        for text in NUMBERS:
            yield Case("with Python numbers", text, dtype, "", f"out[k] = {text}")
        for text in CASTS:
            yield Case("casts", text, dtype, "", f"out[k] = {text}")
        for text, value in POSITIONS.items():
            yield Case("positions", text, dtype, "", f"out[k] = {value}", dtype)
        for text, statement in INTO.items():
            yield Case("writes", text, dtype, "", statement, dtype)
    for a in DTYPES:
        for b in DTYPES:
            if a == b:
                continue
            yield Case("stores", "out[k] = x", a, "", "out[k] = x", b)
            for text in MIXED:
                yield Case("two dtypes", text, a, b, f"out[k] = {text}")
