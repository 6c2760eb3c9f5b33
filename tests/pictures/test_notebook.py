"""Places in a notebook: whatever pyop says of a cell's code names the cell, never the temporary file that it is
compiled as. In a process of its own, with IPython's shell, which is what a kernel runs cells in.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

RUN = """
import contextlib, io, json, sys, warnings
from IPython.core.interactiveshell import InteractiveShell
from pyop.graph.cells import shown_file
shell = InteractiveShell.instance()
said = []
for cell in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = shell.run_cell(cell, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    told = [] if error is None else [str(error), *getattr(error, "__notes__", ())]
    told += [f"{w.message} (told of {shown_file(w.filename)}:{w.lineno})" for w in caught]
    html = getattr(result.result, "_repr_html_", str)()
    said.append("\\n".join([*told, html, *([] if error else [out.getvalue()])]))
print(json.dumps(said), file=sys.__stdout__)
"""

FIRST = """import numpy as np, pickle, pyop
def model(x):
    return np.sin(x) @ x
@pyop.op("float64[n] -> float64[n]")
def named(x):
    return x[:1]
@pyop.op("float64[n] -> float64[n]", device="any")
def anywhere(x):
    return x[:1]
graph = pyop.trace(model, "float64[n]")
plan = graph.compile()
with pyop.profile() as p:
    plan(np.ones(3))"""

# What a cell holds, and the place that is to be in what it says; what a cell defines has its own number.
CELLS = {
    "named(np.ones((2, 2)))": "declared at In [1]:4",
    "anywhere(np.ones((2, 2)))": "declared at In [1]:7",
    "anywhere(np.ones(3))": "declared at In [1]:7",
    "f = pyop.trace(lambda x: named(x), 'float64[n]').compile()\nf(np.ones(3))": "created at In [{k}]:1",
    "g = pyop.Graph()\nx = g.input('float64[n]')\nx + 'a'": "",
    "def f(x):\n    x[0] = 1\npyop.trace(f, 'float64[n]')": "at In [{k}]:2 writes",
    "def f(x):\n    y = x[1:]\n    y += 1\npyop.trace(f, 'float64[n]')": "at In [{k}]:3 writes",
    "def f(x):\n    x.shape = (2, 2)\n    return x\npyop.trace(f, 'float64[4]')": "at In [{k}]:2 writes",
    "def f(x):\n    return x if type(x) is np.ndarray else 1\npyop.compile(f)(np.ones(3))": "at In [{k}]:2 (or",
    "def f(x):\n    if str(x)[0] == 'a': return x\n    return -x\npyop.trace(f, 'float64[n]')": "In [{k}]:2",
    "import random\ndef f(x):\n    return x * random.random()\npyop.compile(f)(np.ones(3))": "f (In [{k}]:2)",
    "def f(x):\n    with np.errstate(all='raise'): return 1 / x\npyop.trace(f, 'float64[n]')": "f (In [{k}]:1)",
    "pyop.compile(lambda x: float(x.sum()))(\n    np.ones(3)\n)": "(told of In [{k}]:1)",
    "held = []\ndef f(x):\n    held.append(x * 2)\n    return x\npyop.trace(f, 'float64[n]')\nheld[0] + 1": "",
    "graph['sin']": "",
    "print(repr(graph['sin']))": "created at In [1]:3",
    "print(repr(pickle.loads(pickle.dumps(graph))['sin']))": "created at In [1]:3",
    "print(p)": "In [1]:3",
    "p": "In [1]:3",
    "print(plan.explain())": "In [1]",
    "plan.explain()": "In [1]",
    "plan": "In [1]:3",
    "x = pyop.Graph().input('float64[n]', name='x')\nnp.add.at(np.zeros(3), [0], x)": "at In [{k}]:2",
}


def test_what_pyop_says_names_the_cell():
    pytest.importorskip("IPython", reason="the notebooks group is not installed")
    command = [sys.executable, "-W", "ignore", "-c", RUN]
    cells = json.dumps([FIRST, *CELLS])
    done = subprocess.run(command, input=cells, capture_output=True, text=True, timeout=300, check=True)
    first, *said = json.loads(done.stdout.splitlines()[-1])
    assert first.strip() in ("", "None")
    wrong = [
        (cell, place, text)
        for k, ((cell, place), text) in enumerate(zip(CELLS.items(), said, strict=True), 2)
        if place.format(k=k) not in text or "ipython-input" in text or "ipykernel" in text
    ]
    assert wrong == []


def test_a_place_outside_of_notebooks_is_its_file():
    code = "import pyop\nprint(pyop.trace(lambda x: -x, 'float64[n]')['negative'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "<pyop.Node 'negative' py created at <string>:2>"
