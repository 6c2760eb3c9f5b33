"""Clocks, entropy, files and commands, however a function comes to them: read in every call, as it runs itself."""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyop

X = np.arange(3.0)
# What they need; an expression of what is another number after `PATH` was written, or at another time; a callable.
SOURCES = {
    "clock": ("import time", "time.perf_counter()", "time.perf_counter"),
    "nanoseconds": ("import time", "time.time_ns()", "time.time_ns"),
    "entropy": ("import os", "int.from_bytes(os.urandom(6), 'big')", "lambda: int.from_bytes(os.urandom(6), 'big')"),
    "uuid": ("import uuid", "uuid.uuid4().int % 10**9", "lambda: uuid.uuid4().int % 10**9"),
    "secrets": ("import secrets", "secrets.randbelow(10**9)", "lambda: secrets.randbelow(10**9)"),
    "system random": ("import random", "random.SystemRandom().random()", "random.SystemRandom().random"),
    "fresh generator": (
        "import numpy",
        "numpy.random.default_rng().normal()",
        "lambda: numpy.random.default_rng().normal()",
    ),
    "fresh bits": (
        "import numpy",
        "numpy.random.Generator(numpy.random.PCG64()).random()",
        "lambda: numpy.random.Generator(numpy.random.PCG64()).random()",
    ),
    "seed sequence": (
        "import numpy",
        "numpy.random.SeedSequence().entropy % 10**9",
        "lambda: numpy.random.SeedSequence().entropy % 10**9",
    ),
    "date": ("import datetime", "datetime.datetime.now().timestamp()", "lambda: datetime.datetime.now().timestamp()"),
    "open": ("import builtins", "float(open(PATH).read())", "lambda: float(open(PATH).read())"),
    "path": (
        "import pathlib",
        "float(pathlib.Path(PATH).read_text())",
        "lambda: float(pathlib.Path(PATH).read_text())",
    ),
    "loadtxt": ("import numpy", "float(numpy.loadtxt(PATH))", "lambda: float(numpy.loadtxt(PATH))"),
    "fromfile": ("import numpy", "numpy.fromfile(PATH, 'u1')[0]", "lambda: numpy.fromfile(PATH, 'u1')[0]"),
    "stat": ("import os", "os.stat(PATH).st_size", "lambda: os.stat(PATH).st_size"),
    "command": (
        "import subprocess",
        "float(subprocess.run(['cat', PATH], capture_output=True).stdout)",
        "lambda: float(subprocess.run(['cat', PATH], capture_output=True).stdout)",
    ),
    "environment": ("import os", "float(os.environ['A_NUMBER'])", "lambda: float(os.environ['A_NUMBER'])"),
    "getenv": ("import os", "float(os.getenv('A_NUMBER'))", "lambda: float(os.getenv('A_NUMBER'))"),
}
# Texts of a module with a function `f`: of the imports, the expression, the callable.
SPELLINGS = {
    "plain": "{imports}\ndef f(x): return x + {value}",
    "imported inside": "def f(x):\n    {imports}\n    return x + {value}",
    "global": "{imports}\nread = {call}\ndef f(x): return x + read()",
    "renamed": "{imports}\nread = {call}\nalias = read\ndef f(x): return x + alias()",
    "dict": "{imports}\nheld = dict(read={call})\ndef f(x): return x + held['read']()",
    "list": "{imports}\nheld = [{call}]\ndef f(x): return x + held[0]()",
    "attribute": "{imports}\nimport types\ns = types.SimpleNamespace(read={call})\ndef f(x): return x + s.read()",
    "class": "{imports}\nclass S: read = staticmethod({call})\ndef f(x): return x + S.read()",
    "property": "{imports}\nclass S:\n    now = property(lambda self: {value})\ns = S()\ndef f(x): return x + s.now",
    "made inside": "{imports}\nclass S:\n    def __init__(self): self.now = {value}\ndef f(x): return x + S().now",
    "closure": "{imports}\ndef outer(read):\n    def f(x): return x + read()\n    return f\nf = outer({call})",
    "default": "{imports}\ndef f(x, read={call}): return x + read()",
    "partial": "{imports}\nimport functools\ndef g(read, x): return x + read()\nf = functools.partial(g, {call})",
    "helper": "{imports}\ndef helper(): return {value}\ndef f(x): return x + helper()",
    "decorated": (
        "{imports}\ndef later(g):\n    def wrapped(x): return g(x) + {value}\n    return wrapped\n"
        "@later\ndef f(x): return x * 1"
    ),
    "map": "{imports}\ndef f(x): return x + list(map(lambda k: {value}, [0]))[0]",
    "comprehension": "{imports}\ndef f(x): return x + [{value} for k in range(1)][0]",
    "loop": "{imports}\ndef f(x):\n    for k in range(2):\n        x = x + {value}\n    return x",
    "sorted": "{imports}\ndef f(x): return x + sorted([{value}], key=lambda v: v)[0]",
    "getattr": (
        "{imports}\nread = {call}\nimport types\ns = types.SimpleNamespace(read=read)\n"
        "def f(x): return x + getattr(s, 'read')()"
    ),
    "context": (
        "{imports}\nimport contextlib\n@contextlib.contextmanager\ndef now(): yield {value}\n"
        "def f(x):\n    with now() as t:\n        return x + t"
    ),
    "under an if": "{imports}\ndef f(x):\n    if len(x) > 2:\n        return x + {value}\n    return x",
    "caught": "{imports}\ndef f(x):\n    try:\n        return x + {value}\n    except OSError:\n        return x",
}
OF_THE_WORLD = ("open", "path", "loadtxt", "fromfile", "stat", "command", "environment", "getenv")


