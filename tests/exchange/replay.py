"""Runs in a process of its own what `recording` has recorded: each graph loaded from its file, results bit by bit.

python -m tests.exchange.replay FOLDER
"""

import collections
import contextlib
import json
import os
import pickle
import re
import sys
from pathlib import Path

import numpy as np

import pyop
from pyop import _core

from .recording import LIST, outcome


def same(a, b):
    """Whether results are the same to the last bit."""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a.partition(":")[0] == b.partition(":")[0]
    return len(a) == len(b) and all(map(same_array, a, b))


def same_array(a, b):
    if a is None or b is None:
        return a is b
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if a.dtype.hasobject or a.dtype.kind == "T":
        return without_addresses(a) == without_addresses(b)
    if a.dtype.char in "gG":  # 10 of the 16 bytes of a long double are its number
        a, b = (np.ascontiguousarray(x).view(np.uint8).reshape(-1, 16)[:, :10] for x in (a.ravel(), b.ravel()))
    return a.tobytes() == b.tobytes()


def without_addresses(array):
    return re.sub(r" at 0x[0-9a-f]+", "", repr(array.tolist()))


def replay(path):
    """What became of one record: a word, and what it is about."""
    record = pickle.loads(path.read_bytes())
    name = record["name"]
    for word in ("error", "no arrays", "refused"):
        if word in record:
            return word, name, record[word]
    if "results" not in record:
        return "ended", name, "the process of the original ended while the graph ran"
    try:
        graph = pyop.load(path.with_suffix(".onnx"), trust="pickles")
    except Exception as error:
        return "not loaded", name, f"{type(error).__name__}: {error}"
    leaves, feeds = ([at(graph, where) for where in record[key]] for key in ("leaves", "feeds"))
    with np.errstate(all="ignore"):
        plan = _core.compile(graph, tuple(leaves), tuple(feeds), LIST, None, *record["options"])
    got = outcome(plan, record["arrays"])
    if same(got, record["results"]):
        return ("raises alike" if isinstance(got, str) else "same"), name, str(got)[:200]
    return "differs", name, f"{str(got)[:300]} instead of {str(record['results'])[:300]}"


def at(graph, where):
    node, output = where
    return graph[node] if output is None else graph._value(node, output)


def main(folder):
    found = collections.defaultdict(list)
    with open(os.devnull, "w") as quiet:
        for path in sorted(Path(folder).glob("*.record")):
            with contextlib.redirect_stdout(quiet):
                word, name, about = replay(path)
            found[word].append((name, about))
    np.seterr(all="warn")
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
