"""A warning of pyop's is of the line that has called it: in scripts and modules, cells, functions, ops, tests."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import pyop

RUNS_ITSELF = "f = pyop.compile(lambda x: x.tolist())\n"
# What a program does, and which of its lines, from 1, the first warning is about; `f` runs itself.
PROGRAMS = {
    "at the top": (RUNS_ITSELF + "f(np.ones(3))", 2),
    "by keyword": (RUNS_ITSELF + "f(x=np.ones(3))", 2),
    "over several lines": (RUNS_ITSELF + "\ny = f(\n    np.ones(3),\n)", 3),
    "in a function": (RUNS_ITSELF + "def call(x):\n    return f(x)\ncall(np.ones(3))", 3),
    "in an op": (RUNS_ITSELF + "@pyop.op('float64[n] -> float64')\ndef op(x):\n    return f(x)\nop(np.ones(3))", 4),
    "in a node": (
        RUNS_ITSELF + "@pyop.op('float64[n] -> float64')\ndef op(x):\n    return f(x)\n"
        "pyop.trace(lambda x: op(x), 'float64[n]').compile()(np.ones(3))",
        4,
    ),
    "in a comprehension": (RUNS_ITSELF + "[\n    f(x)\n    for x in np.ones((2, 3))\n]", 3),
    "while it is differentiated": (
        "f = pyop.compile(lambda x: x.tolist())\ndef g(x):\n    f(np.ones(3))\n    return np.sum(x * x)\n"
        "pyop.grad(g)(np.ones(3))",
        3,
    ),
    "a method": (
        "class Model:\n    @pyop.compile\n    def f(self, x):\n        return x.tolist()\nModel().f(np.ones(3))",
        5,
    ),
    "decorated, with a profile": (RUNS_ITSELF + "with pyop.profile():\n    f(np.ones(3))", 3),
    "traced again and again": (
        "f = pyop.compile(lambda x, *, by: x * by, static=('by',))\nfor k in range(20):\n    f(np.ones(2), by=k)",
        3,
    ),
    "a derivative that is compiled": (
        "def f(x):\n    y = np.zeros(3)\n    y[1:] = x[1:] ** 2\n    return np.sum(y)\npyop.grad(f)(np.ones(3))",
        5,
    ),
    "a value with its derivative": (
        "def f(x):\n    y = np.zeros(3)\n    y[1:] = x[1:] ** 2\n    return np.sum(y)\n"
        "pyop.value_and_grad(f)(np.ones(3))",
        5,
    ),
    "a run that comes otherwise": (
        "from tests.silence.test_fallback import of_other_sizes\nf = pyop.compile(of_other_sizes, fallback=True)\n"
        "f(np.linspace(0.1, 3, 5))\nf(np.zeros(5))",
        4,
    ),
}


def first_warning(source: str, name: str) -> warnings.WarningMessage:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(source, name, "exec"), {"np": np, "pyop": pyop, "__name__": "cell"})
    assert caught, "nothing was said"
    return caught[0]


@pytest.mark.parametrize("kind", PROGRAMS)
def test_in_a_cell(kind):
    source, line = PROGRAMS[kind]
    found = first_warning(source, "<cell 7>")
    assert (found.category, found.filename, found.lineno) == (pyop.RetraceWarning, "<cell 7>", line)


WAYS = ["run_path(f'p{k}.py', run_name='__main__')", "run_module(f'p{k}')", "__import__(f'p{k}')"]


@pytest.mark.parametrize("way", WAYS)
def test_in_a_script_a_module_and_what_is_imported(tmp_path, way):
    programs = [program for program in PROGRAMS.values() if "tests." not in program[0]]
    for k, (source, _) in enumerate(programs):
        (tmp_path / f"p{k}.py").write_text(f"import numpy as np, pyop\n{source}")
    code = f"import sys; sys.path.insert(0, '.'); from runpy import *\nfor k in range({len(programs)}): {way}"
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for k, (_, line) in enumerate(programs):
        assert f"p{k}.py:{line + 1}: RetraceWarning" in done.stderr, done.stderr


def test_in_a_test():
    f = pyop.compile(lambda x: x.tolist())
    with pytest.warns(pyop.RetraceWarning) as caught:
        f(np.ones(3))
    line = test_in_a_test.__code__.co_firstlineno + 3
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_each_line_is_told_once():
    """The filter's default goes by the line: a second line is told of its own function."""
    source = "fs = [pyop.compile(lambda x: x.tolist()) for _ in range(2)]\n"
    source += "for f in fs:\n    f(np.ones(3))\n"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        exec(compile(source, "<cell 8>", "exec"), {"np": np, "pyop": pyop})
    assert {(w.filename, w.lineno) for w in caught} == {("<cell 8>", 3)}


def test_what_workers_warn_of_without_a_line_of_the_users():
    pytest.importorskip("cloudpickle")
    found = first_warning("f = pyop.compile(lambda x: np.log(x))\nf.map(\n    [np.zeros(3)], executor=1\n)", "<cell 9>")
    assert "divide by zero" in str(found.message)
    assert (found.category, found.filename, found.lineno) == (RuntimeWarning, "<cell 9>", 2)