def check(source: str, spelling: str, path: Path, fallback: bool) -> None:
    imports, value, call = SOURCES[source]
    scope: dict[str, Any] = {"PATH": str(path), "__name__": "a_script"}
    exec(SPELLINGS[spelling].format(imports=imports, value=value, call=call), scope)
    compiled = pyop.compile(scope["f"], fallback=fallback)
    path.write_text("2.5")
    os.environ["A_NUMBER"] = "2"
    first = compiled(X)
    if source in OF_THE_WORLD:
        assert np.array_equal(first, scope["f"](X))
        path.write_text("17.25")
        os.environ["A_NUMBER"] = "30"
        assert np.array_equal(compiled(X), scope["f"](X)), f"{source}, {spelling}: frozen"
    else:
        found = [first, compiled(X), compiled(X)]
        assert len({float(y[0]) for y in found}) == 3, f"{source}, {spelling}: frozen"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_is_read_is_read_in_each_call(spelling: str, tmp_path: Path) -> None:
    before = sys.getprofile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, source in enumerate(SOURCES):
            check(source, spelling, tmp_path / "number.txt", fallback=k % 2 == 1)
    assert sys.getprofile() is before


@pytest.mark.campaign
def test_what_is_read_is_read_in_each_call_in_every_way(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source, spelling, fallback in itertools.product(SOURCES, SPELLINGS, (False, True)):
            check(source, spelling, tmp_path / "number.txt", fallback)


def test_the_warning_names_the_call_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "number.txt"
    path.write_text("2.0")

    @pyop.compile
    def scaled(x: Any) -> Any:
        return x * np.loadtxt(path)

    with pytest.warns(pyop.RetraceWarning, match=r"scaled.* calls .* at .*test_reads_the_world.py:\d+.*as an argument"):
        assert np.array_equal(scaled(X), X * 2)
    assert scaled.cache_info().misses == 1


def test_nothing_is_done_twice_by_a_trace_in_vain(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"

    @pyop.compile
    def logged(x: Any) -> Any:
        with open(path, "a") as file:
            file.write("called\n")
        return x + 1

    with pytest.warns(pyop.RetraceWarning, match="open"):
        logged(X)
    logged(X)
    assert path.read_text() == "called\n" * 2


def test_what_is_made_from_a_seed_is_a_plan() -> None:
    for f in (
        lambda x: x + np.random.default_rng(3).normal(size=3),
        lambda x: x + np.random.Generator(np.random.PCG64(3)).normal(),
    ):
        compiled = pyop.compile(f)
        assert np.array_equal(compiled(X), f(X))
        assert compiled.cache_info().misses == 1
        assert np.array_equal(compiled(X), f(X))


def test_a_profiler_that_runs_stays() -> None:
    import time

    def timed(x: Any) -> Any:
        return x + time.time_ns()

    seen: list[str] = []
    profiler = lambda frame, event, arg: seen.append(event)
    compiled = pyop.compile(timed)
    sys.setprofile(profiler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = compiled(X)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert not np.array_equal(first, compiled(X))
    assert seen
