"""Ten thousand calls of every path leave no reference, no object and no memory behind."""

import gc
import sys
import sysconfig
import tracemalloc
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import pyop

# From NumPy 2.5 on, setting shape, strides or dtype warns; functions do it all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")

A = np.arange(6.0)
FROZEN = np.arange(6.0)
FROZEN.flags.writeable = False
RESULT = np.arange(6.0)
OUT = np.empty(6)
MARKER = object()


def fail(*args, **kwargs):
    error = ValueError("no")
    raise error


class Box:
    @pyop.op("float64[n] -> float64[n]")
    def method(self, x):
        return x

    @pyop.op(inputs=[["float64[n]", "float64[n]"]], outputs={"a": "float64[n]"})
    def trees(self, pair):
        return {"a": pair[0] + pair[1]}


BOX = Box()
FIRST = np.ones((3, 6))
SPEC = "float64[n] -> float64[n]"


def abstract(fn, rule):
    op = pyop.op(fn)
    op.abstract(rule)
    return op


def declared(fn, *args, **options):
    return pyop.op(fn, *args, **options)


fresh = declared(lambda x: x + 1, SPEC)
PATHS = {
    "plain": partial(fresh, A),
    "read-only": partial(fresh, FROZEN),
    "identity": partial(declared(lambda x: x, SPEC), A),
    "adopted": partial(declared(lambda x: RESULT, SPEC), A),
    "rank 0": partial(declared(lambda x: 1.5, "float64[n] -> float64[]"), A),
    "two": partial(declared(lambda x, y: (y, x), "T[n], T[n] -> T[n], T[n]"), A, A),
    "list": partial(declared(lambda x: x, SPEC), [1, 2.0, 3]),
    "foreign": partial(declared(lambda x: x.astype(">f8"), SPEC), A.astype(">f8")),
    "subclass": partial(declared(lambda x: x.view(np.recarray), SPEC), A.view(np.recarray)),
    "static": partial(declared(lambda x, *, k=None, **o: x, SPEC), x=A, k=MARKER, other=MARKER),
    "defaults": partial(declared(lambda x, y=2.0: x * y, "float64[n], float64[] -> float64[n]"), A),
    "out": partial(declared(lambda x, *, out=None: np.add(x, 1, out=out), SPEC), A, out=OUT),
    "out made": partial(declared(lambda x, *, out: np.add(x, 1, out=out), SPEC), A),
    "mutates": partial(declared(lambda x: x.fill(0) or x, SPEC, mutates="x"), A),
    "like": partial(declared(lambda x, y: x, like="x"), A, A),
    "variadic": partial(declared(lambda *xs: xs[0], outputs="_"), *[A] * 9),
    "method": lambda: BOX.method(A),
    "trees": lambda: BOX.trees([A, FROZEN]),
    "abstract": partial(abstract(lambda x: x, lambda x: x), A),
    "abstract, unhashable": partial(abstract(lambda x, *, k: x, lambda x, *, k: x), A, k=[1]),
    "gufunc": partial(declared(lambda x: (x, x.sum()), "(n)->(n),()"), FIRST),
    "gufunc out": partial(declared(lambda x, *, out: None, "(n)->(n)", dtype="f8"), FIRST),
    "gufunc mutates": partial(declared(lambda x: x.fill(0) or x, "(n)->(n)", mutates="x"), FIRST),
    "gufunc kept": partial(declared(lambda x: [x, x[1:]][0], "(n)->(n)"), FIRST),
    "no output": partial(declared(lambda x: None, outputs=()), A),
    "kept view": partial(declared(lambda x: x[1:], "float64[n] -> float64[m!]"), A),
    "twisted view": partial(declared(lambda x: setattr(x, "shape", (2, 3)) or x, "float64[n] -> _"), A),
    "strings": partial(declared(lambda x: x, "_ -> _"), np.array(["a", "b" * 50], np.dtypes.StringDType())),
    "objects": partial(declared(lambda x: x, "_ -> _"), np.array([MARKER, None])),
    # failing ones
    "raises": partial(declared(fail, SPEC), A),
    "raises in a loop": partial(declared(fail, "(n)->()"), FIRST),
    "raises with statics": partial(declared(lambda x, *, k: fail(), SPEC), A, k=MARKER),
    "wrong input": partial(fresh, np.arange(3)),
    "wrong input in a loop": partial(declared(fail, "(n),(n)->()"), FIRST, A[1:]),
    "no array": partial(fresh, [[1], [2, 3]]),
    "wrong tree": lambda: BOX.trees(A),
    "wrong output": partial(declared(lambda x: x[1:], SPEC), A),
    "wrong second output": partial(declared(lambda x: (x + 1, x[1:]), "float64[n] -> float64[n], float64[n]"), A),
    "wrong count": partial(declared(lambda x: (x, x), SPEC), A),
    "wrong result tree": partial(declared(lambda x: {"b": x}, outputs={"a": "_"}), A),
    "unsupported": partial(declared(lambda x: MARKER, SPEC), A),
    "wrong out": partial(declared(lambda x, *, out: None, SPEC), A, out=np.empty(3)),
    "unfit out": partial(declared(lambda x, *, out=None: x[1:], "float64[n] -> float64[m!]"), A, out=OUT),
    "fickle loop": partial(declared(lambda x: x[: int(x[0])], "(n)->(m!)"), np.arange(6.0).reshape(3, 2)),
    "unknown keyword": partial(fresh, A, k=1),
    "missing": partial(fresh),
    "too many": partial(fresh, A, A),
    "failing rule": partial(abstract(lambda x: x, fail), A),
}
WATCHED = [
    A,
    FROZEN,
    RESULT,
    OUT,
    FIRST,
    MARKER,
    BOX,
    None,
    A.dtype,
    np.dtype("f4"),
    (),
    pyop.InputError,
    pyop.OutputError,
]


