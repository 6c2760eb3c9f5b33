"""Every graph that a program compiles, saved with what it computes: a plugin of pytest, and a runner of scripts.

    PYOP_RECORD=FOLDER python -m pytest -p tests.exchange.recording tests/...
    python -m tests.exchange.recording FOLDER SCRIPT

Each graph is saved and run in a fork of the program, on arrays made up from its specs: what a test counts and keeps is
as if nothing had happened, and functions are as they were when the graph was compiled. `replay` reads the records.
"""

import faulthandler
import hashlib
import os
import pickle
import runpy
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import cloudpickle  # noqa: F401
import numpy as np
import onnx.reference  # noqa: F401

import pyop
import pyop.onnx
from pyop import _core
from pyop.saving import files  # noqa: F401  what a fork would import each time
from pyop.saving.graphs import kept_nodes

MOST_OF_ONE_TEST = 40
LIST = 2  # results come as one list
MOST_BYTES = 1 << 22
SECONDS = 60  # black_box_simulator takes more than 10 on a machine that does other things
NOTHING = 1  # how a fork ends whose graph has computed nothing
# What named sizes are, one after the other until the graph computes something: those of tests/gradients first.
SIZES = ({"n": 5, "m": 7}, {}, {"n": 3, "m": 3, "k": 3})


def make_up(spec, sizes, rng):
    """An array that a spec allows."""

    def extent(size):
        if isinstance(size, pyop.Dim):
            for name in size.names:
                sizes.setdefault(name, 4)
            size = size.evaluate(sizes)
        return size if type(size) is int else 4

    shape = (4,) if spec.shape is None else tuple(map(extent, spec.shape))
    if any(type(size) is not int for size in shape) or np.prod(shape, dtype=float) > 4e6:
        raise ValueError(f"no array is made up for {spec}")
    dtype = np.dtype(np.float64) if spec.dtype is None else np.dtype(spec.dtype)
    kind = dtype.kind
    if kind in "fc":
        array = rng.uniform(0.25, 2.0, shape)
    elif kind in "iu":
        array = rng.integers(0, 4, shape)
    elif kind == "b":
        array = rng.integers(0, 2, shape)
    elif kind in "OUT":
        array = np.array(["a", "bc", "", "d"], object)[rng.integers(0, 4, shape)]
    else:
        return np.zeros(shape, dtype)
    return np.asarray(array, object if kind == "O" else None).astype(dtype)


def outcome(run, arrays):
    """What a plan does with arrays: its results, or the type of what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [None if x is None else np.asarray(x) for x in run(*arrays)]
        except BaseException as error:  # of the functions of tests: KeyboardInterrupt, too
            try:
                return f"{type(error).__name__}: {error}"[:300]
            except Exception:  # an exception of a test's own, without a text
                return type(error).__name__


class Recorder:
    """Stands for `pyop._core.compile`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.compile = _core.compile
        self.test = ""
        self.counts = {}
        self.seen = set()

    def __call__(self, graph, leaves, feeds, form, structure, whole, disable, threads, fast=False, writes=()):
        plan = self.compile(graph, leaves, feeds, form, structure, whole, disable, threads, fast, writes)
        if writes:  # files and models say no to them
            return plan
        test = os.environ.get("PYTEST_CURRENT_TEST", self.test).rpartition(" (")[0] or self.test
        k = self.counts[test] = self.counts.get(test, 0) + 1
        if k <= MOST_OF_ONE_TEST:
            self.record(graph, leaves, feeds, (whole, disable, threads, fast), f"{test} #{k}")
        return plan

    def record(self, graph, leaves, feeds, options, name):
        for sizes in SIZES:
            child = os.fork()
            if not child:
                self.in_a_fork(graph, leaves, feeds, options, name, dict(sizes))
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != NOTHING:
                break

    def in_a_fork(self, graph, leaves, feeds, options, name, sizes):
        status = NOTHING
        signal.alarm(SECONDS)  # ends this process, which leaves a record without results
        faulthandler.disable()
        _core.compile = self.compile
        try:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            path = self.folder / hashlib.sha256(name.encode()).hexdigest()[:24]
            record = {"name": name, "options": options}
            try:
                self.write(graph, leaves, feeds, options, path, record, sizes)
                status = NOTHING if isinstance(record.get("results"), str) else 0
            except BaseException:
                record["error"] = traceback.format_exc()
                path.with_suffix(".record").write_bytes(pickle.dumps(record))
        finally:
            os._exit(status)

    def write(self, graph, leaves, feeds, options, path, record, sizes):
        rng = np.random.default_rng(7)
        try:
            arrays = [make_up(value.spec, sizes, rng) for value in feeds]
        except ValueError as error:
            record["no arrays"] = str(error)
            arrays = None
        if sum(graph.run(node.outputs[0]).nbytes for node in graph.nodes if node.kind == "constant") > MOST_BYTES:
            record["no arrays"], arrays = "its constants are large", None
        kept = {old: new for new, old in enumerate(kept_nodes(graph))}
        if any(place(x)[0] not in kept for x in (*leaves, *feeds)):
            record["no arrays"], arrays = "it gives out what is of a loop's body", None
        else:
            record["leaves"] = [(kept[node], output) for node, output in map(place, leaves)]
            record["feeds"] = [(kept[node], output) for node, output in map(place, feeds)]
        if arrays is not None:
            try:
                graph.save(path.with_suffix(".onnx"), embed=True)
            except Exception as error:
                record["refused"] = f"{type(error).__name__}: {error}"
            else:
                record["arrays"] = arrays
                plan = self.compile(graph, leaves, feeds, LIST, None, *options)
                path.with_suffix(".record").write_bytes(pickle.dumps(record))  # in case that the run ends the process
                record["results"] = outcome(plan, arrays)
        path.with_suffix(".record").write_bytes(pickle.dumps(record))


def place(fetch):
    return (fetch.node.index, fetch.output_index) if isinstance(fetch, pyop.Value) else (fetch.index, None)


def pytest_configure(config):
    _core.compile = Recorder(os.environ["PYOP_RECORD"])


if __name__ == "__main__":
    _core.compile = Recorder(sys.argv[1])
    _core.compile.test = sys.argv[2]
    sys.argv = sys.argv[2:]
    os.chdir(tempfile.mkdtemp())
    runpy.run_path(sys.argv[0], run_name="__main__")
