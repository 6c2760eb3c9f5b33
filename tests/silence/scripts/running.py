"""A script run as it is and compiled, in two worlds that change alike, and what a caller can tell of the two."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import pyop
from pyop.compiling import worth

from ..judge import REFUSED, REMEDY, RIGHT, WRONG
from .program import Script, script

worth.stand_still()

MODULE, CONFIG = "a_script", "a_config"
UNTOLD = (pyop.RetraceWarning, ResourceWarning)
WAYS = ("compile", "compile", "compile", "fallback", "gradient")
LOSS = """
def total(r):
    if isinstance(r, (tuple, list)):
        return sum(map(total, r))
    if isinstance(r, dict):
        return sum(map(total, r.values()))
    if isinstance(r, (str, np.dtype)) or r is None:
        return 0.0
    return total((r.a, r.b)) if hasattr(r, "norm") else np.sum(r * 1.5) if np.ndim(r) else r * 2.0
def loss(*given):
    return total(f(*given))
"""


def config(act: Any = np.cos, scale: Any = 2.0) -> ModuleType:
    """The module that scripts import in their functions."""
    made = ModuleType(CONFIG)
    made.act, made.scale, made.sub = act, scale, ModuleType(f"{CONFIG}.sub")
    made.sub.n = 1.5
    return made


def fake() -> ModuleType:
    """A module in the place of NumPy, whose functions do something else."""
    made = ModuleType("fake")
    for name in ("sin", "cos", "tanh", "exp", "square", "abs", "negative", "sqrt"):
        setattr(made, name, lambda v: v * 0.5)
    return made


def array(layout: str, seed: int, before: Any) -> np.ndarray:
    full = np.random.default_rng(seed).normal(size=(4, 6)).round(3)
    if layout == "same":
        return before
    if layout == "view":
        return before[:]
    if layout == "F":
        return np.asfortranarray(full[:2, :3])
    if layout == "step":
        return full[::2, ::2]
    if layout == "neg":
        return full[1::-1, 2::-1]
    a = full[:2, :3].copy()
    if layout == "ro":
        a.flags.writeable = False
    return a.astype({"f4": "f4", "int": "i8"}.get(layout, "f8"))


def bits(a: np.ndarray) -> Any:
    """The elements, all NaNs alike."""
    if a.dtype == object:
        return tuple(seen(item) for item in a.ravel().tolist())
    if a.dtype.kind in "fc":
        a = np.where(np.isnan(a), np.asarray(np.nan, a.dtype), a)
    return np.ascontiguousarray(a).tobytes()


def order(x: np.ndarray) -> Any:
    """The order in which the elements lie, of arrays that do not repeat any: nobody writes into others."""
    steps = [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1] if x.size else []
    if 0 in steps or not x.flags.writeable:
        return None
    return np.argsort(np.abs(steps)).tolist()  # not which way they go: a copy of a reversed array goes forward


def seen(x: Any) -> Any:
    """What a caller sees of an object that holds no others."""
    if type(x) is pyop.Tensor:
        return "Tensor"
    if isinstance(x, np.ndarray):
        return type(x).__name__, x.dtype.str, x.shape, order(x), x.flags.writeable, bits(x)
    if isinstance(x, np.generic):
        return type(x).__name__, bits(np.asarray(x))
    if isinstance(x, (bool, int, float, complex, str, bytes, type(None), np.dtype)):
        return type(x).__name__, repr(x)
    return type(x).__name__


def walk(x: Any, path: str, found: list[tuple[str, Any]], above: frozenset[int] = frozenset()) -> None:
    """All objects of a nest, with their paths."""
    found.append((path, x))
    if id(x) in above or len(found) > 500:
        return
    above |= {id(x)}
    if isinstance(x, (tuple, list)):
        for k, item in enumerate(x):
            walk(item, f"{path}[{k}]", found, above)
    if isinstance(x, dict):
        for key, item in x.items():
            walk(item, f"{path}[{type(key).__name__} {key!r}]", found, above)
    if isinstance(x, (np.ndarray, type, ModuleType)) or callable(x):
        return
    for name, item in sorted(getattr(x, "__dict__", {}).items()):
        walk(item, f"{path}.{name}", found, above)
    for part in type(x).__mro__:
        slots = vars(part).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(x, name) and name not in ("__weakref__", "__dict__"):
                walk(getattr(x, name), f"{path}.{name}", found, above)


def told(result: Any, arguments: list[Any], world: dict[str, Any]) -> dict[str, Any]:
    """All that a caller can tell after a call."""
    found: list[tuple[str, Any]] = []
    walk(result, "result", found)
    for k, x in enumerate(arguments):
        walk(x, "xyto"[k], found)
    for name in ("TABLE", "WAYS", "state", "SCALE", "o"):
        walk(world.get(name), name, found)
    found.append(("draws", str((world["dice"].getstate()[1][-1], world["DRAWS"].bit_generator.state["state"]))))
    found.append(("seen", world["Seen"].seen))
    first: dict[int, str] = {}
    same, arrays = {}, []
    for path, x in found:
        if isinstance(x, np.ndarray) or hasattr(x, "__dict__") or isinstance(x, (list, dict)):
            same[path] = first.setdefault(id(x), path)
        if isinstance(x, np.ndarray) and type(x) is not pyop.Tensor and path[0] in "rxyo":
            arrays.append((path, x))
    shared = [
        (p, q)
        for k, (p, a) in enumerate(arrays)
        for q, b in arrays[:k]
        if (a.flags.writeable or b.flags.writeable) and np.shares_memory(a, b)
    ]
    return {"seen": [(path, seen(x)) for path, x in found], "same object": same, "shared memory": shared}


class World:
    """A script that was executed, and calls of its function."""

    def __init__(self, made: Script, way: str, compiled: bool) -> None:
        gradient = way == "gradient"
        self.made = made
        self.world: dict[str, Any] = {"__name__": MODULE, "FAKE": fake(), "new_cfg": config, "cfg": config()}
        self.file = Path(tempfile.mkdtemp(prefix="pyop-script-"), "number.txt")
        self.world["PATH"] = str(self.file)
        self.file.write_text("2.5")
        self.asked = "12"
        self.here = ModuleType(MODULE)
        self.here.__dict__.update(self.world)
        self.world = vars(self.here)
        self.config = self.world["cfg"]
        self.enter()
        exec(compile(made.text().replace("CFG", CONFIG) + LOSS, "<script>", "exec"), self.world)
        self.function = self.world["f"] if not gradient else pyop.value_and_grad(self.world["loss"])
        if compiled:
            self.function = pyop.compile(self.function, fallback=way == "fallback")

    def enter(self) -> None:
        sys.modules[MODULE] = self.here
        sys.modules[CONFIG] = self.config
        os.environ["A_SCRIPT"] = self.asked

    def end(self) -> None:
        shutil.rmtree(self.file.parent)

    def instance(self, k: int) -> Any:
        text, _, mark = self.made.instance.partition(";")
        o = eval(text, self.world, {"A": array("C", k + 20, None)})
        with contextlib.suppress(AttributeError):  # slots, frozen ones and named tuples take none
            exec(mark, {}, {"o": o})
        return o

    def call(self, k: int) -> tuple[Any, Any, BaseException | None, list[Any], bool]:
        """What a caller can tell of call `k`: of the results, of warnings; whether the function ran itself."""
        self.enter()
        if k:
            with contextlib.suppress(Exception):  # of a script whose state is another by now: alike in both worlds
                exec(self.made.changes[k - 1], self.world)
            self.config, self.asked = sys.modules[CONFIG], os.environ["A_SCRIPT"]
        x = array(self.made.layouts[0], k, None)
        y = array(self.made.layouts[1], k + 10, x)
        t = eval(self.made.numbers[k])
        arguments, result, error = [x, y, t], None, None
        if self.made.held == "argument":
            arguments.append(self.instance(k))
        elif self.made.held == "global" and "o" not in self.world:
            self.world["o"] = self.instance(k)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = self.function(*arguments)
            except Exception as raised:
                error = raised
        said = sorted({(w.category.__name__, str(w.message)) for w in caught if w.category not in UNTOLD})
        itself = any(w.category is pyop.RetraceWarning and "itself" in str(w.message) for w in caught)
        return told(result, arguments, self.world), said, error, [result, *arguments], itself


def near(a: Any, b: Any) -> bool:
    """Return whether two derivatives, of arrays and compiled, are the same but for the order of sums."""
    one, other = (np.concatenate([np.ravel(x).astype(complex) for x in arrays_of(tree)]) for tree in (a, b))
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


def arrays_of(tree: Any) -> list[Any]:
    found: list[tuple[str, Any]] = []
    walk(tree, "", found)
    return [x for _, x in found if isinstance(x, (np.ndarray, np.generic, int, float))]


def outcome(seed: int, way: str) -> tuple[str, str]:
    """What becomes of the script of a seed: right (and whether it ran itself), refused and why, wrong and how."""
    made = script(seed)
    try:
        plain, other = World(made, way, False), World(made, way, True)
    except Exception as error:
        return "invalid", f"{type(error).__name__}: {error}"
    try:
        return compared(made, plain, other, way)
    finally:
        plain.end()
        other.end()


def compared(made: Script, plain: World, other: World, way: str) -> tuple[str, str]:
    """As `outcome`, of a script in two worlds."""
    itself = False
    held = []  # so that nothing is freed and made again at the same place
    for k in range(3):
        want, want_said, expected, kept, _ = plain.call(k)
        got, got_said, error, mine, plainly = other.call(k)
        held.append((kept, mine))
        itself |= plainly
        if error is not None and expected is None:
            if REMEDY.search(str(error)) or isinstance(error, pyop.PyopError):
                return REFUSED, f"call {k}: {type(error).__name__}: {error}"
            return WRONG, f"call {k}: {type(error).__name__}: {error}"
        if expected is not None:
            if way == "gradient":
                return "invalid", f"no derivative: {expected}"
            if error is None:
                return WRONG, f"call {k}: plain raises {type(expected).__name__}: {expected}"
            if type(error) is not type(expected) or str(error) != str(expected):
                return REFUSED, f"call {k}: another error: {error!r} for {expected!r}"
        if way == "gradient":
            if near(kept[0], mine[0]):
                continue
            return WRONG, f"call {k}: at arrays {kept[0]!r}, compiled {mine[0]!r}"
        for what in want:
            if want[what] != got[what]:
                a, b = want[what], got[what]
                if isinstance(a, dict):
                    a, b = sorted(a.items()), sorted(b.items())
                more = [item for item in a if item not in b][:2]
                less = [item for item in b if item not in a][:2]
                return WRONG, f"call {k}, {what}: plain {more}, here {less}"
        if error is not None:  # what is not computed, since the function raises later, says nothing
            continue
        if want_said != got_said if made.returns_all else not set(got_said) <= set(want_said):
            return WRONG, f"call {k}, warnings: plain {want_said}, here {got_said}"
    return RIGHT, "itself" if itself else ""


def check(seeds: range) -> tuple[Counter[str], list[tuple[int, str, str, str]]]:
    """The outcomes of scripts, and what is wrong or refused: seed, way, outcome, why."""
    counts: Counter[str] = Counter()
    found = []
    with np.errstate(all="warn"):
        for seed in seeds:
            way = WAYS[seed % 5]
            word, why = outcome(seed, way)
            counts[word] += 1
            counts["itself"] += why == "itself"
            if word in (WRONG, REFUSED):
                found.append((seed, way, word, why))
    return counts, found