@pytest.fixture(autouse=True, scope="module")
def only_our_objects():
    """Collections, of which there are hundreds here, do not look at what existed before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def repeat(call, n):
    for _ in range(n):
        with suppress(TypeError, ValueError):
            call()


def measure(call, n):
    """How reference counts, objects and memory change over n calls."""
    gc.collect()
    counts = [sys.getrefcount(o) for o in WATCHED]
    objects = len(gc.get_objects())
    memory = tracemalloc.get_traced_memory()[0]
    repeat(call, n)
    gc.collect()
    memory = tracemalloc.get_traced_memory()[0] - memory
    objects = len(gc.get_objects()) - objects
    return [sys.getrefcount(o) - c for o, c in zip(WATCHED, counts, strict=True)], objects, memory


# Bytes: the interpreter keeps some of what exceptions used, but no more of many than of few. One without a GIL frees
# later: after 500, 2,000, 8,000 and 16,000 exceptions it had 103, 86, 527 and 303 kB.
KEPT = 1_000_000 if sysconfig.get_config_var("Py_GIL_DISABLED") else 100_000


def assert_steady(call, n):
    repeat(call, 50)  # caches, spare views
    tracemalloc.start()
    try:
        measure(call, 5)
        changes, objects, memory = measure(call, n)
    finally:
        tracemalloc.stop()
    assert max(map(abs, changes)) < n // 4, dict(zip(map(repr, WATCHED), changes, strict=True))
    assert abs(objects) < n // 4
    assert memory < KEPT


@pytest.mark.parametrize("path", PATHS)
def test_a_path_leaves_nothing(path):
    assert_steady(PATHS[path], 500)


@pytest.mark.campaign
@pytest.mark.parametrize("path", PATHS)
def test_a_path_leaves_nothing_over_ten_thousand_calls(path):
    assert_steady(PATHS[path], 10_000)


def make_and_drop():
    op = pyop.op(lambda x, *, k=MARKER: x if k else op, SPEC)
    op.me = op
    op(A)
    Box().method(A)
    bound = Box()
    bound.op = bound.method
    rule = pyop.op(lambda x: rule)
    rule.abstract(lambda x: rule and x)
    with pytest.raises(pyop.OutputError):
        rule(A)


def test_ops_themselves_are_collected_in_cycles_too():
    assert_steady(make_and_drop, 100)


def test_an_op_dropped_while_it_runs():
    holder = {}

    def forget(x):
        holder.clear()
        gc.collect()
        return x + 1

    for _ in range(5):
        holder["op"] = pyop.op(forget, SPEC)
        np.testing.assert_array_equal(holder["op"](A), A + 1)
