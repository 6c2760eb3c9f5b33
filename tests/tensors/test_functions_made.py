"""Programs with Functions that write, draw, count and read: every way gives what they give on arrays, or is refused."""

from __future__ import annotations

import linecache
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import pyop
from tests.tensors.functions_made import SIZE, Program, made, program

SPECS = (f"float64[{SIZE}]",) * 2
WAYS = {
    "compiled": lambda f, loss: pyop.compile(f),
    "traced": lambda f, loss: pyop.trace(f, *SPECS).compile(),
    "gradient": lambda f, loss: pyop.grad(loss, (0, 1)),
    "gradient compiled": lambda f, loss: pyop.compile(pyop.grad(loss, (0, 1))),
    "gradient of the graph": lambda f, loss: pyop.grad(pyop.trace(loss, *SPECS), (0, 1)),
    "gradient of the compiled": lambda f, loss: pyop.grad(pyop.compile(loss), (0, 1)),
}
CALLS = 3


class World:
    """What a program can reach, as it is at the start."""

    def __init__(self, text: str, seed: int) -> None:
        file = f"<program {seed}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        self.names: dict[str, Any] = {
            "np": np,
            "pyop": pyop,
            "made": made,
            "__name__": "made",
            "COUNT": [0, 0],
            "K": [1],
        }
        self.names["RNG"] = np.random.default_rng(seed)
        exec(compile(text, file, "exec"), self.names)
        np.random.seed(seed % 2**32)  # noqa: NPY002

    def state(self) -> str:
        kept = np.random.get_state()  # noqa: NPY002
        return f"{self.names['COUNT']} {self.names['RNG'].bit_generator.state} {kept[1].sum()} {kept[2]}"


def arguments(seed: int, call: int) -> list[np.ndarray[Any, Any]]:
    chance = np.random.default_rng((seed, call))
    return [chance.integers(-8, 9, SIZE) / 4 for _ in range(2)]


def shared(results: tuple[Any, ...], given: list[Any]) -> str:
    arrays = [r for r in results if isinstance(r, np.ndarray) and r.ndim]
    return "".join("01"[np.shares_memory(a, b)] for a in arrays for b in (*arrays, *given))


def run(p: Program, seed: int, way: Any) -> list[tuple[Any, ...]]:
    """What each call gives and leaves; ends with an exception."""
    world = World(p.text(), seed)
    said: list[tuple[Any, ...]] = []
    try:
        function = way(world.names["f"], world.names["loss"])
        for call in range(CALLS):
            world.names["K"][0] = call + 1.5
            given = arguments(seed, call)
            results = function(*given)
            said.append((results, given, shared(results, given), world.state()))
    except Exception as error:
        said.append((error,))
    return said


def told(p: Program, seed: int) -> list[tuple[Any, ...]]:
    """The same by Dual numbers: of the loss its gradients."""
    world = World(p.text(dual=True), seed)
    said = []
    for call in range(CALLS):
        world.names["K"][0] = call + 1.5
        tangents = np.eye(2 * SIZE)
        given = [made(a, t) for a, t in zip(arguments(seed, call), (tangents[:SIZE], tangents[SIZE:]), strict=True)]
        loss = world.names["loss"](*given)
        said.append(((loss.tan[:SIZE], loss.tan[SIZE:]), [d.val for d in given], "", world.state()))
    return said


def same(found: Any, wanted: Any, close: bool) -> bool:
    a, b = np.asarray(found), np.asarray(wanted)
    if close:
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def differs(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], gradient: bool) -> str:
    """What is not as it should be, "refused", or nothing."""
    for call, (mine, other) in enumerate(zip(found, wanted, strict=False)):
        if len(mine) == 1:
            return "refused"
        if not all(same(a, b, gradient) for a, b in zip(mine[0], other[0], strict=True)):
            return f"results of call {call}: {mine[0]} and not {other[0]}"
        if not all(same(a, b, False) for a, b in zip(mine[1], other[1], strict=True)):
            return f"arguments after call {call}: {mine[1]} and not {other[1]}"
        if not gradient and mine[2] != other[2]:
            return f"memory of results of call {call}: {mine[2]} and not {other[2]}"
        if mine[3] != other[3]:
            return f"state after call {call}: {mine[3]} and not {other[3]}"
    return ""


def check(seed: int, counts: Counter[str]) -> list[str]:
    """What is wrong in which way, as text; counts what is right and refused."""
    p = program(seed)
    plain = run(p, seed, lambda f, loss: f)
    assert len(plain) == CALLS, f"seed {seed}: {plain[-1]}\n{p.text()}"
    wanted = told(p, seed)
    assert all(a[3] == b[3] for a, b in zip(plain, wanted, strict=True)), f"seed {seed}: the oracle"
    wrong = []
    for name, way in WAYS.items():
        gradient = name.startswith("gradient")
        if gradient and not p.smooth:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(p, seed, way)
        said = differs(found, wanted if gradient else plain, gradient)
        counts[f"{name}: {'right' if not said else said if said == 'refused' else 'wrong'}"] += 1
        if said == "refused":
            counts[f"  {name}: {type(found[-1][0]).__name__}: {str(found[-1][0])[:100]}"] += 1
        elif said:
            wrong.append(f"seed {seed}, {name}: {said}\n{p.text()}")
    return wrong


def checked(seeds: range) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        wrong = check(seed, counts)
        assert not wrong, wrong[0]
    return counts


def test_functions_in_graphs_do_what_they_do_on_arrays():
    counts = checked(range(40))
    assert counts["compiled: right"] > 30
    assert counts["gradient compiled: right"] > 15


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(10))
def test_functions_in_graphs_do_what_they_do_on_arrays_campaign(block):
    checked(range(1000 * (block + 1), 1000 * (block + 2)))


def main(first: int, last: int) -> None:
    """Print what is wrong: python -m tests.tensors.test_functions_made 0 1000."""
    counts: Counter[str] = Counter()
    shortest: dict[str, str] = {}
    for seed in range(first, last):
        for text in check(seed, counts):
            name = text.partition(":")[0].partition(", ")[2]
            shortest[name] = min(shortest.get(name, text), text, key=len)
    for name, n in sorted(counts.items(), key=lambda row: (row[0].startswith(" "), -row[1], row[0])):
        print(f"{n:7} {name}")
    for text in shortest.values():
        print("---", text, sep="\n")


if __name__ == "__main__":
    import sys

    main(*map(int, sys.argv[1:3]))
