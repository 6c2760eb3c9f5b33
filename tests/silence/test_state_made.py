"""Functions made by chance that keep something between calls: what they leave is as without pyop.compile, or refused.

Logs, which every call makes longer, are the exception that docs/compiling.md names, and none is made here.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections import deque
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyop

NAMES = ("a", "b", "c")


class Slots:
    __slots__ = NAMES


class Kept:
    def __init__(self, held):
        self.held = held


# What does not go by the numbers in the array, and where it is put.
PLAIN = """
{k}; {k}.5; len(x); 1000 * len(x); x.shape; (x.shape, {k}); [len(x)] * 2; str(x.shape); x.dtype; None; x.ndim > 1;
np.arange({k} % 4); np.full(2, len(x)); dict(n=len(x)); set((len(x), 5)); SimpleNamespace(n=len(x));
lambda y: y * len(x); np.float64({k}); range(len(x)); frozenset(x.shape)
"""
TARGETS = "s.{name}; D['{name}']; L[{k}]; G_{name}; s.deep.{name}; type(s).{name}_; MOD.{name}; s.slots.{name}"


def plain_value(chance: random.Random) -> str:
    return chance.choice(PLAIN.split(";")).strip().format(k=chance.randint(-2, 2000))


def target(chance: random.Random) -> str:
    return chance.choice(TARGETS.split("; ")).format(name=chance.choice(NAMES), k=chance.randrange(2))


def statement(chance: random.Random) -> str:
    into, value = target(chance), plain_value(chance)
    name = chance.choice(NAMES)
    return chance.choice(
        [
            *[f"{into} = {value}"] * 4,
            f"setattr(s, {name!r}, {value})",
            f"s.__dict__.update({name}={value})",
            f"vars(s.deep)[{name!r}] = {value}",
            f"if len(x) > {chance.randrange(5)}: {into} = {value}",
            f"if getattr(s, {name!r}, None) is None: s.{name} = {value}",
            f"A[{chance.randrange(3)}] = len(x)",
            f"A[:] = {chance.randrange(9)}",
            "L.reverse()",
            f"s.{name} = [*(s.{name} if isinstance(s.{name}, list) else [])[-2:], len(x)]",
            f"{into} = {target(chance)}",
            f"{into} = x * 2",
            f"{into} = [{{'k': (x, {value})}}]",
            f"{into} = lambda y: x * y",
            f"{into} = (s.n, {value})",
            f"M.setdefault(x.shape, {value})",
            f"M[len(x)] = {value}",
            f"if x.shape not in M: M[x.shape] = {value}",
            f"R.append({value})",
            f"D[{name!r}], s.{name} = s.{name}, D[{name!r}]",
            f"s.{name} = Kept({value})",
            f"s.{name}, s.deep = s.deep, s.{name}",
            f"y = y * np.sum(A) if D.get({name!r}) is None else y + len(x)",
            f"y = y + (s.{name} if isinstance(s.{name}, (int, float)) else 0)",
            f"D.pop({name!r}, None)",
            "s.n += 1",
            f"s.n = {chance.randrange(3)}",
            "L[0], L[1] = L[1], L[0]",
        ]
    )


def made(seed: int) -> tuple[str, list[tuple[int, str]]]:
    """A function's source, and calls of it: a length, and what somebody else does before."""
    chance = random.Random(seed)
    lines = [statement(chance) for _ in range(chance.randint(1, 4))]
    source = "def f(s, x):\n    global G_a, G_b, G_c\n    y = x * 2\n" + "".join(f"    {line}\n" for line in lines)
    calls = []
    for _ in range(8):
        other = f"{target(chance)} = {chance.choice(['7', '(9,)', '[1, 2]', 'None'])}" if chance.random() < 0.25 else ""
        calls.append((chance.choice((3, 3, 4, 5)), other))
    return source + "    return y\n", calls


def shown(x: Any) -> str:
    if callable(x) and not isinstance(x, type):
        try:
            return f"function {x(10)}"
        except pyop.GraphError as error:
            return f"GraphError {error}"
    if isinstance(x, Slots):
        return shown({name: getattr(x, name) for name in NAMES})
    if isinstance(x, (SimpleNamespace, Kept)):
        return shown(vars(x))
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key}: {shown(x[key])}" for key in x) + "}"
    return f"[{', '.join(map(shown, x))}]" if isinstance(x, (list, deque, tuple)) else f"{type(x).__name__} {x!r}"


def run(source: str, calls: list[tuple[int, str]], wrap: Any) -> list[str]:
    class Held:
        a_ = b_ = c_ = 0
        f: Any

    world: dict[str, Any] = {"np": np, "SimpleNamespace": SimpleNamespace, "D": {"a": None, "b": 0, "c": (1,)}}
    world |= {
        "M": {},
        "R": deque([0, 0], maxlen=2),
        "Kept": Kept,
        "MOD": ModuleType("mine"),
        "L": [0, (1,)],
        "A": np.zeros(3),
        "G_a": 0,
        "G_b": None,
        "G_c": (1,),
        "__name__": "made",
    }
    s = Held()
    s.slots = Slots()
    for owner in (world["MOD"], s.slots):
        owner.a, owner.b, owner.c = 0, None, (1,)
    s.a, s.b, s.c, s.n, s.deep = 0, None, (1,), 0, SimpleNamespace(a=0, b=None, c=(1,))
    exec(source, world)
    Held.f = world["f"]
    function, said = wrap(s.f), []
    for n, other in calls:
        with contextlib.suppress(AttributeError):  # where `deep` is another object by now
            exec(other, {**world, "s": s}) if not other.startswith("G_") else exec(other, world)
        try:
            said.append(f"{function(np.arange(1.0, n + 1))}")
        except Exception as error:
            said.append(f"{type(error).__name__} {error}")
        state = [vars(s), world["D"], world["L"], world["A"], world["M"], world["R"], *(world[f"G_{k}"] for k in NAMES)]
        state += [vars(Held)[f"{k}_"] for k in NAMES] + [getattr(world["MOD"], k) for k in NAMES]
        said.append(", ".join(map(shown, state)))
    return said


REFUSALS = ("traced once for many calls", "puts Values into", "copy first: `x = x.copy()`")


def check(seed: int) -> bool:
    """Whether the function was compiled, and neither ran itself nor was refused."""
    source, calls = made(seed)
    want = run(source, calls, lambda f: f)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        got = run(source, calls, pyop.compile)
    for k, (mine, other) in enumerate(zip(got, want, strict=True)):
        if mine != other and any(refusal in mine for refusal in REFUSALS):
            return False
        assert mine == other, f"seed {seed}, call {k // 2} of {calls}:\n{source}\n{mine}\n{other}"
    return not any("function itself runs" in str(warning.message) for warning in told)


def test_what_is_kept_is_as_without_it():
    assert 300 < sum(map(check, range(1000))) < 1000


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(10))
def test_what_is_kept_is_as_without_it_campaign(block):
    assert sum(map(check, range(10_000 * (block + 1), 10_000 * (block + 2)))) > 3000
