"""Containers made by chance that hold themselves, given to everything that looks into containers.

``python -m tests.silence.circles FIRST LAST`` makes those of these seeds and prints a line for each that is wrong: not
as in Python, or no error that somebody has worded. One that hangs ends the process, with a traceback.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyop

X = np.arange(3.0)


@dataclass(eq=False)
class Pair:
    one: Any = None
    other: Any = None


@dataclass(eq=False, slots=True)
class Slots:
    one: Any = None
    other: Any = None


class Items(list):
    """A container with a class of its own, which is looked into by nobody."""


def circle(seed: int, leaf: Any, kinds: Any = (list, list, list, dict, Pair, Slots, Items)) -> Any:
    """Return a few containers that hold each other, many times over; the first one."""
    chance = random.Random(seed)
    shells = [chance.choice(kinds)() for _ in range(chance.randint(1, 4))]
    known = [leaf] if chance.random() < 0.8 else []
    for shell, after in zip(shells, [*shells[1:], shells[0]], strict=True):
        items = [after, *chance.choices([*shells, (after, after), [after], *known, 1.0], k=chance.randint(0, 4))]
        if chance.random() < 0.5:
            items.insert(0, known[0] if known else 2.0)
        if isinstance(shell, list):
            shell += items
        elif type(shell) is dict:
            shell |= dict(zip("abcdef", items, strict=False))
        else:
            shell.one, shell.other = items[0], items[-1]
    return shells[0]


def first(x: Any) -> Any:
    """Return the first array inside, or one."""
    waiting, seen = [x], []
    while waiting:
        part = waiting.pop(0)
        if hasattr(part, "dtype"):
            return part
        if type(part) is float or any(part is other for other in seen):
            continue
        seen.append(part)
        if type(part) is Pair or type(part) is Slots:
            waiting += [part.one, part.other]
        elif type(part) in (list, tuple, dict, Items):
            waiting += part.values() if type(part) is dict else part
    return 1.0


@pyop.op("float64[3] -> float64[3]")
def twice(x, *, held=None):
    return x * 2


class Takes(pyop.Function):
    @staticmethod
    def forward(ctx, c):
        return first(c) * 2

    @staticmethod
    def backward(ctx, g):
        return None


class Gives(pyop.Function):
    @staticmethod
    def forward(ctx, x, seed):
        return circle(seed, x)

    @staticmethod
    def backward(ctx, *gs):
        return gs[0], None


def loop(y: Any, c: Any) -> Any:
    for k in range(20):
        y = y + first(c) * k
    return y


def at_key(y: Any, c: Any) -> Any:
    z = y * 1.0
    z[c] = 2.0
    return z


def written(y: Any, c: Any) -> Any:
    z = y * 1.0
    z[0] = c
    return z


def stored(c: Any) -> Any:
    graph = pyop.trace(lambda y: twice(y, held=c) + twice(y, held=c), "float64[3]")
    made = pickle.loads(pickle.dumps(graph.compile()))(X)
    with tempfile.TemporaryDirectory() as folder:
        graph.save(os.path.join(folder, "graph.onnx"), embed=True)
    return made


def tensor() -> pyop.Tensor:
    return pyop.Tensor(X, requires_grad=True)


IDENTITY = pyop.trace(lambda y: y * 2.0, "float64[3]").compile()
# By NumPy's own conversion of lists in lists without end nothing ends: keys and operands of Tensors have no `Items`.
# By seed; the second, where there is one, is what Python says.
ENTRIES: dict[str, tuple[Callable[[int], Any], Callable[[int], Any] | None]] = {
    "argument": (lambda s: pyop.compile(lambda c, y: first(c) * y)(circle(s, X), X), lambda s: first(circle(s, X)) * X),
    "result": (lambda s: pyop.compile(lambda y: circle(s, y * 2.0))(X), None),
    "captured": (
        lambda s: (lambda c: pyop.compile(lambda y: y * 2.0 + first(c))(X))(circle(s, X)),
        lambda s: X * 2.0 + first(circle(s, X)),
    ),
    "loop": (
        lambda s: pyop.compile(lambda y: loop(y, circle(s, y * 0.5)))(X),
        lambda s: loop(X, circle(s, X * 0.5)),
    ),
    "key": (lambda s: pyop.compile(at_key)(X, circle(s, 1)), None),
    "written": (lambda s: pyop.compile(lambda y: written(y, circle(s, y[0])))(X), None),
    "operand": (lambda s: pyop.compile(lambda y: y + circle(s, y * 1.0))(X), None),
    "operand of numbers": (lambda s: pyop.compile(lambda y: y + circle(s, 1.0))(X), None),
    "op": (lambda s: twice(circle(s, X)), None),
    "op's result": (lambda s: pyop.op("float64[3] -> float64[3]")(lambda x: circle(s, x))(X), None),
    "py_func": (lambda s: pyop.py_func(lambda c: first(c), [circle(s, X)], "float64"), None),
    "static": (lambda s: twice(X, held=circle(s, X)), lambda s: X * 2),
    "stored": (lambda s: stored(circle(s, 1)), None),
    "trace": (lambda s: pyop.trace(lambda c: first(c), circle(s, "float64[3]")), None),
    "plan": (lambda s: IDENTITY(circle(s, X)), None),
    "map": (lambda s: pyop.compile(lambda y: y * 2.0).map([circle(s, X)]), None),
    "grad": (lambda s: pyop.grad(lambda c: first(c).sum())(circle(s, X)), None),
    "compiled grad": (lambda s: pyop.compile(pyop.grad(lambda c: first(c).sum()))(circle(s, X)), None),
    "grad's result": (lambda s: pyop.grad(lambda x: circle(s, x.sum()))(X), None),
    "vjp": (lambda s: pyop.vjp(lambda x: circle(s, x * 2.0), X), None),
    "cotangent": (lambda s: pyop.vjp(lambda x: x * 2.0, X)[1](circle(s, X)), None),
    "jvp": (lambda s: pyop.jvp(lambda c: first(c) * 2.0, (circle(s, X),), (circle(s, X),)), None),
    "jacobian": (lambda s: pyop.jacobian(lambda x: circle(s, x * 2.0))(X), None),
    "vmap": (lambda s: pyop.vmap(lambda c: first(c) * 2.0)(circle(s, X)), None),
    "vmap's result": (lambda s: pyop.vmap(lambda x: circle(s, x * 2.0))(X), None),
    "apply": (lambda s: Takes.apply(circle(s, X)), lambda s: first(circle(s, X)) * 2),
    "apply to Tensors": (lambda s: Takes.apply(circle(s, tensor())), None),
    "apply in graphs": (lambda s: pyop.compile(lambda y: Takes.apply(circle(s, y * 1.0)))(X), None),
    "apply's result": (lambda s: Gives.apply(X, s), None),
    "apply's result in graphs": (lambda s: pyop.compile(lambda y: Gives.apply(y * 1.0, s))(X), None),
    "Tensor": (lambda s: pyop.Tensor(circle(s, 1.0)), None),
    "backward": (lambda s: (tensor() * 2.0).backward(circle(s, X)), None),
    "Tensor's key": (lambda s: tensor()[circle(s, 1, (list, dict))], None),
    "Tensor's operand": (lambda s: tensor() + circle(s, 1.0, (list, dict)), None),
    "scan": (lambda s: pyop.scan(lambda c, y: (c, y), circle(s, X), np.ones((4, 3))), None),
    "cond": (lambda s: pyop.compile(lambda y: pyop.cond(y[0] > 0, first, first, circle(s, y)))(X), None),
}


def problem(entry: str, seed: int) -> str | None:
    """Return what is wrong about one of them, if anything is."""
    ours, plain = ENTRIES[entry]
    faulthandler.dump_traceback_later(20, exit=True)
    try:
        found = ours(seed)
        if plain is not None and not np.array_equal(found, plain(seed)):
            return f"{found!r:.80} for {plain(seed)!r:.80}"
    except (RecursionError, MemoryError, SystemError) as error:
        return repr(error)
    except Exception:
        pass
    finally:
        faulthandler.cancel_dump_traceback_later()
    return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for chosen in range(int(sys.argv[1]), int(sys.argv[2])):
        for one in ENTRIES:
            print(f"{one} {chosen}", file=sys.stderr, flush=True)
            if wrong := problem(one, chosen):
                print(f"{one} {chosen}: {wrong}", flush=True)
    sys.stdout.flush()
    os._exit(0)  # the circles are not worth taking apart
