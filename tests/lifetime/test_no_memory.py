"""Memory runs out at every allocation of a call in turn: an error, and every reference is where it was."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .harness import TIMEOUT_SECONDS

pytest.importorskip("_testcapi")

SCRIPT = """
import collections, dataclasses, sys
import _testcapi
import numpy as np, pyop
from pyop import _tree

Pair = collections.namedtuple("Pair", "a b")
@dataclasses.dataclass
class Point:
    x: object
    y: object
    z: object = dataclasses.field(init=False, default=0)

items = [object() for _ in range(40)]
tree = {"a": list(items), "b": Pair(items[0], Point(*items[1:3])), "c": tuple(items)}
leaves, structure = _tree.flatten(tree)
op = pyop.op("float64[n] -> float64[n]")(lambda x: x + 1)
x = np.ones(3)
deep = [[[items[0]] * 9] * 9] * 9

# Made here: where memory is refused to a lambda itself, CPython 3.12 and 3.13 drop a reference to its code too many.
def same(leaf):
    return leaf

class Session(pyop._core.ProfileSession):
    def _read(self, recorded):    # what NumPy makes of it is its own affair
        pass

def profiled():
    with Session(100):
        op(x)

calls = [
    lambda: _tree.map_leaves(same, tree),
    lambda: _tree.flatten(tree),
    lambda: structure.unflatten(leaves),
    lambda: repr(structure),
    lambda: _tree.map_leaves(same, deep),
    profiled,
]
def counts():
    return [sys.getrefcount(item) for item in items]

failed = 0
for call in calls:
    call()
    before = counts()
    for n in range(400):
        try:
            _testcapi.set_nomemory(n, n + 1)
            try:
                call()
            finally:
                _testcapi.remove_mem_hooks()
        except MemoryError:
            failed += 1
        except Exception:
            pass  # whatever NumPy or Python make of it
        assert counts() == before, (n, [a - b for a, b in zip(counts(), before)])
print(failed)
"""


def test_references_where_memory_runs_out() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100
