"""Random programs, grown by running them: what NumPy refuses is not taken."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np

from .arrays import long_shape, make, random_arrays, random_shape
from .calls import chain_call, ending_call, random_call
from .draw import Made
from .program import LARGEST, Line, Program, Reference, Said, is_of_scalars, run_plainly

CHAINS = 0.45  # so many of the programs are elementwise chains that end in a reduction


def random_program(seed: int, length: int = 12) -> tuple[Program, Reference, list[Line]]:
    """The program of a seed, what NumPy makes of it, and lines that NumPy refused to run after it."""
    r = random.Random(seed)
    chain = r.random() < CHAINS
    while True:
        arrays = random_arrays(r, long_shape(r) if chain and r.random() < 0.7 else random_shape(r))
        if not all(a.constant for a in arrays):
            break
    values, said, lines, refused = list(make(arrays)), [], [], []
    for text, refs in _chain(r, values) if chain else _mixture(r, values, length):
        line = Line(text, refs)
        if _reads_sign_of_nan(line, values) or is_of_scalars(line, values):
            continue
        try:
            line, results, warned = run_plainly(line, values)
        except (MemoryError, RecursionError):
            continue
        except Exception:
            refused.append(line)
            continue
        if _acceptable(results, warned):
            values += results
            said.append(warned)
            lines.append(line)
    outputs = [len(values) - 1, *(r.randrange(len(values)) for _ in range(r.choice([0, 0, 1, 2, 4])))]
    r.shuffle(outputs)
    return Program(tuple(arrays), tuple(lines), tuple(outputs)), Reference(values, said), refused


def _reads_sign_of_nan(line: Line, values: list[np.ndarray]) -> bool:
    """NaNs are compared as NaNs: which sign a sum of them has is the compiler's choice: nothing may look at it."""
    if "copysign" not in line.text and "signbit" not in line.text:
        return False
    return any(values[k].dtype.kind == "f" and np.isnan(values[k]).any() for k in line.refs)


def _mixture(r: random.Random, values: list[np.ndarray], length: int) -> Iterator[Made]:
    """Lines of all kinds; `values` grows as they are taken."""
    yield from _attempts(lambda: random_call(r, values), values, r.randrange(1, length))


def _chain(r: random.Random, values: list[np.ndarray]) -> Iterator[Made]:
    """Elementwise lines, a reduction of the last of them, and sometimes that once more."""
    for _ in range(r.choice([1, 1, 1, 2])):
        yield from _attempts(lambda: chain_call(r, values), values, r.randrange(1, 6))
        yield from _attempts(lambda: ending_call(r, values), values, 1)
    yield from _attempts(lambda: random_call(r, values), values, r.choice([0, 0, 1]))


def _attempts(make: Callable[[], Made], values: list[np.ndarray], wanted: int) -> Iterator[Made]:
    """Calls, until so many were taken or three times as many tried."""
    taken = 0
    for _ in range(3 * wanted):
        before = len(values)
        if taken < wanted:
            yield make()
            taken += len(values) > before


def _acceptable(results: list[np.ndarray], warned: Said) -> bool:
    """Not too large, of numbers, and nothing that NumPy is about to drop."""
    return not any(issubclass(category, DeprecationWarning | FutureWarning) for category, _ in warned) and all(
        a.ndim <= 5 and a.size <= LARGEST and a.dtype.kind in "biufc" for a in results
    )
